// The other kernels of a step in the shape of Qwen3-8B, and its matrix products.

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>

#include <cstring>
#include <iostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/rollout/kernel_timer.h"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/gemm/gemm.h"
#include "rollout/cuda/sampling/gpu_sampler.h"
#include "rollout/cuda/step_kernels.h"

namespace tritonrl {
namespace {

constexpr CacheHeads kShape = {32, 8, 128};
constexpr int64_t kHidden = 4096, kMlp = 12288, kVocab = 151936;
constexpr int kRotations = 8;

void* Stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

at::Tensor Numbers(at::IntArrayRef shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions(at::kCUDA).dtype(type)).normal_();
}

at::Tensor Ints(const std::vector<int32_t>& values) {
  at::Tensor host = at::empty({static_cast<int64_t>(values.size())}, at::kInt);
  std::copy(values.begin(), values.end(), host.data_ptr<int32_t>());
  return host.to(at::kCUDA);
}

double QkvTime(int64_t rows) {
  const int64_t width = (kShape.query_heads + 2 * kShape.key_heads) * kShape.head_dim;
  const at::Tensor qkv = Numbers({kRotations, rows, width}, at::kBFloat16);
  const at::Tensor weight = Numbers({kShape.head_dim}, at::kBFloat16);
  const at::Tensor table = Numbers({2, 16384, kShape.head_dim / 2}, at::kFloat);
  const at::Tensor pools = Numbers(
      {2, kRotations * rows * kPageTokens, kShape.key_heads, kShape.head_dim}, at::kBFloat16);
  at::Tensor queries = Numbers({rows, kShape.query_heads, kShape.head_dim}, at::kBFloat16);
  std::vector<int32_t> positions, slots;
  for (int64_t i = 0; i < kRotations * rows; ++i) {
    positions.push_back(static_cast<int32_t>(i * 37 % 16384));
    slots.push_back(static_cast<int32_t>(i * kPageTokens));
  }
  const at::Tensor at = Ints(positions), to = Ints(slots);
  return MicrosecondsOf(kRotations, [&](int i) {
    LaunchQkvToCache({.shape = kShape,
                      .rows = rows,
                      .qkv = qkv[i].const_data_ptr(),
                      .q_weight = weight.const_data_ptr(),
                      .k_weight = weight.const_data_ptr(),
                      .eps = 1e-6f,
                      .cos = table[0].const_data_ptr<float>(),
                      .sin = table[1].const_data_ptr<float>(),
                      .positions = at.const_data_ptr<int32_t>() + i * rows,
                      .page_slots = to.const_data_ptr<int32_t>() + i * rows,
                      .queries = queries.data_ptr(),
                      .keys = pools[0].data_ptr(),
                      .values = pools[1].data_ptr(),
                      .stream = Stream()});
  });
}

double NormTime(int64_t rows) {
  const at::Tensor x = Numbers({kRotations, rows, kHidden}, at::kBFloat16);
  const at::Tensor weight = Numbers({kHidden}, at::kBFloat16);
  at::Tensor y = Numbers({rows, kHidden}, at::kBFloat16), rstd = Numbers({rows}, at::kFloat);
  return MicrosecondsOf(kRotations, [&](int i) {
    LaunchRmsNorm({rows, kHidden, CudaType::kBFloat16, Stream()}, x[i].const_data_ptr(),
                  weight.const_data_ptr(), 1e-6f, y.data_ptr(), rstd.data_ptr<float>(), nullptr);
  });
}

double SwigluTime(int64_t rows) {
  const at::Tensor x = Numbers({kRotations, rows, 2 * kMlp}, at::kBFloat16);
  at::Tensor y = Numbers({rows, kMlp}, at::kBFloat16);
  return MicrosecondsOf(kRotations, [&](int i) {
    LaunchSwiglu({rows, kMlp, CudaType::kBFloat16, Stream()}, x[i].const_data_ptr(), y.data_ptr(),
                 nullptr);
  });
}

double GatherTime(int64_t rows) {
  const at::Tensor table = Numbers({kVocab, kHidden}, at::kBFloat16);
  at::Tensor out = Numbers({rows, kHidden}, at::kBFloat16);
  std::vector<int32_t> values;
  for (int64_t i = 0; i < kRotations * rows; ++i) {
    values.push_back(static_cast<int32_t>(i * 7919 % kVocab));
  }
  const at::Tensor ids = Ints(values);
  return MicrosecondsOf(kRotations, [&](int i) {
    LaunchGatherRows({.rows = rows,
                      .row_bytes = 2 * kHidden,
                      .from = table.const_data_ptr(),
                      .ids = ids.const_data_ptr<int32_t>() + i * rows,
                      .out = out.data_ptr(),
                      .stream = Stream()});
  });
}

double SamplingTime(const at::Tensor& logits, int count, const SamplingRow& settings) {
  const int rows = static_cast<int>(logits.size(0));
  std::vector<SamplingRow> draws(int64_t{kRotations} * count, settings);
  for (size_t i = 0; i < draws.size(); ++i) {
    draws[i].key = 1234567 + i;
    draws[i].logits_row = static_cast<int32_t>(i % rows);
  }
  at::Tensor host =
      at::empty({static_cast<int64_t>(draws.size() * sizeof(SamplingRow))}, at::kByte);
  std::memcpy(host.data_ptr(), draws.data(), host.numel());
  const at::Tensor on_gpu = host.to(at::kCUDA);
  const auto bytes = at::TensorOptions(at::kCUDA).dtype(at::kByte);
  at::Tensor workspace = at::empty({SamplingWorkspaceBytes(count, kVocab)}, bytes);
  at::Tensor drawn = at::empty({count * static_cast<int64_t>(sizeof(DrawnToken))}, bytes);
  return MicrosecondsOf(kRotations, [&](int i) {
    LaunchSampling(
        {.logits = logits.const_data_ptr<float>(),
         .vocab = kVocab,
         .draws = static_cast<const SamplingRow*>(on_gpu.const_data_ptr()) + int64_t{i} * count,
         .count = count,
         .workspace = workspace.data_ptr(),
         .drawn = static_cast<DrawnToken*>(drawn.data_ptr()),
         .stream = Stream()});
  });
}

struct Product {
  const char* name;
  int64_t from, to;
  bool onto;  // adds to the residual stream
};

void BenchProduct(CudaGemm* gemm, const Product& product) {
  // Copies of the weights, so that no part of one is in the cache (50 MB) from the call before.
  const int64_t bytes = 2 * product.from * product.to;
  const int copies = bytes > (int64_t{1} << 30) ? 1 : 4;
  const at::Tensor weights = Numbers({copies, product.to, product.from}, at::kBFloat16);
  const bool head = product.to == kVocab;
  for (const int64_t rows : {1, 8, 32, 64, 128, 256, 512}) {
    const at::Tensor x = Numbers({rows, product.from}, at::kBFloat16);
    const at::Tensor residual = Numbers({rows, product.to}, at::kBFloat16);
    at::Tensor out = Numbers({rows, product.to}, head ? at::kFloat : at::kBFloat16);
    const double time = MicrosecondsOf(copies, [&](int i) {
      gemm->Multiply(x, weights[i].t(), product.onto ? &residual : nullptr, out);
    });
    absl::PrintF("%-8s %6d -> %6d %5d %9.1f %7.2f %8.1f\n", product.name, product.from, product.to,
                 rows, time, bytes / time * 1e-6,
                 2.0 * product.from * product.to * rows / time * 1e-6);
  }
}

void BenchProductPower(CudaGemm* gemm, const Product& product, int64_t rows) {
  const at::Tensor weights = Numbers({4, product.to, product.from}, at::kBFloat16);
  const at::Tensor x = Numbers({rows, product.from}, at::kBFloat16);
  at::Tensor out = Numbers({rows, product.to}, at::kBFloat16);
  const Sustained found =
      SustainedOf(4, [&](int i) { gemm->Multiply(x, weights[i].t(), nullptr, out); });
  PrintPower(absl::StrFormat("%s, %d rows", product.name, rows), found,
             2.0 * product.from * product.to * rows / found.microseconds * 1e-6, "TFLOP/s");
}

}  // namespace

