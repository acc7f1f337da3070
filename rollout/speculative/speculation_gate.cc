#include "rollout/speculative/speculation_gate.h"

#include <algorithm>

namespace tritonrl {

void SpeculationGate::Enter(Phase phase, int steps) {
  phase_ = phase;
  speculate_ = phase == Phase::kSpeculate;
  left_ = steps;
  plain_.clear();
  tried_ = slow_ = 0;
  tokens_ = baseline_tokens_ = 0;
}

bool SpeculationGate::IsLikePlain(int samples) const {
  return 4 * samples >= 3 * plain_samples_ && 3 * samples <= 4 * plain_samples_;
}

void SpeculationGate::Record(const Step& step) {
  switch (phase_) {
    case Phase::kPlain:
      return RecordPlain(step);
    case Phase::kSpeculate:
      // Steps without a proposal say nothing about speculation.
      if (step.speculated) RecordSpeculative(step);
      if (phase_ == Phase::kSpeculate && (--left_ <= 0 || !IsLikePlain(step.samples))) {
        Enter(Phase::kPlain, kTrialSteps);
      }
      return;
    case Phase::kOff:
      if (--left_ <= 0) Enter(Phase::kPlain, kTrialSteps);
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
  Enter(Phase::kSpeculate, kBaselineInterval);
}

void SpeculationGate::RecordSpeculative(const Step& step) {
  // A GPU makes a graph when it first sees a number of rows, and draft tokens bring many new ones.
  // Steps that are just a little slower have draft tokens, and count.
  if (step.seconds > kOutlierFactor * plain_seconds_ && ++slow_ <= kTrialSteps) return;
  tokens_ += static_cast<double>(step.tokens);
  baseline_tokens_ += step.samples * step.seconds / plain_seconds_;
  if (++tried_ < kTrialSteps) return;
  const bool pays = tokens_ > kMinSpeedup * baseline_tokens_;
  retrial_interval_ =
      pays ? kRetrialInterval : std::min(2 * retrial_interval_, kMaxRetrialInterval);
  if (!pays) return Enter(Phase::kOff, retrial_interval_);
  tried_ = slow_ = 0;
  tokens_ = baseline_tokens_ = 0;
}

}  // namespace tritonrl
