// What the step bench measures: batches written as text, and the arithmetic of a step.

#ifndef TRITONRL_BENCH_MODEL_STEP_BATCHES_H_
#define TRITONRL_BENCH_MODEL_STEP_BATCHES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// Lengths of the sequences of each batch: "16384;4096,4096" is a batch of one sequence and one of
// two. Errors name the part that is no positive number.
absl::StatusOr<std::vector<std::vector<int64_t>>> ParseBatches(absl::string_view text);

// FLOP of forward and backward of such a batch. A GEMM counts 2 for each parameter and
// token in the forward and 4 in the backward (the embedding is none), causal attention of a
// sequence of L tokens 6 H D L^2 in each layer: half of the square.
double StepFlops(const ModelConfig& config, const std::vector<int64_t>& lengths);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_MODEL_STEP_BATCHES_H_
