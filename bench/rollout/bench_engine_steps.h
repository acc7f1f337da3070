// Times of single steps of the engine's runner, for engine_bench.
#ifndef TRITONRL_BENCH_ROLLOUT_BENCH_ENGINE_STEPS_H_
#define TRITONRL_BENCH_ROLLOUT_BENCH_ENGINE_STEPS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "model/weights/model_config.h"
#include "rollout/cuda/cuda_runner.h"

namespace tritonrl {

// What a step reads at least: the weights, and the cache of its rows, once.
struct StepBound {
  double weight_bytes = 0, token_bytes = 0;  // of a step; of a token in the cache
  double gb_per_s = 0;
  double Milliseconds(int rows, double context) const {
    return (weight_bytes + rows * context * token_bytes) / gb_per_s / 1e6;
  }
};

StepBound BoundOf(const ModelConfig& config, const CudaRunner::Options& options, double gb_per_s);

// `rows` sequences of `context` tokens that decode one more, and beside them `chunk` tokens (or
// none) of a prompt of which context / 2 are in the cache.
struct StepLoad {
  int rows = 0;
  int64_t context = 0, chunk = 0;
};

struct StepTiming {
  double seconds = 4;      // that such steps run, after a shorter run that settles the clock
  double temperature = 1;  // of the draws
  int kernels = 10;        // to name, by time
};

// Prints one line of JSON about such steps, and their kernels, on stdout. `runner` has nothing else
// to do; nothing is measured if its pages are too few for two rows.
absl::Status ProfileSteps(const StepLoad& load, const StepTiming& timing, const StepBound& bound,
                          ModelRunner* runner);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_ROLLOUT_BENCH_ENGINE_STEPS_H_
