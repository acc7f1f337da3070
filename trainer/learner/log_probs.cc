#include "trainer/learner/log_probs.h"

#include <utility>

#include "model/layers/packed_batch.h"
#include "model/torch_runtime.h"
#include "trainer/objective/packing.h"

namespace tritonrl {

absl::Status FillLogProbs(const LogProbOptions& pass, std::vector<float> RlSample::*to,
                          RlBatch* batch) {
  std::vector<RlSample*> samples;
  std::vector<int64_t> lengths;
  for (RlGroup& group : *batch) {
    for (RlSample& sample : group.samples) {
      if (!sample.counted) continue;
      samples.push_back(&sample);
      lengths.push_back(sample.length());
    }
  }
  return CatchTorch(pass.policy, "set micro_batch_tokens lower", [&] {
    for (const std::vector<int>& pack : PackByTokens(lengths, pass.micro_batch_tokens)) {
      std::vector<std::vector<int32_t>> sequences;
      std::vector<int64_t> first_target;
      for (const int i : pack) {
        std::vector<int32_t> tokens = samples[i]->prompt;
        tokens.insert(tokens.end(), samples[i]->response.begin(), samples[i]->response.end());
        sequences.push_back(std::move(tokens));
        first_target.push_back(static_cast<int64_t>(samples[i]->prompt.size()));
      }
      const PackedBatch packed = PackSequences(sequences, pass.device);
      const ForwardResult forward = pass.transformer->Forward(
          packed, NextTokenTargets(packed, first_target), pass.temperature, nullptr);
      const at::Tensor log_probs = forward.log_probs.cpu();
      const float* values = log_probs.const_data_ptr<float>();
      for (size_t k = 0; k < pack.size(); ++k) {
        RlSample& sample = *samples[pack[k]];
        // Row t holds the log-probability of token t + 1.
        const float* begin = values + packed.offsets[k] + sample.prompt.size() - 1;
        (sample.*to).assign(begin, begin + sample.response.size());
      }
    }
    return absl::OkStatus();
  });
}

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
