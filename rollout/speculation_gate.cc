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

void SpeculationGate::Record(int64_t tokens, double seconds) {
  if (phase_ != Phase::kKeep) {
    rates_.push_back(static_cast<double>(tokens) / std::max(seconds, 1e-9));
  }
  if (--left_ > 0) return;
  switch (phase_) {
    case Phase::kPlain:
      plain_ = Median();
      phase_ = Phase::kGuess;
      guess_ = true;
      left_ = kTried;
      break;
    case Phase::kGuess:
      phase_ = Phase::kKeep;
      guess_ = Median() > kGain * plain_;
      left_ = kKept;
      break;
    case Phase::kKeep:
      phase_ = Phase::kPlain;
      guess_ = false;
      left_ = kTried;
      break;
  }
}

}  // namespace tritonrl
