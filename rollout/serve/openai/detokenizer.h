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

// Finds, byte by byte, the first position at which one of several strings is complete (a
// Knuth-Morris-Pratt automaton for each string).
class StopMatcher {
 public:
  // No string of `stops` may be empty.
  explicit StopMatcher(std::vector<std::string> stops);

  // Takes the next byte. Returns the length of the stop string that ends with it (the longest, if
  // several do), or 0.
  size_t Feed(char byte);

  // Number of bytes at the end of the input that may be the beginning of a stop string.
  size_t held() const;

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> failure;  // Length of the longest proper border of each prefix.
    size_t matched = 0;
  };
  std::vector<Pattern> patterns_;
};

// A token that contributes to the text.
struct TextToken {
  std::string bytes;       // The token's bytes, perhaps part of a character.
  float log_prob = 0;      // From the engine.
  int64_t char_start = 0;  // Index of its first character in the whole text.
};

// New text of a sample, and its tokens.
struct TextDelta {
  std::string text;  // Whole characters, valid UTF-8.
  std::vector<TextToken> tokens;
  bool empty() const { return text.empty() && tokens.empty(); }
};

// Builds the text of one sample. Holds back the bytes of an incomplete character, and text that may
// be the beginning of a stop string. Special tokens and ids without a token have no text. The
// concatenated text does not depend on when Take is called; without a stop string it equals
// Tokenizer::Decode(tokens, skip_special=true).
class IncrementalDetokenizer {
 public:
  IncrementalDetokenizer(const Tokenizer& tokenizer, const std::vector<std::string>& stops)
      : tokenizer_(tokenizer), matcher_(stops) {}

  // Adds the next token. Ignored after a complete stop string.
  void Push(int32_t token, float log_prob);

  // Counts a token that ends the sample and is not shown. Finish must follow.
  void PushEnd() {
    if (!stopped_ && !finished_) ++num_tokens_;
  }

  // Ends the sample: releases all text held back; bytes of an incomplete character become U+FFFD.
  void Finish();

  // Returns the text that can be shown and was not yet taken. A token is part of the first piece
  // that shows some of its text.
  TextDelta Take();

  // Whether a stop string was found; the text ends before it.
  bool stopped() const { return stopped_; }
  // That stop string.
  const std::string& stop_string() const { return stop_string_; }
  // Tokens pushed, up to the one that completed a stop string.
  int64_t num_tokens() const { return num_tokens_; }

 private:
  struct Placed {
    TextToken token;
    size_t start = 0;  // Offset of its first byte in text_.
  };

  // Moves complete characters from bytes_ to text_; with `all`, also incomplete ones.
  void DecodeBytes(bool all);

  const Tokenizer tokenizer_;
  StopMatcher matcher_;
  std::string bytes_;  // Not yet decoded: an incomplete character.
  std::string text_;   // Decoded, cut before the stop string.
  int64_t chars_ = 0;  // Characters in text_.
  size_t shown_ = 0;   // Number of bytes of text_ that Take has returned.
  std::vector<Placed> tokens_;
  size_t tokens_shown_ = 0;
  int64_t num_tokens_ = 0;
  bool stopped_ = false;
  std::string stop_string_;
  bool finished_ = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_OPENAI_DETOKENIZER_H_
