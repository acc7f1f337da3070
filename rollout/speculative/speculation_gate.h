#ifndef TRITONRL_ROLLOUT_SPECULATIVE_SPECULATION_GATE_H_
#define TRITONRL_ROLLOUT_SPECULATIVE_SPECULATION_GATE_H_

#include <cstdint>
#include <vector>

namespace tritonrl {

// Turns speculative decoding on while it raises tokens per second: times a few steps without draft
// tokens, then compares, and retries after a while if speculation does not pay. It affects speed
// only; the samples are the same.
class SpeculationGate {
 public:
  static constexpr int kTrialSteps =
      16;  // steps without draft tokens, and then with some, of a trial
  static constexpr int kRetrialInterval = 128;  // steps until the next trial,
  static constexpr int kMaxRetrialInterval =
      4096;  // doubles each time that speculation did not pay
  static constexpr int kBaselineInterval =
      2048;  // steps until those without draft tokens are timed anew
  static constexpr double kMinSpeedup = 1.03;  // minimum gain of speculation
  static constexpr double kOutlierFactor = 4;  // times a plain step's median: does not count

  // For the next step.
  bool speculate() const { return speculate_; }

  // A step that decodes and computes no prompt.
  struct Step {
    bool speculated =
        false;        // had draft tokens; requires speculate(), a proposal and free batch slots
    int samples = 0;  // that decode: its tokens without draft tokens
    int64_t tokens = 0;
    double seconds = 0;
  };
  void Record(const Step& step);

 private:
  enum class Phase { kPlain, kSpeculate, kOff };

  void Enter(Phase phase, int steps);
  void RecordPlain(const Step& step);
  void RecordSpeculative(const Step& step);
  // Whether others take the time that a plain step took.
  bool IsLikePlain(int samples) const;

  Phase phase_ = Phase::kPlain;
  bool speculate_ = false;
  int left_ = kTrialSteps;     // steps of the phase
  std::vector<double> plain_;  // seconds of steps without draft tokens
  double plain_seconds_ = 0;   // their median
  int plain_samples_ = 0;      // of the last one
  // Of steps with draft tokens that are judged together: their number, their tokens, and as many as
  // their time gives without draft tokens; and how many were too slow to count.
  int tried_ = 0;
  double tokens_ = 0, baseline_tokens_ = 0;
  int slow_ = 0;
  int retrial_interval_ = kRetrialInterval;  // steps of the last kOff
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SPECULATIVE_SPECULATION_GATE_H_
