// Decodes, validates and repairs UTF-8.
#ifndef TRITONRL_BASE_UTF8_H_
#define TRITONRL_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tritonrl {

// The result of decoding one character.
struct Utf8Char {
  // The code point, or U+FFFD if the bytes are ill-formed.
  char32_t code_point = 0;
  // Bytes of the character, or of the maximal ill-formed part (Unicode 15, section 3.9, "U+FFFD
  // Substitution of Maximal Subparts"). Python and Rust also replace that part by one U+FFFD.
  size_t length = 0;
  bool valid = false;
};

// Decodes the character at the beginning of `text`, which must not be empty.
Utf8Char DecodeUtf8Char(absl::string_view text);

// Appends `code_point` (a Unicode scalar value) as UTF-8.
void AppendUtf8(char32_t code_point, std::string* out);

// Whether `text` is well-formed UTF-8.
bool IsValidUtf8(absl::string_view text);

// Returns `text` with each maximal ill-formed part replaced by U+FFFD.
std::string RepairUtf8(absl::string_view text);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_UTF8_H_
