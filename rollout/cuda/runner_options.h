// What CudaRunner makes of its options: sizes of its tables, memory for keys and values.
#ifndef TRITONRL_ROLLOUT_CUDA_RUNNER_OPTIONS_H_
#define TRITONRL_ROLLOUT_CUDA_RUNNER_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "model/config.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/cuda/step_layers.h"
#include "rollout/cuda/step_tables.h"

namespace tritonrl {

// Draws of one launch; steps that end the prompts of large groups can have more.
inline constexpr int kMostDraws = 2048;

// For options with no 0 left; asks the current GPU what it is.
StepTables::Limits TableLimits(const ModelConfig& config, const CudaRunner::Options& options);

CacheType CacheTypeOf(const CudaRunner::Options& options);

StepLayers::Options LayerOptions(const StepTables& tables, const CudaRunner::Options& options);

// InvalidArgument naming two options that do not go together, or one that is not for this model;
// FailedPrecondition for one that the current GPU cannot serve.
absl::Status CheckOptions(const ModelConfig& config, const CudaRunner::Options& options);

// Bytes for what max_running sequences of max_length can hold, or less if the current GPU has less
// beside what the runner takes otherwise. Throws c10::Error if the GPU does not answer.
int64_t ChosenCacheBytes(const ModelConfig& config, const CudaRunner::Options& options);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_RUNNER_OPTIONS_H_
