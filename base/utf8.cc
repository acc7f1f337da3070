#include "base/utf8.h"

namespace tritonrl {
namespace {

bool Between(unsigned char byte, int low, int high) { return byte >= low && byte <= high; }

}  // namespace

// Table 3-7 of the Unicode standard: the second byte's range depends on the first.
int Utf8CharacterSize(absl::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (Between(first, 0xC2, 0xDF)) return Between(byte(1), 0x80, 0xBF) ? 2 : 0;
  if (Between(first, 0xE0, 0xEF)) {
    const int low = first == 0xE0 ? 0xA0 : 0x80;
    const int high = first == 0xED ? 0x9F : 0xBF;
    return Between(byte(1), low, high) && Between(byte(2), 0x80, 0xBF) ? 3 : 0;
  }
  if (Between(first, 0xF0, 0xF4)) {
    const int low = first == 0xF0 ? 0x90 : 0x80;
    const int high = first == 0xF4 ? 0x8F : 0xBF;
    const bool tail = Between(byte(2), 0x80, 0xBF) && Between(byte(3), 0x80, 0xBF);
    return Between(byte(1), low, high) && tail ? 4 : 0;
  }
  return 0;
}

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const int size = Utf8CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string ReplaceInvalidUtf8(absl::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const int size = Utf8CharacterSize(text);
    if (size == 0) {
      valid += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      valid.append(text.data(), size);
      text.remove_prefix(size);
    }
  }
  return valid;
}

}  // namespace tritonrl
