#include "rollout/cuda/cuda_runner.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/torch_runtime.h"
#include "rollout/cuda/cuda_kv_cache.h"
#include "rollout/cuda/cuda_runner_impl.h"
#include "rollout/cuda/sampling/gpu_sampler.h"

namespace tritonrl {
namespace {

// Runs `work` with `device` as the current GPU. Converts LibTorch's exceptions to a Status whose
// message begins with `what`.
template <typename Work>
absl::Status OnGpu(at::Device device, const std::string& what, Work work) {
  return CatchTorch(what, "lower cache_bytes, max_num_seqs or max_num_batched_tokens", [&] {
    const c10::cuda::CUDAGuard on_device(device);
    work();
  });
}

}  // namespace

bool CudaRunner::Supports(const Weights& weights) {
  const ModelConfig& config = weights.config();
  return weights.device().is_cuda() && weights.dtype() == at::kBFloat16 &&
         (config.head_dim == 64 || config.head_dim == 128) &&
         config.num_heads <= 16 * config.num_kv_heads && config.vocab_size % 4 == 0 &&
         config.vocab_size <= kMaxVocab && config.hidden_size % 8 == 0 &&
         config.intermediate_size % 8 == 0;
}

absl::StatusOr<std::unique_ptr<CudaRunner>> CudaRunner::Create(std::shared_ptr<Weights> weights,
                                                               const EngineConfig& given_config,
                                                               const EngineContext& given_context) {
  const ModelConfig& model = weights->config();
  EngineConfig config = given_config;
  EngineContext context = given_context;
  RETURN_IF_ERROR(ResolveEngineConfig(/*cuda=*/true, config.batch_invariant() ? kInvariantChunk : 0,
                                      model.max_positions, &config, &context));
  absl::Status checked;
  RETURN_IF_ERROR(OnGpu(weights->device(), "the GPU",
                        [&] { checked = CheckSupported(model, config, context); }));
  RETURN_IF_ERROR(checked);
  const int64_t page_bytes = CudaKvCache::PageBytes(model, CacheTypeOf(config));
  std::unique_ptr<Impl> impl;
  const absl::Status made = OnGpu(weights->device(), "the engine's memory", [&] {
    if (config.cache_bytes() == 0) {
      config.set_cache_bytes(DefaultCacheBytes(model, config, context));
      if (config.cache_bytes() < page_bytes) return;
    }
    const int64_t pages = std::max<int64_t>(1, config.cache_bytes() / page_bytes);
    const auto stream =
        c10::cuda::getStreamFromPool(/*isHighPriority=*/false, weights->device().index());
    const c10::cuda::CUDAStreamGuard on_stream(stream);
    impl = std::make_unique<Impl>(std::move(weights), config, context, pages, stream);
  });
  RETURN_IF_ERROR(
      AddContext(made, absl::StrCat("with a cache of ", config.cache_bytes() >> 20, " MiB")));
  if (impl == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no GPU memory is left for the KV cache: beside the engine's buffers and ",
                     context.spare_bytes >> 20, " MiB reserved for training, ",
                     (page_bytes - config.cache_bytes()) >> 20,
                     " MiB are missing; lower max_num_seqs, max_length or max_num_batched_tokens"));
  }
  return std::unique_ptr<CudaRunner>(new CudaRunner(config, context, std::move(impl)));
}

CudaRunner::CudaRunner(const EngineConfig& config, const EngineContext& context,
                       std::unique_ptr<Impl> impl)
    : config_(config), context_(context), impl_(std::move(impl)) {}
CudaRunner::~CudaRunner() {
  OnGpu(impl_->device, "the engine's end", [&] { impl_.reset(); }).IgnoreError();
}

int64_t CudaRunner::vocab_size() const { return impl_->layers.vocab(); }
int CudaRunner::num_pages() const { return static_cast<int>(impl_->cache.pages()); }
int CudaRunner::page_size() const { return kPageTokens; }
int CudaRunner::graphs() const {
  // A row count whose capture failed has a null entry.
  return static_cast<int>(std::count_if(impl_->graphs.begin(), impl_->graphs.end(),
                                        [](const auto& entry) { return entry.second != nullptr; }));
}
double CudaRunner::graph_seconds() const { return impl_->graph_seconds; }
bool CudaRunner::fused_decode() const { return impl_->layers.fused_decode(); }

void CudaRunner::WeightsChanged() {
  // The next Launch returns the error.
  impl_->quantize_status = OnGpu(impl_->device, "copies of the weights", [&] {
    const c10::cuda::CUDAStreamGuard on(impl_->stream);
    cudaDeviceSynchronize();
    impl_->layers.QuantizeWeights();
  });
}

absl::Status CudaRunner::Sleep() {
  if (!impl_->in_flight.empty()) {
    return absl::FailedPreconditionError("Sleep() needs all steps to be collected");
  }
  return OnGpu(impl_->device, "sleep: releasing the KV cache", [&] {
    impl_->Synchronize();
    impl_->cache.Sleep();
  });
}

absl::Status CudaRunner::Wake() {
  const absl::Status taken =
      OnGpu(impl_->device, "wake: allocating the KV cache", [&] { impl_->cache.Wake(); });
  if (!absl::IsResourceExhausted(taken)) return taken;
  size_t free = 0, total = 0;
  cudaError_t asked = cudaSuccess;
  RETURN_IF_ERROR(OnGpu(impl_->device, "the GPU", [&] { asked = cudaMemGetInfo(&free, &total); }));
  if (asked != cudaSuccess) return taken;
  return absl::ResourceExhaustedError(
      absl::StrCat("keys and values need ", config_.cache_bytes() >> 20, " MiB, and the GPU has ",
                   free >> 20, " free; lower cache_bytes or free other GPU memory"));
}

absl::Status CudaRunner::Launch(const ModelStep& step) {
  if (impl_->cache.asleep()) {
    return absl::FailedPreconditionError("the engine sleeps: call Wake() before a step");
  }
  RETURN_IF_ERROR(impl_->quantize_status);
  return OnGpu(impl_->device, "a step of generation", [&] { impl_->Launch(step); });
}

std::vector<TokenLogProbs> CudaRunner::TakePromptLogProbs() {
  return std::exchange(impl_->prompt_log_probs, {});
}

absl::StatusOr<std::vector<TokenDraw>> CudaRunner::Collect() {
  if (impl_->in_flight.empty()) {
    return absl::FailedPreconditionError("no step has been launched");
  }
  std::vector<TokenDraw> draws;
  RETURN_IF_ERROR(OnGpu(impl_->device, "a step of generation", [&] { draws = impl_->Collect(); }));
  return draws;
}

}  // namespace tritonrl