void BenchProductsPower() {
  std::cout << "Products for long: time, rate, mean power, clock\n";
  CudaGemm gemm(at::Device(at::kCUDA, c10::cuda::current_device()), /*autotune=*/true);
  for (const int64_t rows : {32, 128, 256, 2048}) {
    BenchProductPower(&gemm, {"gate_up", kHidden, 2 * kMlp, false}, rows);
  }
}

void BenchStepKernels() {
  std::cout << "Kernels of a step, us\n"
            << "  rows  qkv to cache  RMSNorm  SwiGLU  embeddings\n";
  for (const int64_t rows : {1, 32, 256}) {
    absl::PrintF("%6d %13.2f %8.2f %7.2f %11.2f\n", rows, QkvTime(rows), NormTime(rows),
                 SwigluTime(rows), GatherTime(rows));
  }
}

void BenchSampling() {
  std::cout << "Sampling of 151,936 logits, us (two reads of 256 rows at 4.5 TB/s: 69)\n"
            << "  rows  logits   plain  top_k 50  top_p 0.95  greedy\n";
  const at::Tensor flat = Numbers({256, kVocab}, at::kFloat);
  // As of a model that knows: a few tokens hold nearly all.
  const at::Tensor peaked = flat.mul(2.0);
  peaked.slice(1, 1000, 1020).add_(12.0);
  for (const int count : {1, 32, 256}) {
    for (const bool of_peaked : {true, false}) {
      const at::Tensor& logits = of_peaked ? peaked : flat;
      absl::PrintF("%6d  %6s %7.1f %9.1f %11.1f %7.1f\n", count, of_peaked ? "peaked" : "flat",
                   SamplingTime(logits, count, {}), SamplingTime(logits, count, {.top_k = 50}),
                   SamplingTime(logits, count, {.top_p = 0.95}),
                   SamplingTime(logits, count, {.temperature = 0}));
    }
  }
}

void BenchProducts() {
  std::cout << "Products of a layer, and the head, tuned cuBLASLt\n"
            << "(o and down with the residual stream as summand, and alone)\n"
            << "                            rows        us    TB/s  TFLOP/s\n";
  CudaGemm gemm(at::Device(at::kCUDA, c10::cuda::current_device()), /*autotune=*/true);
  BenchProduct(&gemm, {"qkv", kHidden, 6144, false});
  BenchProduct(&gemm, {"o", kHidden, kHidden, true});
  BenchProduct(&gemm, {"o alone", kHidden, kHidden, false});
  BenchProduct(&gemm, {"gate_up", kHidden, 2 * kMlp, false});
  BenchProduct(&gemm, {"down", kMlp, kHidden, true});
  BenchProduct(&gemm, {"alone", kMlp, kHidden, false});
  BenchProduct(&gemm, {"head", kHidden, kVocab, false});
}

}  // namespace tritonrl
