#include "rollout/speculation_gate.h"

#include <algorithm>

namespace tritonrl {

double SpeculationGate::Rate() {
  double seconds = 1e-9, tokens = 0;
  for (const Step& step : steps_) {
    seconds += step.seconds;
    tokens += static_cast<double>(step.tokens);
  }
  steps_.clear();
  slow_ = 0;
  return tokens / seconds;
}

bool SpeculationGate::IsSlow(double seconds) {
  // A GPU makes a graph when it first sees a number of rows, and guesses bring many new ones.
  // Steps that are just a little slower have guesses, and count.
  const bool slow = plain_seconds_ > 0 && seconds > kSlow * plain_seconds_ && slow_ < kTried;
  slow_ += slow ? 1 : 0;
  return slow;
}

void SpeculationGate::EndPlain() {
  const auto middle = steps_.begin() + static_cast<int64_t>(steps_.size() / 2);
  std::nth_element(steps_.begin(), middle, steps_.end(),
                   [](const Step& a, const Step& b) { return a.seconds < b.seconds; });
  plain_seconds_ = middle->seconds;
  std::erase_if(steps_, [this](const Step& step) { return IsSlow(step.seconds); });
  plain_ = Rate();
  phase_ = Phase::kGuess;
  guess_ = true;
}

void SpeculationGate::Record(bool guessing, int64_t tokens, double seconds) {
  if (phase_ == Phase::kGuess && (!guessing || IsSlow(seconds))) return;
  if (phase_ != Phase::kKeep) steps_.push_back({seconds, tokens});
  if (--left_ > 0) return;
  left_ = kTried;
  switch (phase_) {
    case Phase::kPlain:
      EndPlain();
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
