#include "rollout/speculative/speculation.h"

#include <algorithm>

namespace tritonrl {

NgramProposer::NgramProposer(std::span<const int32_t> prompt, int samples,
                             int num_speculative_tokens)
    : num_speculative_tokens_(num_speculative_tokens), streams_(1), samples_(samples) {
  streams_[0].reserve(prompt.size());
  for (const int32_t token : prompt) Append(-1, token);
  const size_t last = std::min<size_t>(prompt.size(), kOrders[0]);
  const std::span<const int32_t> end = prompt.last(last);
  for (int i = 0; i < samples; ++i) streams_.emplace_back(end.begin(), end.end());
}

uint64_t NgramProposer::Key(const std::vector<int32_t>& stream, int order) {
  uint64_t key = 0;
  for (size_t i = stream.size() - kOrders[order]; i < stream.size(); ++i) {
    key = (key ^ static_cast<uint32_t>(stream[i])) * 0x9E3779B97F4A7C15u;
    key ^= key >> 29;
  }
  return key;
}

void NgramProposer::Append(int sample, int32_t token) {
  std::vector<int32_t>& stream = streams_[sample + 1];
  const Occurrence place = {sample + 1, static_cast<int32_t>(stream.size())};
  for (size_t order = 0; order < kOrders.size(); ++order) {
    if (stream.size() < static_cast<size_t>(kOrders[order])) continue;
    places_[order][Key(stream, static_cast<int>(order))] = place;
  }
  stream.push_back(token);
  if (sample >= 0 && samples_[sample].rest > 0) --samples_[sample].rest;
}

std::vector<int32_t> NgramProposer::Propose(int sample) const {
  const Sample& state = samples_[sample];
  if (state.rest > 0) return {};
  const std::vector<int32_t>& stream = streams_[sample + 1];
  for (size_t order = 0; order < kProposalOrders; ++order) {
    if (stream.size() < static_cast<size_t>(kOrders[order])) continue;
    const auto it = places_[order].find(Key(stream, static_cast<int>(order)));
    if (it == places_[order].end()) continue;
    const std::vector<int32_t>& from = streams_[it->second.stream];
    const auto begin = from.begin() + it->second.next;
    const auto count = std::min<std::ptrdiff_t>(
        from.end() - begin, std::min(state.max_tokens, num_speculative_tokens_));
    return {begin, begin + count};
  }
  return {};
}

bool NgramProposer::MayProposeNext(int sample) const {
  const std::vector<int32_t>& stream = streams_[sample + 1];
  return samples_[sample].rest <= 1 && stream.size() >= kOrders[kProposalOrders] &&
         places_[kProposalOrders].contains(Key(stream, kProposalOrders));
}

void NgramProposer::RecordAccepted(int sample, int drafted, int accepted) {
  if (drafted == 0) return;
  Sample& state = samples_[sample];
  if (accepted == drafted) {
    state.max_tokens = std::min(num_speculative_tokens_, std::max(state.max_tokens, 2 * drafted));
  } else {
    state.max_tokens = std::min(num_speculative_tokens_, accepted + 2);
    if (accepted == 0) state.rest = kRest;
  }
}

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
  plain_.push_back(step);
  if (--left_ > 0) return;
  const auto middle = plain_.begin() + static_cast<int64_t>(plain_.size() / 2);
  std::nth_element(plain_.begin(), middle, plain_.end(),
                   [](const Step& a, const Step& b) { return a.seconds < b.seconds; });
  // The number of samples may change from step to step: the baseline has that of the median step.
  plain_seconds_ = std::max(middle->seconds, 1e-9);
  plain_samples_ = middle->samples;
  Enter(Phase::kSpeculate, kBaselineInterval);
}

void SpeculationGate::RecordSpeculative(const Step& step) {
  // On a GPU the first step of each row count captures a graph, and draft tokens bring many new row
  // counts. Such outliers are ignored, but only the first kTrialSteps of a trial.
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
