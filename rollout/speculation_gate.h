#ifndef TRITONRL_ROLLOUT_SPECULATION_GATE_H_
#define TRITONRL_ROLLOUT_SPECULATION_GATE_H_

#include <cstdint>
#include <vector>

namespace tritonrl {

// Whether guessing pays: times a few steps without guesses, goes on with guesses while steps that
// have some give more tokens than their time does without, and else tries again after a while. It
// decides about time alone; samples are the same.
class SpeculationGate {
 public:
  static constexpr int kTried = 16;       // steps without guesses, and then with some, of a trial
  static constexpr int kKept = 128;       // steps until the next trial,
  static constexpr int kMostKept = 4096;  // twice as many each time that guessing did not pay
  static constexpr int kRenewed = 2048;   // steps until those without guesses are timed anew
  static constexpr double kGain = 1.03;   // that guessing must bring
  static constexpr double kSlow = 4;      // times a plain step's median: does not count

  // For the next step.
  bool guess() const { return guess_; }

  // A step that decodes and computes no prompt.
  struct Step {
    bool guessed = false;  // had guesses, which needs guess(), something to guess and places for it
    int samples = 0;       // that decode: its tokens without guesses
    int64_t tokens = 0;
    double seconds = 0;
  };
  void Record(const Step& step);

 private:
  enum class Phase { kPlain, kGuess, kOff };

  void Enter(Phase phase, int steps);
  void RecordPlain(const Step& step);
  void RecordGuessed(const Step& step);
  // Whether others take the time that a plain step took.
  bool IsLikePlain(int samples) const;

  Phase phase_ = Phase::kPlain;
  bool guess_ = false;
  int left_ = kTried;          // steps of the phase
  std::vector<double> plain_;  // seconds of steps without guesses
  double plain_seconds_ = 0;   // their median
  int plain_samples_ = 0;      // of the last one
  // Of steps with guesses that are judged together: their number, their tokens, and as many as
  // their time gives without guesses; and how many were too slow to count.
  int tried_ = 0;
  double tokens_ = 0, without_ = 0;
  int slow_ = 0;
  int keep_ = kKept;  // steps of the last kOff
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SPECULATION_GATE_H_
