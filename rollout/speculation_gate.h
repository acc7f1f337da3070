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
  static constexpr int kSilent = 64;      // steps without any guess that end one
  static constexpr int kKept = 128;       // steps until the next one,
  static constexpr int kMostKept = 2048;  // twice as many each time that guessing did not pay
  static constexpr double kGain = 1.03;   // that guessing must bring

  // For the next step.
  bool guess() const { return guess_; }

  // The step that was decided about passed so many guesses through the model and gave so many
  // tokens in so long. Only of steps that decode and compute no prompt.
  void Record(int64_t guesses, int64_t tokens, double seconds);

 private:
  enum class Phase { kPlain, kGuess, kKeep };

  void Keep(bool guess);

  // Of the rates of the trial, which this ends.
  double Median();

  Phase phase_ = Phase::kPlain;
  bool guess_ = false;
  std::vector<double> rates_;  // tokens a second, of the trial's steps
  double plain_ = 0;           // median without guesses
  int left_ = kTried;          // steps of the phase
  int keep_ = kKept;           // steps of the next kKeep
  int silent_ = 0;             // steps of this kGuess without a guess
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SPECULATION_GATE_H_
