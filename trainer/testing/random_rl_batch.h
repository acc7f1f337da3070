// Random verified responses for tests of the learner.
#ifndef TRITONRL_TRAINER_TESTING_RANDOM_RL_BATCH_H_
#define TRITONRL_TRAINER_TESTING_RANDOM_RL_BATCH_H_

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "trainer/objective/advantage.h"

namespace tritonrl {

// Groups of random responses to prompts of 4, 5, ... tokens for the tiny policy (test_model.h),
// with random rewards and log-probabilities near those of its initial weights. Advantages are not
// set.
inline RlBatch RandomRlBatch(uint64_t seed, int groups, int group_size) {
  Philox random(seed);
  RlBatch batch(groups);
  for (int g = 0; g < groups; ++g) {
    batch[g].task_id = absl::StrCat("task", g);
    for (int j = 0; j < group_size; ++j) {
      RlSample& s = batch[g].samples.emplace_back();
      s.prompt.assign(4 + g, 65);
      const uint64_t length = 5 + random.Below(20);
      for (uint64_t t = 0; t < length; ++t) {
        s.response.push_back(static_cast<int32_t>(random.Below(256)));
        s.old_log_probs.push_back(static_cast<float>(-5.6 + 0.3 * random.Normal()));
        s.reference_log_probs.push_back(static_cast<float>(-5.6 + 0.3 * random.Normal()));
      }
      s.plan_end = 2;
      s.reward_correct = static_cast<double>(random.Below(2));
      s.reward_speedup = 2 * random.Uniform();
    }
  }
  return batch;
}

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_TESTING_RANDOM_RL_BATCH_H_
