#include "rollout/speculation_gate.h"

#include <algorithm>

namespace tritonrl {

void SpeculationGate::Enter(Phase phase, int steps) {
  phase_ = phase;
  guess_ = phase == Phase::kGuess;
  left_ = steps;
  plain_.clear();
  tried_ = slow_ = 0;
  tokens_ = without_ = 0;
}

bool SpeculationGate::IsLikePlain(int samples) const {
  return 4 * samples >= 3 * plain_samples_ && 3 * samples <= 4 * plain_samples_;
}

void SpeculationGate::Record(const Step& step) {
  switch (phase_) {
    case Phase::kPlain:
      return RecordPlain(step);
    case Phase::kGuess:
      // Steps with nothing to guess are as without guessing, and say nothing about it.
      if (step.guessed) RecordGuessed(step);
      if (phase_ == Phase::kGuess && (--left_ <= 0 || !IsLikePlain(step.samples))) {
        Enter(Phase::kPlain, kTried);
      }
      return;
    case Phase::kOff:
      if (--left_ <= 0) Enter(Phase::kPlain, kTried);
      return;
  }
}

void SpeculationGate::RecordPlain(const Step& step) {
  plain_.push_back(step.seconds);
  plain_samples_ = step.samples;
  if (--left_ > 0) return;
  const auto middle = plain_.begin() + static_cast<int64_t>(plain_.size() / 2);
  std::nth_element(plain_.begin(), middle, plain_.end());
  plain_seconds_ = std::max(*middle, 1e-9);
  Enter(Phase::kGuess, kRenewed);
}

void SpeculationGate::RecordGuessed(const Step& step) {
  // A GPU makes a graph when it first sees a number of rows, and guesses bring many new ones. Steps
  // that are just a little slower have guesses, and count.
  if (step.seconds > kSlow * plain_seconds_ && ++slow_ <= kTried) return;
  tokens_ += static_cast<double>(step.tokens);
  without_ += step.samples * step.seconds / plain_seconds_;
  if (++tried_ < kTried) return;
  const bool pays = tokens_ > kGain * without_;
  keep_ = pays ? kKept : std::min(2 * keep_, kMostKept);
  if (!pays) return Enter(Phase::kOff, keep_);
  tried_ = slow_ = 0;
  tokens_ = without_ = 0;
}

}  // namespace tritonrl
