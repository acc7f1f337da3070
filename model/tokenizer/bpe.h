// Byte-level byte pair encoding: the bytes' alphabet and the merges.

#ifndef TRITONRL_MODEL_TOKENIZER_BPE_H_
#define TRITONRL_MODEL_TOKENIZER_BPE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// GPT-2's alphabet: tokenizer.json writes each byte as one printable character. Printable Latin-1
// bytes stand for themselves, the other 68 are U+0100, U+0101, ... in byte order (a space is "Ġ").

// Returns the character that stands for `byte`.
char32_t ByteToChar(uint8_t byte);

// Returns the byte that `code_point` stands for, if any.
std::optional<uint8_t> CharToByte(char32_t code_point);

// Writes bytes in this alphabet, as UTF-8.
std::string EncodeBytes(absl::string_view bytes);

// The inverse of EncodeBytes; nullopt if a character is not in the alphabet.
std::optional<std::string> DecodeBytes(absl::string_view written);

// The "model" of tokenizer.json: byte-level byte pair encoding. It starts with one token for each
// byte and applies the merge of lowest rank (the leftmost among equals) until no merge applies.
class Bpe {
 public:
  // Reads {"type": "BPE", "vocab": {token: id}, "merges": [...]}, merges as "a b" or ["a", "b"].
  // InvalidArgument for other types, for unsupported options that change the result (unk_token
  // without effect is allowed), and for merges of tokens that are not in the vocabulary.
  static absl::StatusOr<Bpe> FromJson(const nlohmann::json& json);

  // Appends the ids of one piece of text to `ids`.
  void Encode(absl::string_view piece, std::vector<int32_t>* ids) const;

  // The vocabulary: tokens as the file writes them, with their ids, in no particular order.
  const std::vector<std::pair<std::string, int32_t>>& tokens() const { return tokens_; }

 private:
  struct Merge {
    int32_t rank = 0;
    int32_t id = 0;
  };
  struct Symbol {
    int32_t id = 0;
    int previous = -1;  // Index of the neighbour, -1 at the ends.
    int next = -1;
    bool merged_away = false;
  };
  static uint64_t PairKey(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  absl::Status ReadMerges(const nlohmann::json& list,
                          const absl::flat_hash_map<std::string, int32_t>& vocab);
  // Returns one symbol for each byte that has a token.
  std::vector<Symbol> ByteSymbols(absl::string_view piece) const;
  void MergeAll(std::vector<Symbol>* symbols) const;

  std::vector<std::pair<std::string, int32_t>> tokens_;
  std::array<int32_t, 256> byte_ids_;  // -1: the byte has no token and is dropped.
  absl::flat_hash_map<uint64_t, Merge> merges_;
  // Pieces that are a token as a whole; only with ignore_merges.
  absl::flat_hash_map<std::string, int32_t> whole_pieces_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_BPE_H_
