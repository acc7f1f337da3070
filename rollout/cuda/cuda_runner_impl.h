// What a CudaRunner holds: the GPU's side of steps.
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
#include "rollout/cuda/cuda_runner.h"
#include "rollout/cuda/gpu_cache.h"
#include "rollout/cuda/gpu_sampler.h"
#include "rollout/cuda/step_layers.h"
#include "rollout/cuda/step_tables.h"

namespace tritonrl {

// A step under way: its draws in memory that the GPU writes and the host reads.
struct UnderWay {
  int64_t draws = 0;
  at::Tensor drawn;  // pinned, [draws] DrawnToken
  cudaEvent_t done = nullptr;
};

// Of all calls the weights' GPU must be the current one; they throw c10::Error if it refuses.
struct CudaRunner::Impl {
  // `stream` must be the current one.
  Impl(std::shared_ptr<Weights> weights, const Options& options, int64_t pages,
       c10::cuda::CUDAStream stream);
  ~Impl();

  StepOnGpu OnGpu(const PackedStep& packed) const;
  // Logits and draws of a packed step whose block is on the GPU.
  void RunLayers(const PackedStep& packed);
  void Sample(const PackedStep& packed, int first, int count, DrawnToken* to);
  // Gives rank 0's last tokens to all ranks.
  void ShareDraws();
  void Tune(int64_t rows);
  // Captures steps of so many rows that only decode, and their draws.
  void Capture(const PackedStep& packed);
  // Whether all ranks have a graph: none may replay sums that another launches one by one.
  bool AllHave(bool graph);
  // All that there are: also when other ranks are lost, as NCCL gives up nothing that graphs hold.
  void DestroyGraphs();
  // Until the GPU has reached the event.
  void Await(cudaEvent_t event);
  // Until nothing of any step is under way on the GPU.
  void Synchronize();
  void Launch(const ModelStep& step);
  std::vector<TokenDraw> Collect();

  int32_t* At(int64_t place) const { return words.data_ptr<int32_t>() + place; }

  const at::Device device;
  const c10::cuda::CUDAStream stream;
  RankSum* const ranks;  // null: the model is whole
  StepTables tables;
  StepLayers layers;
  const bool tunes;  // else products are fixed
  GpuCache cache;
  at::Tensor words;  // see StepTables::words
  at::Tensor workspace;
  at::Tensor drawn;  // [kMostDraws] DrawnToken
  std::vector<at::Tensor> blocks;
  size_t next_block = 0;
  std::vector<cudaEvent_t> events;
  size_t next_event = 0;
  std::deque<UnderWay> under_way;
  std::map<int64_t, cudaGraphExec_t> graphs;  // by rows; null: there was no making one
  double graph_seconds = 0;
  absl::Status copied;  // of the last CopyWeights
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_IMPL_H_
