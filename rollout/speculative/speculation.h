// Speculative decoding without a draft model: what to propose, and whether it pays.

#ifndef TRITONRL_ROLLOUT_SPECULATIVE_SPECULATION_H_
#define TRITONRL_ROLLOUT_SPECULATIVE_SPECULATION_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tritonrl {

// N-gram proposer: proposes the tokens that followed an earlier occurrence of the last few tokens,
// in the prompt or in any sample of the group (Saxena, "Prompt Lookup Decoding", 2023; here over
// the whole group, whose samples answer one prompt). Memory: about 90 bytes a token.
class NgramProposer {
 public:
  // Proposes at most `num_speculative_tokens` draft tokens at a time.
  NgramProposer(std::span<const int32_t> prompt, int samples, int num_speculative_tokens);

  // Adds the sample's next token.
  void Append(int sample, int32_t token);

  // Draft tokens for the sample; empty without a match, or after recent drafts were rejected.
  std::vector<int32_t> Propose(int sample) const;
  // Whether Propose may find a match after one more token.
  bool MayProposeNext(int sample) const;

  // `accepted` of `drafted` draft tokens were accepted: adapts the length of the next draft.
  void RecordAccepted(int sample, int drafted, int accepted);

 private:
  // N-gram lengths looked up, longest first; the last one, one token shorter, predicts a match.
  static constexpr std::array<int, 3> kOrders = {8, 3, 2};
  static constexpr size_t kProposalOrders = 2;
  static constexpr int kRest = 8;  // tokens without a draft after an entirely rejected one

  struct Occurrence {
    int32_t stream = 0, next = 0;  // the token that followed
  };
  struct Sample {
    int max_tokens = 4;  // of a draft
    int rest = 0;
  };

  // Hash of a stream's last kOrders[order] tokens.
  static uint64_t Key(const std::vector<int32_t>& stream, int order);

  const int num_speculative_tokens_;
  // The prompt; then for each sample the prompt's last tokens and its own.
  std::vector<std::vector<int32_t>> streams_;
  // The latest occurrence of each n-gram, by order.
  std::array<absl::flat_hash_map<uint64_t, Occurrence>, kOrders.size()> places_;
  std::vector<Sample> samples_;
};

// Turns speculative decoding on while it raises tokens per second: times a few steps without draft
// tokens, then compares, and retries after a while if speculation does not pay. It affects speed
// only; the samples are the same.
class SpeculationGate {
 public:
  static constexpr int kTrialSteps = 16;  // plain steps, and then speculative ones, of a trial
  static constexpr int kRetrialInterval = 128;  // steps until the next trial
  // The interval doubles up to this number while speculation does not pay.
  static constexpr int kMaxRetrialInterval = 4096;
  static constexpr int kBaselineInterval = 2048;  // steps until plain steps are timed again
  static constexpr double kMinSpeedup = 1.03;     // minimum gain of speculation
  static constexpr double kOutlierFactor = 4;     // slower than this many plain steps: ignored

  // Whether the next step should have draft tokens.
  bool speculate() const { return speculate_; }

  // A step that decodes and computes no prompt.
  struct Step {
    // Had draft tokens: needs speculate(), a proposal and free batch slots.
    bool speculated = false;
    int samples = 0;  // that decode: the step's tokens without draft tokens
    int64_t tokens = 0;
    double seconds = 0;
  };
  void Record(const Step& step);

 private:
  enum class Phase { kPlain, kSpeculate, kOff };

  void Enter(Phase phase, int steps);
  void RecordPlain(const Step& step);
  void RecordSpeculative(const Step& step);
  // Whether the number of samples is close enough to that of the timed plain steps.
  bool IsLikePlain(int samples) const;

  Phase phase_ = Phase::kPlain;
  bool speculate_ = false;
  int left_ = kTrialSteps;     // steps of the phase
  std::vector<double> plain_;  // seconds of plain steps
  double plain_seconds_ = 0;   // their median
  int plain_samples_ = 0;      // samples of the last plain step
  // Of the current trial: speculative steps, their tokens, the tokens that plain steps give in the
  // same time, and the number of outliers.
  int tried_ = 0;
  double tokens_ = 0, baseline_tokens_ = 0;
  int slow_ = 0;
  int retrial_interval_ = kRetrialInterval;  // steps of the last kOff
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SPECULATIVE_SPECULATION_H_
