#include "model/tokenizer/byte_level.h"

#include <array>

#include "base/utf8.h"

namespace tritonrl {
namespace {

constexpr int kAlphabetEnd = 0x100 + 68;

constexpr bool WritesItself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<char32_t, 256> to_char{};
  std::array<int, kAlphabetEnd> to_byte{};  // -1: no byte
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  for (int& byte : alphabet.to_byte) byte = -1;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t code_point = WritesItself(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.to_char[byte] = code_point;
    alphabet.to_byte[code_point] = byte;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

char32_t ByteToChar(uint8_t byte) { return kAlphabet.to_char[byte]; }

std::optional<uint8_t> CharToByte(char32_t code_point) {
  if (code_point >= kAlphabetEnd || kAlphabet.to_byte[code_point] < 0) return std::nullopt;
  return static_cast<uint8_t>(kAlphabet.to_byte[code_point]);
}

std::string BytesToWritten(absl::string_view bytes) {
  std::string written;
  for (char byte : bytes) AppendUtf8(ByteToChar(static_cast<uint8_t>(byte)), &written);
  return written;
}

std::optional<std::string> WrittenToBytes(absl::string_view written) {
  std::string bytes;
  while (!written.empty()) {
    const Utf8Char next = DecodeUtf8Char(written);
    const std::optional<uint8_t> byte = CharToByte(next.code_point);
    if (!next.valid || !byte) return std::nullopt;
    bytes.push_back(static_cast<char>(*byte));
    written.remove_prefix(next.length);
  }
  return bytes;
}

}  // namespace tritonrl
