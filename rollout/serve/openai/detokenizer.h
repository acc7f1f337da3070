// Incremental detokenization with stop strings.
#ifndef TRITONRL_ROLLOUT_SERVE_OPENAI_DETOKENIZER_H_
#define TRITONRL_ROLLOUT_SERVE_OPENAI_DETOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/tokenizer/tokenizer.h"

namespace tritonrl {

// Finds the place where the first of several strings is complete, byte by byte (the automaton of
// Knuth, Morris and Pratt for each).
class StopMatcher {
 public:
  // `stops` are not empty strings.
  explicit StopMatcher(std::vector<std::string> stops);

  // Takes the next byte. The length of the stop string that ends with it (the longest one, if
  // several do), or 0.
  size_t Feed(char byte);

  // Bytes at the end of what was fed that may be the beginning of a stop string.
  size_t held() const;

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> failure;  // Of each prefix, its longest proper border.
    size_t matched = 0;
  };
  std::vector<Pattern> patterns_;
};

// A token that has a part in the text.
struct TextToken {
  std::string bytes;       // What it stands for, maybe part of a character.
  float log_prob = 0;      // As the engine gives it.
  int64_t char_start = 0;  // Of the whole text, the character at which it begins.
};

// What one sample may show.
struct TextDelta {
  std::string text;  // Whole characters, valid UTF-8.
  std::vector<TextToken> tokens;
  bool empty() const { return text.empty() && tokens.empty(); }
};

// The text of one sample. Holds back the bytes of a character that is not complete and text that
// may be the beginning of a stop string. Tokens marked special and ids without a token have no
// text. The texts of all pieces together are the same however the tokens came, and without a stop
// string they are Tokenizer::Decode(tokens, skip_special=true).
class IncrementalDetokenizer {
 public:
  IncrementalDetokenizer(const Tokenizer& tokenizer, const std::vector<std::string>& stops)
      : tokenizer_(tokenizer), matcher_(stops) {}

  // Takes the next token. Ignored after a stop string was complete.
  void Push(int32_t token, float log_prob);

  // Counts a token that ends the sample and is not to be shown. Finish follows.
  void PushEnd() {
    if (!stopped_ && !finished_) ++num_tokens_;
  }

  // The sample ends here: nothing is held back any more; bytes of half a character become U+FFFD.
  void Finish();

  // What can be shown and was not yet taken. A token comes with the first piece that shows some of
  // it.
  TextDelta Take();

  // Whether a stop string was complete; the text ends before it.
  bool stopped() const { return stopped_; }
  // That stop string.
  const std::string& stop_string() const { return stop_string_; }
  // Tokens pushed, up to the one that completed a stop string.
  int64_t num_tokens() const { return num_tokens_; }

 private:
  struct Placed {
    TextToken token;
    size_t start = 0;  // Its first byte in text_.
  };

  // Moves complete characters from bytes_ to text_; with `all`, also those cut off.
  void DecodeBytes(bool all);

  const Tokenizer tokenizer_;
  StopMatcher matcher_;
  std::string bytes_;  // Not yet decoded: the beginning of a character.
  std::string text_;   // Decoded, cut before the stop string.
  int64_t chars_ = 0;  // Characters in text_.
  size_t shown_ = 0;   // Bytes of text_ that were taken.
  std::vector<Placed> tokens_;
  size_t tokens_shown_ = 0;
  int64_t num_tokens_ = 0;
  bool stopped_ = false;
  std::string stop_string_;
  bool finished_ = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_OPENAI_DETOKENIZER_H_
