#ifndef TRITONRL_TRAINER_LEARNER_LOG_PROBS_H_
#define TRITONRL_TRAINER_LEARNER_LOG_PROBS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "model/transformer.h"
#include "trainer/learner/policy.h"
#include "trainer/objective/advantage.h"

// Computes the log-probabilities of responses under a fixed policy.

namespace tritonrl {

struct LogProbOptions {
  const Transformer* transformer = nullptr;
  at::Device device = at::kCPU;    // device of the transformer's weights
  int64_t micro_batch_tokens = 0;  // token budget of one forward pass
  double temperature = 1.0;        // sampling temperature of the responses
  const char* policy = "";         // name of the policy in error messages
};

// Computes the field `to`, for example &RlSample::reference_log_probs, of every counted sample.
// ResourceExhausted if out of memory.
absl::Status FillLogProbs(const LogProbOptions& pass, std::vector<float> RlSample::*to,
                          RlBatch* batch);

// The policy at the start of the run, for the KL penalty. Owns a copy of the weights.
class ReferencePolicy {
 public:
  // Copies the current weights of `policy`, so it must be called before the first update and before
  // a checkpoint is loaded.
  ReferencePolicy(const Policy& policy, int threads, int64_t micro_batch_tokens,
                  double temperature);

  // Sets reference_log_probs of every counted sample.
  absl::Status Fill(RlBatch* batch) const;

 private:
  std::unique_ptr<Transformer> transformer_;
  at::Device device_;
  int64_t micro_batch_tokens_;
  double temperature_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_LOG_PROBS_H_
