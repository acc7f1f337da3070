// Measures the GEMMs of a step at the shape of Qwen3-8B: autotuned cuBLASLt, a fused layer in one
// launch, batch-invariant, and in FP8.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rollout/kernel_timer.h"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/gemm/gemm.h"
#include "model/cuda/gemm/megakernel.h"

namespace tritonrl {
namespace {

constexpr int64_t kHidden = 4096, kMlp = 12288, kQkv = 6144, kVocab = 151936;
constexpr float kEps = 1e-6f;
constexpr int kLayers = 4;
const std::vector<int64_t> kRows = {16, 64, 256, 512, 2048, 8192};
constexpr int kCopies = 4;  // so that the L2 cache holds no part of the next call's matrix

at::Device CurrentGpu() { return at::Device(at::kCUDA, c10::cuda::current_device()); }

struct Gemm {
  const char* name;
  int64_t from, to;
  bool onto;  // adds the result to the residual stream
};

void BenchGemm(Bench* bench, CudaGemm* gemm, const Gemm& shape) {
  // Copies of the weights, so that the L2 cache (50 MB) holds no part of the next call's.
  const int64_t bytes = 2 * shape.from * shape.to;
  const int copies = bytes > (int64_t{1} << 30) ? 1 : 4;
  const at::Tensor weights = RandomNumbers({copies, shape.to, shape.from});
  const bool head = shape.to == kVocab;
  for (const int64_t rows : {1, 8, 32, 64, 128, 256, 512}) {
    const at::Tensor x = RandomNumbers({rows, shape.from});
    const at::Tensor residual = RandomNumbers({rows, shape.to});
    at::Tensor out = RandomNumbers({rows, shape.to}, head ? at::kFloat : at::kBFloat16);
    const double time = MicrosecondsOf(copies, [&](int i) {
      gemm->Multiply(x, weights[i].t(), shape.onto ? &residual : nullptr, out);
    });
    const std::string setting =
        absl::StrCat(shape.name, " ", shape.from, " -> ", shape.to, ", rows: ", rows);
    bench->Add(setting, TimeAndRate(time, static_cast<double>(bytes), "TB/s"));
    bench->Add(setting, {{"arithmetic", 2e-6 * shape.from * shape.to * rows / time, "TFLOP/s"}});
  }
}

class LayerBench {
 public:
  explicit LayerBench(int64_t rows)
      : rows_(rows),
        attention_(RandomNumbers({rows, kHidden})),
        x_(RandomNumbers({rows, kHidden})),
        post_attention_(RandomNumbers({rows, kHidden})),
        normed_(RandomNumbers({rows, kHidden})),
        gate_up_(RandomNumbers({rows, 2 * kMlp})),
        inner_(RandomNumbers({rows, kMlp})),
        qkv_(RandomNumbers({rows, kQkv})),
        rstd_(at::empty({rows}, x_.options().dtype(at::kFloat))),
        workspace_(at::zeros({MegakernelWorkspaceBytes()}, x_.options().dtype(at::kByte))) {}

  struct Weights {
    at::Tensor o, gate_up, down, qkv, norm;
  };

  void Chain(const Weights& w, bool overlap, int count) {
    MegakernelPlan chain = {.rows = rows_,
                            .eps = kEps,
                            .workspace = workspace_.data_ptr(),
                            .overlap = overlap,
                            .stream = KernelStream()};
    chain.gemms = {{kHidden, kHidden, attention_.data_ptr(), w.o.data_ptr(), nullptr, x_.data_ptr(),
                    false, post_attention_.data_ptr()},
                   {kHidden, 2 * kMlp, post_attention_.data_ptr(), w.gate_up.data_ptr(),
                    w.norm.data_ptr(), nullptr, true, inner_.data_ptr()},
                   {kMlp, kHidden, inner_.data_ptr(), w.down.data_ptr(), nullptr,
                    post_attention_.data_ptr(), false, x_.data_ptr()},
                   {kHidden, kQkv, x_.data_ptr(), w.qkv.data_ptr(), w.norm.data_ptr(), nullptr,
                    false, qkv_.data_ptr()}};
    chain.gemms.resize(count);
    LaunchMegakernel(chain);
  }

  void Norm(const at::Tensor& x, const at::Tensor& weight) {
    LaunchRmsNorm({rows_, kHidden, CudaType::kBFloat16, KernelStream()}, x.const_data_ptr(),
                  weight.const_data_ptr(), kEps, normed_.data_ptr(), rstd_.data_ptr<float>(),
                  nullptr);
  }

