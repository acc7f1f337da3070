// Log-probabilities under the policy that the run started from, for the KL penalty.
#ifndef TRITONRL_TRAINER_GRPO_REFERENCE_POLICY_H_
#define TRITONRL_TRAINER_GRPO_REFERENCE_POLICY_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "model/transformer.h"
#include "trainer/policy.h"
#include "trainer/rl_batch.h"

namespace tritonrl {

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

#endif  // TRITONRL_TRAINER_GRPO_REFERENCE_POLICY_H_
