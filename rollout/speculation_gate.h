#ifndef TRITONRL_ROLLOUT_SPECULATION_GATE_H_
#define TRITONRL_ROLLOUT_SPECULATION_GATE_H_

#include <cstdint>
#include <vector>

namespace tritonrl {

// Whether guessing pays: tries a few steps without and with guesses, keeps to what gave more tokens
// a second, and tries again after a while. It decides about time alone; samples are the same.
class SpeculationGate {
 public:
  static constexpr int kTried = 16;       // steps of a trial
  static constexpr int kKept = 128;       // steps until the next one,
  static constexpr int kMostKept = 2048;  // twice as many each time that guessing did not pay
  static constexpr double kGain = 1.03;   // that guessing must bring
  static constexpr double kSlow = 2.5;    // times a plain step's median: does not count

  // For the next step.
  bool guess() const { return guess_; }

  // A step gave so many tokens in so long. `guessing`: it was run as guess() said, whether there
  // was something to guess or not; a step without places for guesses says nothing about them. Only
  // of steps that decode and compute no prompt.
  void Record(bool guessing, int64_t tokens, double seconds);

 private:
  enum class Phase { kPlain, kGuess, kKeep };
  struct Step {
    double seconds = 0;
    int64_t tokens = 0;
  };

  // Tokens a second of the trial, which this ends.
  double Rate();
  // Whether a step of the trial took so long for some other reason; counts those.
  bool IsSlow(double seconds);
  void EndPlain();

  Phase phase_ = Phase::kPlain;
  bool guess_ = false;
  std::vector<Step> steps_;   // of the trial
  double plain_ = 0;          // rate without guesses
  double plain_seconds_ = 0;  // of a step without guesses
  int slow_ = 0;              // steps of the trial that did not count
  int left_ = kTried;         // steps of the phase
  int keep_ = kKept;          // steps of the next kKeep
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SPECULATION_GATE_H_