  void Cublas(const Weights& w, CudaGemm* gemm) {
    gemm->Multiply(attention_, w.o.t(), &x_, post_attention_);
    Norm(post_attention_, w.norm);
    gemm->Multiply(normed_, w.gate_up.t(), nullptr, gate_up_);
    LaunchSwiglu({rows_, kMlp, CudaType::kBFloat16, KernelStream()}, gate_up_.const_data_ptr(),
                 inner_.data_ptr(), nullptr);
    gemm->Multiply(inner_, w.down.t(), &post_attention_, x_);
    Norm(x_, w.norm);
    gemm->Multiply(normed_, w.qkv.t(), nullptr, qkv_);
  }

  void Autotune(const std::vector<Weights>& layers, CudaGemm* gemm) {
    std::vector<at::Tensor> o, gate_up, down, qkv;
    for (const Weights& w : layers) {
      o.push_back(w.o.t());
      gate_up.push_back(w.gate_up.t());
      down.push_back(w.down.t());
      qkv.push_back(w.qkv.t());
    }
    gemm->Autotune(attention_, o, &x_, post_attention_);
    gemm->Autotune(normed_, gate_up, nullptr, gate_up_);
    gemm->Autotune(inner_, down, &post_attention_, x_);
    gemm->Autotune(normed_, qkv, nullptr, qkv_);
  }

 private:
  const int64_t rows_;
  at::Tensor attention_, x_, post_attention_, normed_, gate_up_, inner_, qkv_, rstd_, workspace_;
};

struct Fp8Copy {
  at::Tensor numbers, scales;

