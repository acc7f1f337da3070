#ifndef TRITONRL_MODEL_TOKENIZER_BYTE_LEVEL_H_
#define TRITONRL_MODEL_TOKENIZER_BYTE_LEVEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tritonrl {

// GPT-2's alphabet: tokenizer.json writes each byte as one printable character, printable Latin-1
// bytes as themselves and the other 68 as U+0100, U+0101, ... in byte order (a space is "Ġ").

// The character that stands for `byte`.
char32_t ByteToChar(uint8_t byte);

// The byte that `code_point` stands for, if any.
std::optional<uint8_t> CharToByte(char32_t code_point);

// Bytes in the written form.
std::string BytesToWritten(absl::string_view bytes);

// The inverse; nothing if a character is not in the alphabet.
std::optional<std::string> WrittenToBytes(absl::string_view written);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_BYTE_LEVEL_H_
