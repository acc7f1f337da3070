// Byte pair encoding over bytes or characters: the bytes' alphabet and the merges.

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

// The "model" of tokenizer.json: byte pair encoding. It starts with one token for each byte (of a
// byte-level tokenizer) or each character, and applies the merge of lowest rank (the leftmost among
// equals) until no merge applies. A character without a token becomes its bytes' tokens, such as
// <0x0A>, with byte_fallback, else the unknown token if there is one.
class Bpe {
 public:
  // Reads {"type": "BPE", "vocab": {token: id}, "merges": [...]}, merges as "a b" or ["a", "b"].
  // `byte_level`: the tokens are written in the alphabet above. InvalidArgument for other types,
  // for unsupported options that change the result, and for merges of tokens that are not in the
  // vocabulary.
  static absl::StatusOr<Bpe> FromJson(const nlohmann::json& json, bool byte_level);

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
    int32_t merged_id = -1;  // Of the merge with the next symbol, -1 if there is none.
  };
  static uint64_t PairKey(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  absl::Status ReadMerges(const nlohmann::json& list,
                          const absl::flat_hash_map<std::string, int32_t>& vocab);
  void ReadUnits(const absl::flat_hash_map<std::string, int32_t>& vocab);
  // Returns the symbols that a piece starts with.
  std::vector<Symbol> Symbols(absl::string_view piece) const;
  void MergeAll(std::vector<Symbol>* symbols) const;

  std::vector<std::pair<std::string, int32_t>> tokens_;
  bool byte_level_ = true;
  std::array<int32_t, 256> byte_ids_;  // -1: the byte has no token.
  absl::flat_hash_map<char32_t, int32_t> char_ids_;
  std::array<int32_t, 256> fallback_ids_;  // Of <0x00> and so on; -1 without byte_fallback.
  int32_t unknown_id_ = -1;                // -1: what has no token is dropped.
  bool fuse_unknown_ = false;  // One unknown token for several such characters in a row.
  absl::flat_hash_map<uint64_t, Merge> merges_;
  // Pieces that are a token as a whole; only with ignore_merges.
  absl::flat_hash_map<std::string, int32_t> whole_pieces_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_BPE_H_
