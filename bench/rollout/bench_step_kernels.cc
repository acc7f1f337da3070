// Measures the small kernels of a step at the shape of Qwen3-8B, and unmapping and mapping of
// memory.

#include <ATen/ops/empty.h>
#include <c10/core/Device.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rollout/kernel_timer.h"
#include "model/cuda/fused/kernels.h"
#include "rollout/cuda/cuda_kv_cache.h"
#include "rollout/cuda/sampling/gpu_sampler.h"
#include "rollout/cuda/step_kernels.h"

namespace tritonrl {
namespace {

constexpr CacheHeads kShape = {32, 8, 128};
constexpr int64_t kHidden = 4096, kMlp = 12288, kVocab = 151936;
constexpr int kRotations = 8;

double QkvTime(int64_t rows) {
  const int64_t width = (kShape.query_heads + 2 * kShape.key_heads) * kShape.head_dim;
  const at::Tensor qkv = RandomNumbers({kRotations, rows, width});
  const at::Tensor weight = RandomNumbers({kShape.head_dim});
  const at::Tensor table = RandomNumbers({2, 16384, kShape.head_dim / 2}, at::kFloat);
  const at::Tensor pools =
      RandomNumbers({2, kRotations * rows * kPageTokens, kShape.key_heads, kShape.head_dim});
  at::Tensor queries = RandomNumbers({rows, kShape.query_heads, kShape.head_dim});
  std::vector<int32_t> positions, slots;
  for (int64_t i = 0; i < kRotations * rows; ++i) {
    positions.push_back(static_cast<int32_t>(i * 37 % 16384));
    slots.push_back(static_cast<int32_t>(i * kPageTokens));
  }
  const at::Tensor at = IntsOnGpu(positions), to = IntsOnGpu(slots);
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
                      .stream = KernelStream()});
  });
}

double NormTime(int64_t rows) {
  const at::Tensor x = RandomNumbers({kRotations, rows, kHidden});
  const at::Tensor weight = RandomNumbers({kHidden});
  at::Tensor y = RandomNumbers({rows, kHidden}), rstd = RandomNumbers({rows}, at::kFloat);
  return MicrosecondsOf(kRotations, [&](int i) {
    LaunchRmsNorm({rows, kHidden, CudaType::kBFloat16, KernelStream()}, x[i].const_data_ptr(),
                  weight.const_data_ptr(), 1e-6f, y.data_ptr(), rstd.data_ptr<float>(), nullptr);
  });
}

double SwigluTime(int64_t rows) {
  const at::Tensor x = RandomNumbers({kRotations, rows, 2 * kMlp});
  at::Tensor y = RandomNumbers({rows, kMlp});
  return MicrosecondsOf(kRotations, [&](int i) {
    LaunchSwiglu({rows, kMlp, CudaType::kBFloat16, KernelStream()}, x[i].const_data_ptr(),
                 y.data_ptr(), nullptr);
  });
}

double GatherTime(int64_t rows) {
  const at::Tensor table = RandomNumbers({kVocab, kHidden});
  at::Tensor out = RandomNumbers({rows, kHidden});
  std::vector<int32_t> values;
  for (int64_t i = 0; i < kRotations * rows; ++i) {
    values.push_back(static_cast<int32_t>(i * 7919 % kVocab));
  }
  const at::Tensor ids = IntsOnGpu(values);
  return MicrosecondsOf(kRotations, [&](int i) {
    LaunchGatherRows({.rows = rows,
                      .row_bytes = 2 * kHidden,
                      .from = table.const_data_ptr(),
                      .ids = ids.const_data_ptr<int32_t>() + i * rows,
                      .out = out.data_ptr(),
                      .stream = KernelStream()});
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
         .stream = KernelStream()});
  });
}

int64_t FreeBytes() {
  size_t free = 0, total = 0;
  TORCH_CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess, "the GPU does not say what is free");
  return static_cast<int64_t>(free);
}

}  // namespace

void BenchStepKernels(Bench* bench) {
  bench->set_subject("kernels of a step");
  for (const int64_t rows : {1, 32, 256}) {
    bench->Add(absl::StrCat("rows: ", rows), {{"qkv to cache", QkvTime(rows), "us"},
                                              {"RMSNorm", NormTime(rows), "us"},
                                              {"SwiGLU", SwigluTime(rows), "us"},
                                              {"embeddings", GatherTime(rows), "us"}});
  }
}

void BenchSampling(Bench* bench) {
  bench->set_subject("sampling of 151,936 logits");
  const at::Tensor flat = RandomNumbers({256, kVocab}, at::kFloat);
  // As of a trained model: a few tokens have nearly all of the probability.
  const at::Tensor peaked = flat.mul(2.0);
  peaked.slice(1, 1000, 1020).add_(12.0);
  for (const int count : {1, 32, 256}) {
    for (const bool of_peaked : {true, false}) {
      const at::Tensor& logits = of_peaked ? peaked : flat;
      // The bound is two reads at 4.5 TB/s.
      const double bound = 2.0 * count * kVocab * sizeof(float) / 4.5e6;
      const auto time = [&](const char* metric, const SamplingRow& settings) {
        return Figure{metric, SamplingTime(logits, count, settings), "us", std::nullopt, bound};
      };
      bench->Add(absl::StrCat("rows: ", count, of_peaked ? ", peaked" : ", flat"),
                 {time("plain", {}), time("top_k 50", {.top_k = 50}),
                  time("top_p 0.95", {.top_p = 0.95}), time("greedy", {.temperature = 0})});
    }
  }
}

void BenchMappedMemory(Bench* bench) {
  bench->set_subject("memory of a cache");
  const at::Device device(at::kCUDA, c10::cuda::current_device());
  for (const int64_t gib : {1, 16, 64, 96}) {
    if ((gib + 4) << 30 > FreeBytes()) continue;
    std::unique_ptr<MappedMemory> memory;
    const double first =
        SecondsOf([&] { memory = std::make_unique<MappedMemory>(gib << 30, device); });
    TORCH_CHECK(cudaMemset(memory->data(), 1, gib << 30) == cudaSuccess &&
                    cudaDeviceSynchronize() == cudaSuccess,
                "writing to mapped memory failed");
    const int64_t held = FreeBytes();
    const double unmap = SecondsOf([&] { memory->Unmap(); });
    const int64_t more = FreeBytes() - held;
    const double map = SecondsOf([&] { memory->Map(); });
    bench->Add(absl::StrCat(gib, " GiB"),
               {{"time of the first mapping", 1e3 * first, "ms"},
                {"time to unmap", 1e3 * unmap, "ms"},
                {"time to map again", 1e3 * map, "ms"},
                {"free meanwhile", static_cast<double>(more) / (int64_t{1} << 30), "GiB"}});
  }
}

}  // namespace tritonrl
