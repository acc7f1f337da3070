// The products of a layer of Qwen3-8B, for few rows: in one launch, and by cuBLASLt with the
// kernels between them.

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>

#include <iostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/rollout/kernel_timer.h"
#include "model/cuda/gemm/gemm.h"
#include "model/cuda/gemm/megakernel.h"

namespace tritonrl {
namespace {

constexpr int64_t kHidden = 4096, kMlp = 12288, kQkv = 6144;
constexpr int kLayers = 4;
constexpr float kEps = 1e-6f;

void* Stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

at::Tensor Numbers(at::IntArrayRef shape, double scale) {
  return at::empty(shape, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16)).normal_(0, scale);
}

class LayerBench {
 public:
  explicit LayerBench(int64_t rows)
      : rows_(rows),
        attention_(Numbers({rows, kHidden}, 1)),
        x_(Numbers({rows, kHidden}, 1)),
        post_attention_(Numbers({rows, kHidden}, 1)),
        normed_(Numbers({rows, kHidden}, 1)),
        gate_up_(Numbers({rows, 2 * kMlp}, 1)),
        inner_(Numbers({rows, kMlp}, 1)),
        qkv_(Numbers({rows, kQkv}, 1)),
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
                            .stream = Stream()};
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
    LaunchRmsNorm({rows_, kHidden, CudaType::kBFloat16, Stream()}, x.const_data_ptr(),
                  weight.const_data_ptr(), kEps, normed_.data_ptr(), rstd_.data_ptr<float>(),
                  nullptr);
  }

  void Cublas(const Weights& w, CudaGemm* gemm) {
    gemm->Multiply(attention_, w.o.t(), &x_, post_attention_);
    Norm(post_attention_, w.norm);
    gemm->Multiply(normed_, w.gate_up.t(), nullptr, gate_up_);
    LaunchSwiglu({rows_, kMlp, CudaType::kBFloat16, Stream()}, gate_up_.const_data_ptr(),
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

}  // namespace

void BenchChains() {
  if (!SupportsMegakernel()) {
    std::cout << "Chains of products: this GPU does not take them\n";
    return;
  }
  std::vector<LayerBench::Weights> layers;
  for (int i = 0; i < kLayers; ++i) {
    layers.push_back({Numbers({kHidden, kHidden}, 0.01), Numbers({2 * kMlp, kHidden}, 0.01),
                      Numbers({kHidden, kMlp}, 0.01), Numbers({kQkv, kHidden}, 0.01),
                      Numbers({kHidden}, 1)});
  }
  const double bytes = 2.0 * (kHidden * (kHidden + 2 * kMlp + kQkv) + kMlp * kHidden);
  CudaGemm gemm(at::Device(at::kCUDA, c10::cuda::current_device()), /*autotune=*/true);
  std::cout << "A layer's products, us and TB/s of weights\n"
            << "rows     cuBLASLt, norms   one launch       overlapped      o alone  +gate_up   "
               "+down\n";
  for (const int64_t rows : {1, 2, 4, 8, 9, 12, 16, 17, 24, 32}) {
    LayerBench bench(rows);
    bench.Autotune(layers, &gemm);
    const double theirs = MicrosecondsOf(kLayers, [&](int i) { bench.Cublas(layers[i], &gemm); });
    double ours[2], part[3];
    for (const bool overlap : {false, true}) {
      ours[overlap] = MicrosecondsOf(kLayers, [&](int i) { bench.Chain(layers[i], overlap, 4); });
    }
    for (int count = 1; count <= 3; ++count) {
      part[count - 1] =
          MicrosecondsOf(kLayers, [&](int i) { bench.Chain(layers[i], false, count); });
    }
    absl::PrintF("%4d %9.1f %6.2f %9.1f %6.2f %9.1f %6.2f %9.1f %9.1f %9.1f\n", rows, theirs,
                 bytes / theirs * 1e-6, ours[0], bytes / ours[0] * 1e-6, ours[1],
                 bytes / ours[1] * 1e-6, part[0], part[1], part[2]);
  }
}

}  // namespace tritonrl
