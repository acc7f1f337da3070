// Speculative decoding without a draft model: an n-gram proposer of draft tokens, and a gate that
// turns speculation off where it does not pay.

#ifndef TRITONRL_ROLLOUT_SPECULATIVE_SPECULATION_H_
#define TRITONRL_ROLLOUT_SPECULATIVE_SPECULATION_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tritonrl {

// N-gram proposer: proposes the tokens that followed an earlier occurrence of the sample's last few
// tokens (Saxena, "Prompt Lookup Decoding", 2023). It searches the prompt and all samples of the
// group, which answer the same prompt. Memory: about 90 bytes a token.
class NgramProposer {
 public:
  // Proposes at most `num_speculative_tokens` draft tokens at a time.
  NgramProposer(std::span<const int32_t> prompt, int samples, int num_speculative_tokens);

  // Adds the sample's next token.
  void Append(int sample, int32_t token);

  // Returns draft tokens for the sample; empty without a match, or if a recent draft was rejected.
  std::vector<int32_t> Propose(int sample) const;
  // Whether Propose may find a match after one more token.
  bool MayProposeNext(int sample) const;

  // Adapts the length of the sample's next draft: `accepted` of `drafted` draft tokens were
  // accepted.
  void RecordAccepted(int sample, int drafted, int accepted);

 private:
  // N-gram lengths, longest first. Propose looks up the first kProposalOrders of them. The last
  // length is one token shorter, for MayProposeNext.
  static constexpr std::array<int, 3> kOrders = {8, 3, 2};
  static constexpr size_t kProposalOrders = 2;
  static constexpr int kRest = 8;  // tokens without a draft after a draft with no accepted token

  struct Occurrence {
    int32_t stream = 0, next = 0;  // index in streams_; position of the token after the n-gram
  };
  struct Sample {
    int max_tokens = 4;  // maximum length of the next draft
    int rest = 0;        // tokens to append before the next draft
  };

  // Hash of a stream's last kOrders[order] tokens.
  static uint64_t Key(const std::vector<int32_t>& stream, int order);

  const int num_speculative_tokens_;
  // The prompt, then one stream for each sample: the prompt's last tokens and the sample's tokens.
  std::vector<std::vector<int32_t>> streams_;
  // The latest occurrence of each n-gram, by order.
  std::array<absl::flat_hash_map<uint64_t, Occurrence>, kOrders.size()> places_;
  std::vector<Sample> samples_;
};

// Turns speculative decoding on while it raises tokens per second. The gate times a few steps
// without draft tokens ("plain" steps), compares steps with draft tokens to them, and retries later
// if speculation does not pay. It affects speed only; the samples are the same.
class SpeculationGate {
 public:
  static constexpr int kTrialSteps = 16;        // plain steps of a trial, and its speculative steps
  static constexpr int kRetrialInterval = 128;  // steps until the next trial
  // The interval doubles up to this number of steps while speculation does not pay.
  static constexpr int kMaxRetrialInterval = 4096;
  static constexpr int kBaselineInterval = 2048;  // steps until plain steps are timed again
  static constexpr double kMinSpeedup = 1.03;     // minimum gain of speculation
  static constexpr double kOutlierFactor = 4;     // an outlier is slower than this many plain steps

  // Whether the next step should have draft tokens.
  bool speculate() const { return speculate_; }

  // A step that only decodes.
  struct Step {
    // Whether the step had draft tokens. That needs speculate(), a proposal and free batch slots.
    bool speculated = false;
    int samples = 0;     // decoding samples; a plain step generates one token for each
    int64_t tokens = 0;  // generated tokens
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
  int left_ = kTrialSteps;    // remaining steps of the phase
  std::vector<Step> plain_;   // plain steps of the phase
  double plain_seconds_ = 0;  // seconds and samples of the plain step with the median time
  int plain_samples_ = 0;
  // Of the current trial: its speculative steps, their tokens, the tokens that plain steps would
  // generate in the same time, and the number of outliers.
  int tried_ = 0;
  double tokens_ = 0, baseline_tokens_ = 0;
  int slow_ = 0;
  int retrial_interval_ = kRetrialInterval;  // steps of the last kOff phase
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SPECULATIVE_SPECULATION_H_
