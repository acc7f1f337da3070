// Tokenizer: text to token ids and back.

#ifndef TRITONRL_MODEL_TOKENIZER_TOKENIZER_H_
#define TRITONRL_MODEL_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// BPE tokenizer that reads Hugging Face `tokenizer.json`, byte-level (Qwen, GPT-2, Llama 3,
// DeepSeek, Seed-Coder) or over characters with byte fallback (Llama 2, Mistral), and gives the
// same ids as the `tokenizers` library.
//
// Immutable after loading, cheap to copy (copies share the tables), thread-safe.
class Tokenizer {
 public:
  // Reads a `tokenizer.json`. Errors name the file and the missing or unsupported part.
  static absl::StatusOr<Tokenizer> Load(const std::string& tokenizer_json_path);

  // Reads the text of a `tokenizer.json`; error messages use `name` as the file's name.
  static absl::StatusOr<Tokenizer> FromJson(absl::string_view json, const std::string& name);

  // Returns the ids of `text`. Bytes that are not valid UTF-8 are first replaced by U+FFFD, one for
  // each maximal ill-formed part (as in Python's decode(errors="replace")). Added tokens in the
  // text are recognised. With parse_special=false those marked "special" remain plain text (the
  // library's encode_special_tokens=True), which is right for text that must not contain control
  // tokens. With add_special the ids stand between special_prefix() and special_suffix(), as the
  // library's add_special_tokens=True gives them. Throws std::bad_alloc or std::runtime_error if
  // the split into pieces fails, as for lack of memory.
  std::vector<int32_t> Encode(absl::string_view text, bool parse_special = true,
                              bool add_special = false) const;

  // The ids that the file's post_processor puts before and after a single text, such as
  // <|begin_of_text|> of Llama 3; empty for most models.
  const std::vector<int32_t>& special_prefix() const;
  const std::vector<int32_t>& special_suffix() const;

  // Returns the text of `ids`, always valid UTF-8: bytes of an incomplete character become U+FFFD.
  // Omits ids without a token and, with skip_special, tokens marked "special".
  std::string Decode(std::span<const int32_t> ids, bool skip_special = false) const;

  // Returns the bytes of token `id` (maybe part of a character), empty for an id without a token.
  // For streaming: the concatenation over a sequence is Decode's text before the repair of UTF-8.
  // If the decoder removes a space at the start of a text (Llama 2), this space is in the bytes.
  const std::string& TokenBytes(int32_t id) const;

  // Returns the id whose token is exactly `text` (plain text such as "</think>" or " the", not the
  // "Ġthe" of the file).
  std::optional<int32_t> TokenId(absl::string_view text) const;

  // Whether `id` is an added token marked "special".
  bool IsSpecial(int32_t id) const;

  // The largest id plus one. A model's vocabulary may be larger (padding) or smaller (CheckFits).
  int vocab_size() const;

  // Checks that a model of `vocab_size` ids can read what the text of its folder is encoded to.
  // InvalidArgument if tokens of the BPE model lie outside: the folder's files do not belong
  // together. Added tokens outside are none: fine-tunes add a token for padding and leave the
  // model as it was. They are logged, and a text that has one fails where it meets the model.
  absl::Status CheckFits(int64_t vocab_size, absl::string_view dir) const;

 private:
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);

  std::shared_ptr<const Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_TOKENIZER_H_