  explicit Fp8Copy(const at::Tensor& x)
      : numbers(at::empty(x.sizes(), x.options().dtype(at::kFloat8_e4m3fn))),
        scales(at::empty({x.size(0)}, x.options().dtype(at::kFloat))) {
    Make(x);
  }
  void Make(const at::Tensor& x) const {
    LaunchQuantizeRows({.rows = x.size(0),
                        .cols = x.size(1),
                        .type = CudaType::kBFloat16,
                        .stream = KernelStream()},
                       x.const_data_ptr(), numbers.data_ptr(), scales.data_ptr<float>());
  }
};

void BenchShape(Bench* bench, const char* name, int64_t inner, int64_t columns, bool adds) {
  std::vector<at::Tensor> weights, transposed, copies;
  std::vector<Fp8Copy> fp8;
  for (int i = 0; i < kCopies; ++i) {
    weights.push_back(RandomNumbers({columns, inner}));
    transposed.push_back(weights.back().t());
    fp8.emplace_back(weights.back());
    copies.push_back(fp8.back().numbers.t());
  }
  const at::Tensor all = RandomNumbers({kRows.back(), inner});
  const at::Tensor all_add = RandomNumbers({kRows.back(), columns});
  const at::Tensor all_out = at::empty({kRows.back(), columns}, all.options());
  CudaGemm tuned(CurrentGpu(), /*autotune=*/true), fixed(CurrentGpu(), true),
      of_fp8(CurrentGpu(), true);
  fixed.PinAlgorithm(all, transposed[0], adds ? &all_add : nullptr, all_out);
  for (const int64_t rows : kRows) {
    const at::Tensor x = all.narrow(0, 0, rows), out = all_out.narrow(0, 0, rows);
    const at::Tensor addend = all_add.narrow(0, 0, rows);
    const at::Tensor* add = adds ? &addend : nullptr;
    const Fp8Copy x8(x);
    const auto scales_of = [&](const Fp8Copy& copy) {
      return Fp8Scales{.a = x8.scales.const_data_ptr<float>(),
                       .b = copy.scales.const_data_ptr<float>(),
                       .per_row = true};
    };
    const Fp8Scales scales = scales_of(fp8[0]);
    tuned.Autotune(x, transposed, add, out);
    of_fp8.Autotune(x8.numbers, copies, add, out, &scales);
    const double bf16 =
        MicrosecondsOf(kCopies, [&](int i) { tuned.Multiply(x, transposed[i], add, out); });
    const double one_way =
        MicrosecondsOf(kCopies, [&](int i) { fixed.Multiply(x, transposed[i], add, out); });
    const double rounding = MicrosecondsOf(kCopies, [&](int) { x8.Make(x); });
    const double eight = MicrosecondsOf(kCopies, [&](int i) {
      const Fp8Scales own_scales = scales_of(fp8[i]);
      of_fp8.Multiply(x8.numbers, copies[i], add, out, &own_scales);
    });
    bench->Add(absl::StrCat(name, ", rows: ", rows),
               {{"batch-invariant GEMM", one_way, "us", bf16},
                {"FP8 GEMM", eight, "us", bf16},
                {"rounding of its activations", rounding, "us"}});
  }
}

}  // namespace

// The attention output and down projections, with the residual add in the epilogue and without.
void BenchGemms(Bench* bench) {
  bench->set_subject("GEMMs of a layer, and the head, tuned cuBLASLt");
  CudaGemm gemm(CurrentGpu(), /*autotune=*/true);
  for (const Gemm& shape : {Gemm{"qkv", kHidden, kQkv, false},
                            {"o", kHidden, kHidden, true},
                            {"o alone", kHidden, kHidden, false},
                            {"gate_up", kHidden, 2 * kMlp, false},
                            {"down", kMlp, kHidden, true},
                            {"down alone", kMlp, kHidden, false},
                            {"head", kHidden, kVocab, false}}) {
    BenchGemm(bench, &gemm, shape);
  }
}

void BenchGemmPower(Bench* bench) {
  bench->set_subject("power");
  CudaGemm gemm(CurrentGpu(), /*autotune=*/true);
  for (const int64_t rows : {32, 128, 256, 2048}) {
    const at::Tensor weights = RandomNumbers({kCopies, 2 * kMlp, kHidden});
    const at::Tensor x = RandomNumbers({rows, kHidden});
    at::Tensor out = RandomNumbers({rows, 2 * kMlp});
    AddSustained(bench, absl::StrCat("gate_up, rows: ", rows), kCopies, 4.0 * kHidden * kMlp * rows,
                 "TFLOP/s", [&](int i) { gemm.Multiply(x, weights[i].t(), nullptr, out); });
  }
}

// A layer's GEMMs for few rows in one launch, compared with cuBLASLt and the kernels between.
void BenchFusedLayer(Bench* bench) {
  if (!SupportsMegakernel()) {
    std::puts("This GPU does not support the fused layer kernel.");
    return;
  }
  std::vector<LayerBench::Weights> layers;
  for (int i = 0; i < kLayers; ++i) {
    const auto weight = [](int64_t to, int64_t from) {
      return RandomNumbers({to, from}, at::kBFloat16, 0.01);
    };
    layers.push_back({weight(kHidden, kHidden), weight(2 * kMlp, kHidden), weight(kHidden, kMlp),
                      weight(kQkv, kHidden), RandomNumbers({kHidden})});
  }
  const double bytes = 2.0 * (kHidden * (kHidden + 2 * kMlp + kQkv) + kMlp * kHidden);
  CudaGemm gemm(CurrentGpu(), /*autotune=*/true);
  bench->set_subject("fused decoder-layer kernel");
  bench->set_peer_name("cuBLASLt and separate kernels");
  for (const int64_t rows : {1, 2, 4, 8, 9, 12, 16, 17, 24, 32}) {
    LayerBench layer(rows);
    layer.Autotune(layers, &gemm);
    const double theirs = MicrosecondsOf(kLayers, [&](int i) { layer.Cublas(layers[i], &gemm); });
    const auto add = [&](const char* how, bool overlap, int count) {
      const double ours =
          MicrosecondsOf(kLayers, [&](int i) { layer.Chain(layers[i], overlap, count); });
      std::vector<Figure> figures = {{"time", ours, "us"}};
      if (count == 4) {
        figures[0].peer = theirs;
        figures.push_back({"rate", bytes / ours * 1e-6, "TB/s", bytes / theirs * 1e-6});
      }
      bench->Add(absl::StrCat("rows: ", rows, ", ", how), figures);
    };
    add("one launch", false, 4);
    add("one launch, overlapped", true, 4);
    add("o alone", false, 1);
    add("o and gate_up", false, 2);
    add("o, gate_up and down", false, 3);
  }
}

void BenchInvariantAndFp8Gemms(Bench* bench) {
  bench->set_subject("batch-invariant and FP8 GEMMs");
  bench->set_peer_name("bf16, tuned");
  BenchShape(bench, "qkv", kHidden, kQkv, false);
  BenchShape(bench, "o", kHidden, kHidden, true);
  BenchShape(bench, "gate_up", kHidden, 2 * kMlp, false);
  BenchShape(bench, "down", kMlp, kHidden, true);
}

}  // namespace tritonrl
