#include "exec/ttir/lexer.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl::ttir {

namespace {

constexpr size_t kQuotedInErrors = 40;

bool IsWordStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsWordPart(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '$' || c == '.'; }
bool IsNamePart(char c) { return IsWordPart(c) || c == '-'; }
bool IsDigit(char c) { return absl::ascii_isdigit(c); }
bool IsHexDigit(char c) { return absl::ascii_isxdigit(c); }

int HexValue(char c) {
  return IsDigit(c) ? c - '0' : absl::ascii_tolower(static_cast<unsigned char>(c)) - 'a' + 10;
}

}  // namespace

void Lexer::SkipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

size_t Lexer::ScanWhile(size_t from, bool (*accepts)(char)) const {
  while (from < text_.size() && accepts(text_[from])) ++from;
  return from;
}

size_t Lexer::ScanString(size_t from) const {
  for (size_t i = from + 1; i < text_.size() && text_[i] != '\n'; ++i) {
    if (text_[i] == '"') return i + 1;
    if (text_[i] == '\\') ++i;
  }
  return from;
}

size_t Lexer::ScanNumber(size_t from) const {
  size_t end = from + (text_[from] == '-' ? 1 : 0);
  if (text_.substr(end, 2) == "0x" && end + 2 < text_.size() && IsHexDigit(text_[end + 2])) {
    return ScanWhile(end + 2, IsHexDigit);
  }
  end = ScanWhile(end, IsDigit);
  if (end < text_.size() && text_[end] == '.') {
    end = ScanWhile(end + 1, IsDigit);
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && IsDigit(text_[exponent])) end = ScanWhile(exponent, IsDigit);
    }
  }
  return end;
}

void Lexer::Advance() {
  SkipSpace();
  const size_t begin = at_;
  token_.begin = begin;
  if (begin >= text_.size()) {
    token_.kind = TokenKind::kEnd;
    token_.text = "";
    return;
  }
  const char c = text_[begin];
  const char next = begin + 1 < text_.size() ? text_[begin + 1] : '\0';
  size_t end = begin + 1;
  TokenKind kind = TokenKind::kPunctuation;
  if (IsWordStart(c)) {
    kind = TokenKind::kWord;
    end = ScanWhile(begin, IsWordPart);
  } else if (IsDigit(c) || (c == '-' && IsDigit(next))) {
    kind = TokenKind::kNumber;
    end = ScanNumber(begin);
  } else if (c == '"') {
    end = ScanString(begin);
    kind = end == begin ? TokenKind::kBad : TokenKind::kString;
    if (end == begin) ++end;
  } else if (c == '@' && next == '"') {
    end = ScanString(begin + 1);
    kind = end == begin + 1 ? TokenKind::kBad : TokenKind::kSymbol;
  } else if (c == '%' || c == '^' || c == '@' || c == '#' || c == '!') {
    kind = c == '%'   ? TokenKind::kValue
           : c == '^' ? TokenKind::kBlock
           : c == '@' ? TokenKind::kSymbol
           : c == '#' ? TokenKind::kHash
                      : TokenKind::kBang;
    end = ScanWhile(begin + 1, c == '%' || c == '^' ? IsNamePart : IsWordPart);
    if (end == begin + 1) kind = TokenKind::kBad;
  } else if (c == '-' && next == '>') {
    end = begin + 2;
  } else if (absl::string_view("(){}[]<>,:=*+/?|").find(c) == absl::string_view::npos) {
    kind = TokenKind::kBad;
  }
  token_.kind = kind;
  token_.text = text_.substr(begin, end - begin);
  at_ = end;
}

bool Lexer::Accept(absl::string_view word) {
  if (!Is(word)) return false;
  Advance();
  return true;
}

absl::Status Lexer::Expect(absl::string_view word) {
  if (Accept(word)) return absl::OkStatus();
  return Expected(absl::StrCat("\"", word, "\""));
}

absl::StatusOr<absl::string_view> Lexer::Word() {
  if (token_.kind != TokenKind::kWord) return Expected("a word");
  const absl::string_view word = token_.text;
  Advance();
  return word;
}

absl::StatusOr<std::string> Lexer::String() {
  if (token_.kind != TokenKind::kString) return Expected("a string");
  auto text = Unquote(token_.text);
  if (!text.ok()) return Error(text.status().message());
  Advance();
  return text;
}

absl::StatusOr<std::string> Lexer::Symbol() {
  if (token_.kind != TokenKind::kSymbol) return Expected("a function's name");
  std::string name(token_.text.substr(1));
  if (!name.empty() && name[0] == '"') {
    auto text = Unquote(name);
    if (!text.ok()) return Error(text.status().message());
    name = *std::move(text);
  }
  Advance();
  return name;
}

absl::StatusOr<int64_t> Lexer::Integer() {
  int64_t value = 0;
  if (token_.kind != TokenKind::kNumber || !absl::SimpleAtoi(token_.text, &value)) {
    return Expected("an integer of at most 64 bits");
  }
  Advance();
  return value;
}

absl::StatusOr<int32_t> Lexer::Integer32() {
  int32_t value = 0;
  if (token_.kind != TokenKind::kNumber || !absl::SimpleAtoi(token_.text, &value)) {
    return Expected("an integer of at most 32 bits");
  }
  Advance();
  return value;
}

Lexer::Position Lexer::PositionOf(size_t offset) const {
  offset = std::min(offset, text_.size());
  if (offset < counted_to_) {
    counted_to_ = line_begin_ = 0;
    counted_lines_ = 1;
  }
  for (; counted_to_ < offset; ++counted_to_) {
    if (text_[counted_to_] != '\n') continue;
    ++counted_lines_;
    line_begin_ = counted_to_ + 1;
  }
  return {counted_lines_, static_cast<int>(offset - line_begin_ + 1)};
}

absl::Status Lexer::ErrorAt(size_t offset, absl::string_view what) const {
  const Position position = PositionOf(offset);
  return absl::InvalidArgumentError(
      absl::StrCat("TTIR text line ", position.line, ", column ", position.column, ": ", what));
}

absl::Status Lexer::Expected(absl::string_view what) const {
  if (token_.kind == TokenKind::kEnd) {
    return Error(absl::StrCat("expected ", what, " but the text ends"));
  }
  if (token_.kind == TokenKind::kBad && token_.text[0] == '"') {
    return Error("a string has no closing quote on its line");
  }
  const std::string found = absl::CHexEscape(token_.text.substr(0, kQuotedInErrors));
  return Error(absl::StrCat("expected ", what, " but found '", found, "'"));
}

absl::StatusOr<std::string> Unquote(absl::string_view quoted) {
  std::string text;
  if (quoted.size() < 2) return absl::InvalidArgumentError("a string has no quotes");
  quoted = quoted.substr(1, quoted.size() - 2);
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      text.push_back(quoted[i]);
      continue;
    }
    const char next = i + 1 < quoted.size() ? quoted[i + 1] : '\0';
    if (next == '\\' || next == '"') {
      text.push_back(next);
      i += 1;
    } else if (next == 'n' || next == 't') {
      text.push_back(next == 'n' ? '\n' : '\t');
      i += 1;
    } else if (i + 2 < quoted.size() && IsHexDigit(next) && IsHexDigit(quoted[i + 2])) {
      text.push_back(static_cast<char>(HexValue(next) * 16 + HexValue(quoted[i + 2])));
      i += 2;
    } else {
      return absl::InvalidArgumentError("a string has an unknown escape");
    }
  }
  return text;
}

}  // namespace tritonrl::ttir
