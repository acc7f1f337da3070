#ifndef TRITONRL_MODEL_TOKENIZER_ADDED_TOKENS_H_
#define TRITONRL_MODEL_TOKENIZER_ADDED_TOKENS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A token that is found in the text as it stands instead of being made by merges.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // Left out by Decode(skip_special), a control token.
  bool normalized = false;   // Looked for in the normalized text.
  bool lstrip = false;       // Takes the white space before it along.
  bool rstrip = false;       // Takes the white space after it along.
  bool single_word = false;  // Not recognised inside a word.
};

// A part of a text: one added token, or text that the model has to encode (id -1).
struct TextPart {
  absl::string_view text;
  int32_t id = -1;
};

// Finds added tokens: at each position the longest one, from left to right without overlap.
class AddedTokenFinder {
 public:
  // Looks for `patterns[i]`, which stands for `tokens[i]`.
  AddedTokenFinder(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns);
  AddedTokenFinder() = default;

  // Parts of `text` (valid UTF-8) in order. With parse_special=false special tokens stay text.
  std::vector<TextPart> Split(absl::string_view text, bool parse_special) const;

 private:
  struct Node {
    absl::flat_hash_map<char, int> next;
    int token = -1;
  };
  // The longest token that begins at `begin`, -1 if none; `*end` is set past it.
  int LongestAt(absl::string_view text, size_t begin, size_t* end) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;  // A trie over bytes; node 0 is the root.
};

// The list "added_tokens" of tokenizer.json. InvalidArgument if an entry is malformed.
absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const nlohmann::json& list);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_ADDED_TOKENS_H_
