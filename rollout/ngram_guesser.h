#ifndef TRITONRL_ROLLOUT_NGRAM_GUESSER_H_
#define TRITONRL_ROLLOUT_NGRAM_GUESSER_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tritonrl {

// Guesses what a sample says next, for speculative decoding without a second model: what followed
// where its last few tokens stood before, in the prompt or in any sample of its group (Saxena,
// "Prompt Lookup Decoding", 2023; here over the whole group, whose samples answer one prompt).
// Memory: about 90 bytes a token.
class NgramGuesser {
 public:
  // Guesses at most `max_guesses` tokens at a time.
  NgramGuesser(std::span<const int32_t> prompt, int samples, int max_guesses);

  // The sample's next token.
  void Append(int sample, int32_t token);

  // What the sample may say next; empty if nothing like its last tokens was said before, or if
  // guesses for it have been wrong of late.
  std::vector<int32_t> Guess(int sample) const;
  // Whether there may be a guess once the sample has said one more token: the last ones were said
  // before.
  bool MayGuessNext(int sample) const;

  // Of `guessed` tokens the first `right` were right: makes the next guesses longer or shorter.
  void Told(int sample, int guessed, int right);

 private:
  // Lengths of the runs that are looked up for a guess, the longest first; the last one, a token
  // shorter than those, says that one of them may follow.
  static constexpr std::array<int, 3> kOrders = {8, 3, 2};
  static constexpr size_t kGuessOrders = 2;
  static constexpr int kRest = 8;  // tokens without guesses after some that were all wrong

  struct Place {
    int32_t stream = 0, next = 0;  // the token that followed
  };
  struct Sample {
    int most = 4;  // tokens of a guess
    int rest = 0;
  };

  // Of the last kOrders[order] tokens of a stream; they must be there.
  static uint64_t Key(const std::vector<int32_t>& stream, int order);

  const int max_guesses_;
  // The prompt, then each sample's tokens behind the prompt's last ones.
  std::vector<std::vector<int32_t>> streams_;
  std::array<absl::flat_hash_map<uint64_t, Place>, kOrders.size()> places_;  // the latest
  std::vector<Sample> samples_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_NGRAM_GUESSER_H_
