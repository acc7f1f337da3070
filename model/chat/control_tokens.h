// Control tokens in a rendered conversation: those of the template count, those in contents do not.
#ifndef TRITONRL_MODEL_CHAT_CONTROL_TOKENS_H_
#define TRITONRL_MODEL_CHAT_CONTROL_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/tokenizer.h"

namespace tritonrl {

// A text and the half-open byte ranges in it, in order, that look like control tokens but are
// ordinary text.
struct MarkedText {
  std::string text;
  std::vector<std::pair<size_t, size_t>> literal;
};

// The control tokens of a tokenizer: its added tokens marked "special".
class ControlTokens {
 public:
  explicit ControlTokens(const Tokenizer& tokenizer);

  // Byte ranges of the control tokens in `text`: the longest at each place, from left to right.
  // With thoughts=false <think> and </think>, which assistants write themselves, are not among
  // them.
  std::vector<std::pair<size_t, size_t>> Find(absl::string_view text, bool thoughts = true) const;

  // The tokens of bytes [begin, end) of a text. A control token outside of `literal` becomes its
  // id, everything else is encoded as ordinary text.
  std::vector<int32_t> Encode(const MarkedText& text, size_t begin, size_t end) const;

 private:
  Tokenizer tokenizer_;
  AddedTokenFinder exact_;      // matches the tokens alone
  AddedTokenFinder stripping_;  // and the white space that a token strips
};

// Replaces control tokens in contents by placeholders that a template copies like any word.
class Placeholders {
 public:
  // Placeholders of two private characters that none of `texts` holds; nullopt in the improbable
  // case that all are taken.
  static std::optional<Placeholders> For(const std::vector<absl::string_view>& texts);

  // `content` with a placeholder for each of the byte ranges `parts`, which are in order.
  std::string Replace(absl::string_view content,
                      const std::vector<std::pair<size_t, size_t>>& parts);

  // The text that `rendered` stands for, and the ranges in it that were placeholders; nullopt if a
  // placeholder was cut up.
  std::optional<MarkedText> Restore(absl::string_view rendered) const;

 private:
  std::string open_, close_;
  std::vector<std::string> replaced_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_CONTROL_TOKENS_H_
