// What two trainers of one model are compared on: initial weights and the batches of each step, in
// files that both read.
#ifndef TRITONRL_BENCH_TRAINER_CURVE_INPUTS_H_
#define TRITONRL_BENCH_TRAINER_CURVE_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/config/config.pb.h"
#include "trainer/sft/sft_data.h"

namespace tritonrl {

struct CurveSettings {
  int64_t steps = 300;
  int sequences = 16;  // in a step
  int64_t max_sequence_tokens = 1024;
  int64_t micro_batch_tokens = 16384;
  uint64_t seed = 0;
};

// The batches of all steps: examples of the generated corpus (tasks/dataset.h, fresh in each step)
// through the mini policy's tokenizer. `folder` keeps the corpus.
absl::StatusOr<std::vector<SftBatch>> MakeCurveBatches(const CurveSettings& settings,
                                                       const std::string& folder);

// A line of JSON for each step: its learning rate, and its sequences with their tokens and the
// place of the first token that predicts one of the response.
absl::Status WriteCurveBatches(const std::vector<SftBatch>& batches, const OptimizerConfig& config,
                               const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_TRAINER_CURVE_INPUTS_H_
