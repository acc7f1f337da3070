#include "base/utf8.h"

namespace tritonrl {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// Whether `byte` may follow `lead` (Unicode table 3-7). The ranges exclude over-long forms,
// surrogates and code points above U+10FFFF.
bool IsSecondByte(unsigned char lead, unsigned char byte) {
  switch (lead) {
    case 0xE0:
      return byte >= 0xA0 && byte <= 0xBF;
    case 0xED:
      return byte >= 0x80 && byte <= 0x9F;
    case 0xF0:
      return byte >= 0x90 && byte <= 0xBF;
    case 0xF4:
      return byte >= 0x80 && byte <= 0x8F;
    default:
      return IsContinuation(byte);
  }
}

// Length in bytes of a character that begins with `lead`; 0 if no character begins with it.
size_t SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

}  // namespace

Utf8Char DecodeUtf8Char(absl::string_view text) {
  const unsigned char lead = static_cast<unsigned char>(text[0]);
  const size_t length = SequenceLength(lead);
  if (length == 1) return {lead, 1, true};
  if (length == 0) return {kReplacement, 1, false};
  char32_t code_point = lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size()) return {kReplacement, i, false};
    const unsigned char byte = static_cast<unsigned char>(text[i]);
    const bool allowed = i == 1 ? IsSecondByte(lead, byte) : IsContinuation(byte);
    if (!allowed) return {kReplacement, i, false};
    code_point = (code_point << 6) | (byte & 0x3F);
  }
  return {code_point, length, true};
}

void AppendUtf8(char32_t code_point, std::string* out) {
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code_point >> 6)));
    out->push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  } else if (code_point < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (code_point >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code_point >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | (code_point >> 18)));
    out->push_back(static_cast<char>(0x80 | ((code_point >> 12) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | ((code_point >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  }
}

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const Utf8Char next = DecodeUtf8Char(text);
    if (!next.valid) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

std::string RepairUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char next = DecodeUtf8Char(text);
    if (next.valid) {
      out.append(text.data(), next.length);
    } else {
      AppendUtf8(kReplacement, &out);
    }
    text.remove_prefix(next.length);
  }
  return out;
}

}  // namespace tritonrl
