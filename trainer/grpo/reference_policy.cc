#include "trainer/grpo/reference_policy.h"

#include "trainer/log_prob_pass.h"

namespace tritonrl {

ReferencePolicy::ReferencePolicy(const Policy& policy, int threads, int64_t micro_batch_tokens,
                                 double temperature)
    : device_(policy.device()), micro_batch_tokens_(micro_batch_tokens), temperature_(temperature) {
  Transformer::Options options;
  options.cpu_threads = threads;
  transformer_ = std::make_unique<Transformer>(policy.config, policy.weights->Clone(), options);
}

absl::Status ReferencePolicy::Fill(RlBatch* batch) const {
  return FillLogProbs({.transformer = transformer_.get(),
                       .device = device_,
                       .micro_batch_tokens = micro_batch_tokens_,
                       .temperature = temperature_,
                       .policy = "reference policy"},
                      &RlSample::reference_log_probs, batch);
}

}  // namespace tritonrl
