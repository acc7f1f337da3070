#include "exec/ttir/run/ptx/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace tritonrl::ttir::ptx {

namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

bool ParseInteger(absl::string_view digits, uint64_t base, uint64_t* value) {
  if (digits.empty()) return false;
  for (const char c : digits) {
    const uint64_t digit = IsDigit(c)             ? static_cast<uint64_t>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<uint64_t>(c - 'a' + 10)
                                                  : 99;
    if (digit >= base || *value > (~uint64_t{0} - digit) / base) return false;
    *value = *value * base + digit;
  }
  return true;
}

}  // namespace

std::string WithoutComments(absl::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const absl::string_view rest = text.substr(i);
    const bool is_line = absl::StartsWith(rest, "//");
    if (!is_line && !absl::StartsWith(rest, "/*")) {
      result += text[i++];
      continue;
    }
    const size_t end = text.find(is_line ? "\n" : "*/", i + 2);
    i = end == absl::string_view::npos ? text.size() : end + (is_line ? 1 : 2);
    result += ' ';
  }
  return result;
}

absl::string_view TakeWord(absl::string_view* text) {
  size_t end = 0;
  while (end < text->size() && !absl::ascii_isspace(static_cast<unsigned char>((*text)[end])))
    ++end;
  const absl::string_view word = text->substr(0, end);
  *text = absl::StripAsciiWhitespace(text->substr(end));
  return word;
}

std::vector<absl::string_view> SplitOperands(absl::string_view text) {
  std::vector<absl::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '{') ++depth;
    if (i < text.size() && text[i] == '}') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    const absl::string_view part = absl::StripAsciiWhitespace(text.substr(begin, i - begin));
    if (!part.empty() || i < text.size() || !parts.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

std::optional<Number> ParseNumber(absl::string_view text) {
  Number number;
  const bool negative = absl::ConsumePrefix(&text, "-");
  const std::string lower = absl::AsciiStrToLower(text);
  absl::string_view digits = lower;
  if (absl::StartsWith(digits, "0f") || absl::StartsWith(digits, "0d")) {
    const bool fits = digits.size() == (digits[1] == 'f' ? 10 : 18) && !negative;
    if (!fits || !ParseInteger(digits.substr(2), 16, &number.bits)) return std::nullopt;
    return number;
  }
  if (!absl::StartsWith(digits, "0x") && digits.find('.') != absl::string_view::npos) {
    number.has_point = true;
    const bool is_number = IsDigit(digits[0]) || digits[0] == '.';
    if (!is_number || !absl::SimpleAtod(digits, &number.value)) return std::nullopt;
    if (negative) number.value = -number.value;
    return number;
  }
  uint64_t base = digits.size() > 1 && digits[0] == '0' ? 8 : 10;
  if (absl::ConsumePrefix(&digits, "0x")) base = 16;
  if (absl::ConsumePrefix(&digits, "0b")) base = 2;
  absl::ConsumeSuffix(&digits, "u");
  if (!ParseInteger(digits, base, &number.bits)) return std::nullopt;
  if (negative) number.bits = 0 - number.bits;
  return number;
}

}  // namespace tritonrl::ttir::ptx
