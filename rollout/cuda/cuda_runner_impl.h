#ifndef TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_IMPL_H_
#define TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_IMPL_H_

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "model/weights/model_config.h"
#include "rollout/cuda/cuda_kv_cache.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/cuda/cuda_transformer.h"
#include "rollout/cuda/sampling/gpu_sampler.h"
#include "rollout/cuda/step_packer.h"

// The GPU side of CudaRunner's steps, and the sizes that follow from its configuration.

namespace tritonrl {

// A step in flight: its draws in memory that the GPU writes and the CPU reads.
struct InFlightStep {
  int64_t draws = 0;
  at::Tensor drawn;  // pinned, [draws] DrawnToken
  cudaEvent_t done = nullptr;
};

// Of all calls the weights' GPU must be the current one; they throw c10::Error if it refuses.
struct CudaRunner::Impl {
  // `stream` must be the current one.
  Impl(std::shared_ptr<Weights> weights, const EngineConfig& config, const EngineContext& context,
       int64_t pages, c10::cuda::CUDAStream stream);
  ~Impl();

  StepInputs OnGpu(const PackedStep& packed) const;
  // Logits and draws of a packed step whose block is on the GPU.
  void RunLayers(const PackedStep& packed);
  void Sample(const PackedStep& packed, int first, int count, DrawnToken* to);
  // Gives rank 0's last tokens to all ranks.
  void BroadcastDraws();
  void Autotune(int64_t rows);
  // Captures a graph for decode-only steps of the packed number of rows, with their draws.
  void Capture(const PackedStep& packed);
  // Whether all ranks have a graph: no rank may replay an all-reduce that another launches by
  // itself.
  bool AllHave(bool graph);
  // Destroys all graphs, also when other ranks are lost, because NCCL waits for graphs.
  void DestroyGraphs();
  // Blocks until the GPU has reached the event.
  void Await(cudaEvent_t event);
  // Blocks until no step is in flight on the GPU.
  void Synchronize();
  void Launch(const ModelStep& step);
  std::vector<TokenDraw> Collect();

  int32_t* At(int64_t place) const { return words.data_ptr<int32_t>() + place; }

  const at::Device device;
  const c10::cuda::CUDAStream stream;
  Collectives* const ranks;  // null: the model is whole
  StepPacker tables;
  CudaTransformer layers;
  const bool tunes;  // else products are fixed
  CudaKvCache cache;
  at::Tensor words;  // see StepPacker::words
  at::Tensor workspace;
  at::Tensor drawn;  // [kMaxDraws] DrawnToken
  std::vector<at::Tensor> blocks;
  size_t next_block = 0;
  std::vector<cudaEvent_t> events;
  size_t next_event = 0;
  std::deque<InFlightStep> in_flight;
  std::map<int64_t, cudaGraphExec_t> graphs;  // by rows; null: there was no making one
  double graph_seconds = 0;
  absl::Status quantize_status;  // of the last QuantizeWeights
};

// Draws of one launch; steps that end the prompts of large groups can have more.
inline constexpr int kMaxDraws = 2048;

// For a resolved configuration; depends on the current GPU.
StepPacker::Limits TableLimits(const ModelConfig& model, const EngineConfig& config,
                               const EngineContext& context);

CacheType CacheTypeOf(const EngineConfig& config);

CudaTransformer::Options LayerOptions(const StepPacker& tables, const EngineConfig& config,
                                      const EngineContext& context);

// InvalidArgument naming two fields that do not go together, or one that is not for this model;
// FailedPrecondition for one that the current GPU cannot serve.
absl::Status CheckSupported(const ModelConfig& model, const EngineConfig& config,
                            const EngineContext& context);

// Bytes of the KV cache of max_num_seqs sequences of max_length, or fewer if the current GPU has
// fewer beside the runner's other memory. Throws c10::Error if the GPU does not answer.
int64_t DefaultCacheBytes(const ModelConfig& model, const EngineConfig& config,
                          const EngineContext& context);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_IMPL_H_
