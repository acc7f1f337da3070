#ifndef TRITONRL_MODEL_TOKENIZER_TOKENIZER_H_
#define TRITONRL_MODEL_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// Byte-level BPE tokenizer that reads Hugging Face `tokenizer.json` (the Qwen2/3, GPT-2 and Llama 3
// kind: optional Unicode normalizer, Split and ByteLevel pre-tokenizers, BPE model) and gives the
// same ids as the `tokenizers` library with add_special_tokens=False.
//
// Immutable after loading, cheap to copy (shares its tables), safe to use from several threads.
class Tokenizer {
 public:
  // Reads a `tokenizer.json`. Errors name the file and the part that is missing or not supported.
  static absl::StatusOr<Tokenizer> Load(const std::string& tokenizer_json_path);

  // The same from the text of the file; `name` stands for the file in error messages.
  static absl::StatusOr<Tokenizer> FromJson(absl::string_view json, const std::string& name);

  // Ids of `text`. Bytes that are not valid UTF-8 are first replaced by U+FFFD, one for each
  // maximal ill-formed part (what Python's decode(errors="replace") does). Added tokens in the text
  // are recognised; with parse_special=false those marked "special" are left as plain text (the
  // library's encode_special_tokens=True), which is right for text that must not hold control
  // tokens. No begin or end token is ever added.
  std::vector<int32_t> Encode(absl::string_view text, bool parse_special = true) const;

  // Text of `ids`, always valid UTF-8: bytes of a character that was cut in two become U+FFFD.
  // With skip_special, tokens marked "special" are left out. Ids without a token are left out.
  std::string Decode(std::span<const int32_t> ids, bool skip_special = false) const;

  // The bytes that `id` stands for (maybe part of a character), empty for an id without a token.
  // Concatenating them over a sequence is Decode without the repair; for streaming.
  const std::string& TokenBytes(int32_t id) const;

  // The id whose token is exactly `text` (plain text such as "</think>" or " the", not the "Ġthe"
  // of the file).
  std::optional<int32_t> TokenId(absl::string_view text) const;

  // Whether `id` is an added token marked "special".
  bool IsSpecial(int32_t id) const;

  // Largest id plus one. A model's vocabulary may be larger (padding) but not smaller.
  int vocab_size() const;

 private:
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);

  std::shared_ptr<const Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_TOKENIZER_H_
