// Added tokens of a tokenizer, such as <|im_end|>, and their search in a text.

#ifndef TRITONRL_MODEL_TOKENIZER_ADDED_TOKENS_H_
#define TRITONRL_MODEL_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A token that is matched literally in the text instead of being built by merges.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // A control token; Decode(skip_special) omits it.
  bool normalized = false;   // Matched in the normalized text, not the raw one.
  bool lstrip = false;       // The match includes the white space before it.
  bool rstrip = false;       // The match includes the white space after it.
  bool single_word = false;  // Not matched inside a word.
};

// A part of a text: one added token, or text for the BPE model to encode (id -1).
struct TextPart {
  absl::string_view text;
  int32_t id = -1;
};

// Finds added tokens: at each position the longest one, from left to right without overlap.
class AddedTokenFinder {
 public:
  // A match of `patterns[i]` stands for `tokens[i]`.
  AddedTokenFinder(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns);
  AddedTokenFinder() = default;

  // Returns the parts of `text` (valid UTF-8) in order. With parse_special=false special tokens
  // remain text.
  std::vector<TextPart> Split(absl::string_view text, bool parse_special) const;

 private:
  struct Node {
    absl::flat_hash_map<char, int> next;
    int token = -1;
  };
  // Returns the index of the longest token that begins at `begin`, -1 if none; sets `*end` past it.
  int LongestAt(absl::string_view text, size_t begin, size_t* end) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;         // A trie over bytes; node 0 is the root.
  std::array<bool, 256> begins_{};  // Whether some token begins with this byte.
};

// Reads the list "added_tokens" of tokenizer.json. InvalidArgument if an entry is malformed.
absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const nlohmann::json& list);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_ADDED_TOKENS_H_
