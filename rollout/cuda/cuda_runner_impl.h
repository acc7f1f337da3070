// The GPU side of CudaRunner's steps, and the sizes that follow from its configuration.
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
#include "rollout/engine/model_runner.h"
#include "rollout/engine/sampler.h"

namespace tritonrl {

// A step in flight. The CPU may read its draws once `done` is reached.
struct InFlightStep {
  int64_t draws = 0;
  at::Tensor drawn;  // pinned, [draws] DrawnToken
  cudaEvent_t done = nullptr;
  // Of a step with NeedsHost(): its results, complete when it has been launched.
  bool on_host = false;
  std::vector<TokenDraw> host_draws;
  std::vector<TokenLogProbs> prompt_log_probs;
};

// Whether the GPU sampler alone cannot give the step's results: a draw draws_on_host() or has
// log-probabilities, or a prompt's are wanted.
bool NeedsHost(const ModelStep& step);

// All calls need the weights' GPU as the current device and throw c10::Error if a CUDA call fails.
struct CudaRunner::Impl {
  // `stream` must be the current one.
  Impl(std::shared_ptr<Weights> weights, const EngineConfig& config, const EngineContext& context,
       int64_t pages, c10::cuda::CUDAStream stream);
  ~Impl();

  StepInputs OnGpu(const PackedStep& packed) const;
  // Compute the logits of a packed step whose block is on the GPU, and its draws
  // [first, first + count).
  void RunLayers(const PackedStep& packed);
  void Sample(const PackedStep& packed, int first, int count, DrawnToken* to);
  // Broadcasts rank 0's last tokens to all ranks.
  void BroadcastDraws();
  void Autotune(int64_t rows);
  // Captures a graph for decode-only steps of packed.rows rows, with their draws.
  void Capture(const PackedStep& packed);
  // Whether all ranks have a graph. No rank may replay an all-reduce that another rank launches
  // outside a graph.
  bool AllHave(bool graph);
  // Destroys all graphs. Also runs before NCCL is aborted because other ranks are lost: NCCL waits
  // for graphs.
  void DestroyGraphs();
  // Blocks until the GPU has reached the event.
  void Await(cudaEvent_t event);
  // Blocks until no step is in flight on the GPU.
  void Synchronize();
  void Launch(const ModelStep& step);
  // Fills host_draws and prompt_log_probs of a step that NeedsHost() and is done. `sampled`
  // [draws]: the rows that StepPacker packed. Overwrites logits.
  void AddHostResults(const ModelStep& step, const PackedStep& packed, const SamplingRow* sampled,
                      InFlightStep* result);
  void DrawOnHost(const ModelStep& step, const SamplingRow* sampled, InFlightStep* result);
  void AddDrawLogProbs(const ModelStep& step, const SamplingRow* sampled, InFlightStep* result);
  void AddPromptLogProbs(const ModelStep& step, const PackedStep& packed, InFlightStep* result);
  std::vector<TokenDraw> Collect();

  int32_t* At(int64_t place) const { return words.data_ptr<int32_t>() + place; }

  const at::Device device;
  const c10::cuda::CUDAStream stream;
  Collectives* const ranks;  // null: the model is not sharded
  StepPacker tables;
  CudaTransformer layers;
  const bool tunes;  // false: GEMM algorithms are pinned
  CudaKvCache cache;
  at::Tensor words;  // see StepPacker::words
  at::Tensor workspace;
  at::Tensor drawn;  // [kMaxDraws] DrawnToken
  std::vector<at::Tensor> blocks;
  size_t next_block = 0;
  std::vector<cudaEvent_t> events;
  size_t next_event = 0;
  std::deque<InFlightStep> in_flight;
  Sampler sampler;                              // for DrawOnHost
  std::vector<TokenLogProbs> prompt_log_probs;  // of the step collected last
  std::map<int64_t, cudaGraphExec_t> graphs;  // by number of rows; null: some rank's capture failed
  double graph_seconds = 0;
  absl::Status quantize_status;  // of the last QuantizeWeights
};

// Maximum number of draws of one sampling launch. A step that ends the prompts of large groups can
// have more draws, and then several launches.
inline constexpr int kMaxDraws = 2048;

// Limits for a resolved configuration; they depend on the current GPU.
StepPacker::Limits TableLimits(const ModelConfig& model, const EngineConfig& config,
                               const EngineContext& context);

CacheType CacheTypeOf(const EngineConfig& config);

CudaTransformer::Options LayerOptions(const StepPacker& tables, const EngineConfig& config,
                                      const EngineContext& context);

// InvalidArgument: a field is too large, contradicts another field, or does not fit this model.
// FailedPrecondition: the current GPU does not support a field. The message names the fields.
absl::Status CheckSupported(const ModelConfig& model, const EngineConfig& config,
                            const EngineContext& context);

// Bytes of the KV cache for max_num_seqs sequences of max_length tokens, or fewer if the current
// GPU has too little memory beside the runner's other buffers. Throws c10::Error if the memory
// query fails.
int64_t DefaultCacheBytes(const ModelConfig& model, const EngineConfig& config,
                          const EngineContext& context);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_IMPL_H_
