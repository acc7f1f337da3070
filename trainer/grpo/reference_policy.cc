#include "trainer/grpo/reference_policy.h"

#include <vector>

#include "model/packed_batch.h"
#include "model/torch_status.h"
#include "trainer/packing.h"

namespace tritonrl {

ReferencePolicy::ReferencePolicy(const Policy& policy, int threads, int64_t micro_batch_tokens,
                                 double temperature)
    : device_(policy.device()), micro_batch_tokens_(micro_batch_tokens), temperature_(temperature) {
  Transformer::Options options;
  options.cpu_threads = threads;
  transformer_ = std::make_unique<Transformer>(policy.config, policy.weights->Clone(), options);
}

absl::Status ReferencePolicy::Fill(RlBatch* batch) const {
  std::vector<RlSample*> samples;
  std::vector<int64_t> lengths;
  for (RlGroup& group : *batch) {
    for (RlSample& sample : group.samples) {
      if (!sample.counted) continue;
      samples.push_back(&sample);
      lengths.push_back(sample.length());
    }
  }
  return CatchTorch("reference policy", "set micro_batch_tokens lower", [&] {
    for (const std::vector<int>& pack : PackByTokens(lengths, micro_batch_tokens_)) {
      std::vector<std::vector<int32_t>> sequences;
      std::vector<int64_t> first_target;
      for (const int i : pack) {
        std::vector<int32_t> tokens = samples[i]->prompt;
        tokens.insert(tokens.end(), samples[i]->response.begin(), samples[i]->response.end());
        sequences.push_back(std::move(tokens));
        first_target.push_back(static_cast<int64_t>(samples[i]->prompt.size()));
      }
      const PackedBatch packed = PackSequences(sequences, device_);
      const ForwardResult forward = transformer_->Forward(
          packed, NextTokenTargets(packed, first_target), temperature_, nullptr);
      const at::Tensor log_probs = forward.log_probs.cpu();
      const float* values = log_probs.const_data_ptr<float>();
      for (size_t k = 0; k < pack.size(); ++k) {
        RlSample& sample = *samples[pack[k]];
        // Row t holds the log-probability of token t + 1.
        const float* begin = values + packed.offsets[k] + sample.prompt.size() - 1;
        sample.reference_log_probs.assign(begin, begin + sample.response.size());
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace tritonrl
