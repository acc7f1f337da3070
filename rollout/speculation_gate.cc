#include "rollout/speculation_gate.h"

#include <algorithm>

namespace tritonrl {

double SpeculationGate::Median() {
  // A step may be slow for other reasons: a GPU makes a graph when it first sees a size.
  const auto middle = rates_.begin() + static_cast<std::ptrdiff_t>(rates_.size() / 2);
  std::nth_element(rates_.begin(), middle, rates_.end());
  const double median = *middle;
  rates_.clear();
  return median;
}

void SpeculationGate::Keep(bool guess) {
  phase_ = Phase::kKeep;
  rates_.clear();
  guess_ = guess;
  keep_ = guess ? kKept : std::min(2 * keep_, kMostKept);
  left_ = keep_;
}

void SpeculationGate::Record(int64_t guesses, int64_t tokens, double seconds) {
  // Nothing was tried: nothing like it was said before.
  if (phase_ == Phase::kGuess && guesses == 0) {
    if (++silent_ >= kSilent) Keep(false);
    return;
  }
  if (phase_ != Phase::kKeep) {
    rates_.push_back(static_cast<double>(tokens) / std::max(seconds, 1e-9));
  }
  if (--left_ > 0) return;
  switch (phase_) {
    case Phase::kPlain:
      plain_ = Median();
      phase_ = Phase::kGuess;
      guess_ = true;
      silent_ = 0;
      left_ = kTried;
      break;
    case Phase::kGuess:
      Keep(Median() > kGain * plain_);
      break;
    case Phase::kKeep:
      phase_ = Phase::kPlain;
      guess_ = false;
      left_ = kTried;
      break;
  }
}

}  // namespace tritonrl
