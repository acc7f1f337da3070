// Incremental detokenization with stop strings.
#ifndef TRITONRL_ROLLOUT_SERVE_OPENAI_DETOKENIZER_H_
#define TRITONRL_ROLLOUT_SERVE_OPENAI_DETOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/tokenizer/tokenizer.h"
#include "rollout/engine/engine.h"

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

// A token that was likely at a position.
struct AlternativeToken {
  std::string bytes;
  float log_prob = 0;
};

// A token of the text.
struct TextToken {
  std::string bytes;                  // The token's bytes, perhaps part of a character.
  std::optional<float> log_prob = 0;  // From the engine; the first of a prompt has none.
  int64_t char_start = 0;             // Index of its first character in the whole text.
  std::vector<AlternativeToken> top;  // Most likely first.
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
  // With list_all, Take also returns the tokens that have no text, each at the place of the text
  // after it: then every token pushed has an entry, unless a stop string cut it off.
  IncrementalDetokenizer(const Tokenizer& tokenizer, const std::vector<std::string>& stops,
                         bool list_all = false)
      : tokenizer_(tokenizer), matcher_(stops), list_all_(list_all) {}

  // Adds a token of the prompt, which the text then begins with; not counted, and not searched for
  // stop strings. Special tokens have their text, unless `hidden`. EndPrompt must follow the last
  // one: it ends an incomplete character, so the completion has the same text as without
  // the prompt.
  void PushPrompt(int32_t token, std::optional<float> log_prob,
                  std::span<const TokenLogProb> top = {}, bool hidden = false);
  void EndPrompt() { DecodeBytes(/*all=*/true, /*match=*/false); }

  // Adds the next token with its alternatives. Ignored after a complete stop string.
  void Push(int32_t token, float log_prob, std::span<const TokenLogProb> top = {});

  // Counts a token that ends the sample and has no text. Finish must follow.
  void PushEnd(int32_t token, float log_prob, std::span<const TokenLogProb> top = {});

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
    bool has_text = true;
  };

  void AddToken(int32_t token, std::optional<float> log_prob, std::span<const TokenLogProb> top,
                bool has_text);
  // Moves complete characters from bytes_ to text_; with `all`, also incomplete ones. match: looks
  // for stop strings.
  void DecodeBytes(bool all, bool match = true);

  const Tokenizer tokenizer_;
  StopMatcher matcher_;
  const bool list_all_;
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
