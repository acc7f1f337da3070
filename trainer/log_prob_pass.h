// Log-probabilities of responses under a policy, without learning from them.
#ifndef TRITONRL_TRAINER_LOG_PROB_PASS_H_
#define TRITONRL_TRAINER_LOG_PROB_PASS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "model/transformer.h"
#include "trainer/rl_batch.h"

namespace tritonrl {

struct LogProbPass {
  const Transformer* transformer = nullptr;
  at::Device device = at::kCPU;    // of its weights
  int64_t micro_batch_tokens = 0;  // token budget of one forward pass
  double temperature = 1.0;        // at which the responses were drawn
  const char* policy = "";         // names it in an error
};

// Fills in `to`, for example &RlSample::reference_log_probs, of every sample that counts.
absl::Status FillLogProbs(const LogProbPass& pass, std::vector<float> RlSample::*to,
                          RlBatch* batch);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LOG_PROB_PASS_H_
