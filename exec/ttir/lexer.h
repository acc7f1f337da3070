// Divides MLIR text into tokens. The text is untrusted; every error names line and column.
#ifndef TRITONRL_EXEC_TTIR_LEXER_H_
#define TRITONRL_EXEC_TTIR_LEXER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl::ttir {

enum class TokenKind : uint8_t {
  kEnd,
  kBad,          // a character or string that is not a token
  kWord,         // module, tt.load, f32, x32xf32
  kNumber,       // 12, -3, 0x7F, 1.0e+00
  kString,       // "...": `text` still has its quotes and escapes
  kValue,        // %name
  kBlock,        // ^bb1
  kSymbol,       // @name or @"name"
  kHash,         // #loc3, #1
  kBang,         // !tt.ptr
  kPunctuation,  // ( ) { } [ ] < > , : = * + / ->
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;
  size_t begin = 0;  // offset into the whole text

  bool is(absl::string_view word) const {
    return text == word && (kind == TokenKind::kPunctuation || kind == TokenKind::kWord);
  }
};

class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) { Advance(); }

  const Token& token() const { return token_; }  // the current one
  void Advance();
  // Makes the token that begins at `offset` the current one.
  void Seek(size_t offset) {
    at_ = offset;
    Advance();
  }

  bool Is(absl::string_view word) const { return token_.is(word); }
  // Consumes the current token if it is `word`; false if it is another.
  bool Accept(absl::string_view word);
  absl::Status Expect(absl::string_view word);

  // Each consumes a token of its kind and returns its value. InvalidArgument for another token.
  absl::StatusOr<absl::string_view> Word();
  absl::StatusOr<std::string> String();
  absl::StatusOr<std::string> Symbol();
  absl::StatusOr<int64_t> Integer();
  absl::StatusOr<int32_t> Integer32();

  // InvalidArgument: "TTIR text line 3, column 7: <what>".
  absl::Status Error(absl::string_view what) const { return ErrorAt(token_.begin, what); }
  absl::Status ErrorAt(size_t offset, absl::string_view what) const;
  // "expected ... but found ..." at the current token.
  absl::Status Expected(absl::string_view what) const;

  absl::string_view text() const { return text_; }
  // Line and column of an offset, from 1; fast for offsets that grow.
  struct Position {
    int line;
    int column;
  };
  Position PositionOf(size_t offset) const;

 private:
  void SkipSpace();
  size_t ScanWhile(size_t from, bool (*accepts)(char)) const;
  size_t ScanString(size_t from) const;  // the offset after the closing quote, or from
  size_t ScanNumber(size_t from) const;

  absl::string_view text_;
  size_t at_ = 0;
  Token token_;
  mutable size_t counted_to_ = 0;  // lines are counted up to here
  mutable int counted_lines_ = 1;
  mutable size_t line_begin_ = 0;
};

// Removes the quotes and resolves MLIR's escapes (\0A, \22, \\, \n, \t, \").
absl::StatusOr<std::string> Unquote(absl::string_view quoted);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_LEXER_H_
