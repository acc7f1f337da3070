#include "rollout/speculation_gate.h"

#include <algorithm>

namespace tritonrl {

double SpeculationGate::Rate() {
  // A few steps may be slow for other reasons: a GPU makes a graph when it first sees a size. Not
  // those that are a little slower, as steps with many guesses are.
  const auto middle = steps_.begin() + static_cast<int64_t>(steps_.size() / 2);
  std::nth_element(steps_.begin(), middle, steps_.end(),
                   [](const Step& a, const Step& b) { return a.seconds < b.seconds; });
  const double most = kSlow * middle->seconds;
  double seconds = 1e-9, tokens = 0;
  for (const Step& step : steps_) {
    if (step.seconds > most) continue;
    seconds += step.seconds;
    tokens += static_cast<double>(step.tokens);
  }
  steps_.clear();
  return tokens / seconds;
}

void SpeculationGate::Record(bool guessing, int64_t tokens, double seconds) {
  if (phase_ == Phase::kGuess && !guessing) return;
  if (phase_ != Phase::kKeep) steps_.push_back({seconds, tokens});
  if (--left_ > 0) return;
  left_ = kTried;
  switch (phase_) {
    case Phase::kPlain:
      plain_ = Rate();
      phase_ = Phase::kGuess;
      guess_ = true;
      break;
    case Phase::kGuess:
      phase_ = Phase::kKeep;
      guess_ = Rate() > kGain * plain_;
      keep_ = guess_ ? kKept : std::min(2 * keep_, kMostKept);
      left_ = keep_;
      break;
    case Phase::kKeep:
      phase_ = Phase::kPlain;
      guess_ = false;
      break;
  }
}

}  // namespace tritonrl
