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

// Log-probabilities of responses under a policy that does not learn from them.

namespace tritonrl {

struct LogProbOptions {
  const Transformer* transformer = nullptr;
  at::Device device = at::kCPU;    // of its weights
  int64_t micro_batch_tokens = 0;  // token budget of one forward pass
  double temperature = 1.0;        // at which the responses were drawn
  const char* policy = "";         // names it in an error
};

// Fills in `to`, for example &RlSample::reference_log_probs, of every sample that counts.
absl::Status FillLogProbs(const LogProbOptions& pass, std::vector<float> RlSample::*to,
                          RlBatch* batch);

// The policy at the start of the run, for the KL penalty.
class ReferencePolicy {
 public:
  // Keeps a copy of the weights that `policy` has now (before the first update or the loading of a
  // checkpoint).
  ReferencePolicy(const Policy& policy, int threads, int64_t micro_batch_tokens,
                  double temperature);

  // Fills in reference_log_probs of every sample that counts.
  absl::Status Fill(RlBatch* batch) const;

 private:
  std::unique_ptr<Transformer> transformer_;
  at::Device device_;
  int64_t micro_batch_tokens_;
  double temperature_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_LOG_PROBS_H_
