#include "exec/ttir/attribute_parser.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/constant_parser.h"
#include "exec/ttir/limits.h"

namespace tritonrl::ttir {

namespace {

absl::StatusOr<Attribute> ParseValue(Lexer& lexer, int depth);

// `array<i32: 1, 0>`
absl::StatusOr<Attribute> ParseArray(Lexer& lexer) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::kIntegers;
  lexer.Advance();
  RETURN_IF_ERROR(lexer.Expect("<"));
  RETURN_IF_ERROR(ParseType(lexer).status());
  if (lexer.Accept(":")) {
    do {
      if (lexer.Is("true") || lexer.Is("false")) {
        attribute.integers.push_back(lexer.Is("true") ? 1 : 0);
        lexer.Advance();
      } else {
        ASSIGN_OR_RETURN(const int64_t value, lexer.Integer());
        attribute.integers.push_back(value);
      }
      if (attribute.integers.size() > kMaxListElements) return lexer.Error("an array is too long");
    } while (lexer.Accept(","));
  }
  RETURN_IF_ERROR(lexer.Expect(">"));
  return attribute;
}

// `dense<16> : tensor<1xi32>`, `dense<[16, 1]> : tensor<2xi32>`: the numbers of a hint.
absl::StatusOr<Attribute> ParseDenseHint(Lexer& lexer) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::kIntegers;
  lexer.Advance();
  RETURN_IF_ERROR(lexer.Expect("<"));
  const bool list = lexer.Accept("[");
  do {
    ASSIGN_OR_RETURN(const int64_t value, lexer.Integer());
    attribute.integers.push_back(value);
    if (attribute.integers.size() > kMaxRank) return lexer.Error("a hint has too many numbers");
  } while (list && lexer.Accept(","));
  if (list) RETURN_IF_ERROR(lexer.Expect("]"));
  RETURN_IF_ERROR(lexer.Expect(">"));
  RETURN_IF_ERROR(lexer.Expect(":"));
  ASSIGN_OR_RETURN(const ShapedType type, ParseShapedType(lexer));
  if (type.dims.size() != 1 || type.dims[0] < 1 || type.dims[0] > kMaxRank ||
      (list && type.dims[0] != static_cast<int64_t>(attribute.integers.size()))) {
    return lexer.Error("a hint's numbers do not fit its type");
  }
  attribute.integers.resize(static_cast<size_t>(type.dims[0]), attribute.integers[0]);
  return attribute;
}

// `#arith.fastmath<fast>`: the word in the brackets.
absl::StatusOr<Attribute> ParseDialectAttribute(Lexer& lexer) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::kWord;
  lexer.Advance();
  RETURN_IF_ERROR(lexer.Expect("<"));
  do {
    ASSIGN_OR_RETURN(const absl::string_view word, lexer.Word());
    absl::StrAppend(&attribute.text, attribute.text.empty() ? "" : ",", word);
    if (attribute.text.size() > 256) return lexer.Error("an attribute has too many words");
  } while (lexer.Accept(","));
  RETURN_IF_ERROR(lexer.Expect(">"));
  return attribute;
}

absl::StatusOr<Attribute> ParseNumber(Lexer& lexer) {
  Attribute attribute;
  if (absl::SimpleAtoi(lexer.token().text, &attribute.integer)) {
    attribute.kind = Attribute::Kind::kInteger;
  } else {
    attribute.kind = Attribute::Kind::kOther;  // a float
  }
  lexer.Advance();
  if (lexer.Accept(":")) RETURN_IF_ERROR(ParseType(lexer).status());
  return attribute;
}

absl::StatusOr<AttributeList> ParseDictionary(Lexer& lexer, int depth) {
  AttributeList list;
  RETURN_IF_ERROR(lexer.Expect("{"));
  if (lexer.Accept("}")) return list;
  do {
    NamedAttribute named;
    const size_t begin = lexer.token().begin;
    if (lexer.token().kind == TokenKind::kString) {
      ASSIGN_OR_RETURN(named.name, lexer.String());
    } else {
      ASSIGN_OR_RETURN(const absl::string_view word, lexer.Word());
      named.name = std::string(word);
    }
    if (lexer.Accept("=")) {
      // Of all operations only arith.constant has a "value".
      ASSIGN_OR_RETURN(named.value,
                       named.name == "value" ? ParseConstant(lexer) : ParseValue(lexer, depth + 1));
    }
    named.value.begin = begin;
    list.push_back(std::move(named));
    if (list.size() > kMaxListElements) return lexer.Error("there are too many attributes");
  } while (lexer.Accept(","));
  RETURN_IF_ERROR(lexer.Expect("}"));
  return list;
}

absl::StatusOr<Attribute> ParseBracketed(Lexer& lexer, int depth) {
  Attribute attribute;
  if (lexer.Is("{")) {
    attribute.kind = Attribute::Kind::kDictionary;
    ASSIGN_OR_RETURN(attribute.entries, ParseDictionary(lexer, depth));
    return attribute;
  }
  attribute.kind = Attribute::Kind::kList;
  RETURN_IF_ERROR(lexer.Expect("["));
  if (lexer.Accept("]")) return attribute;
  do {
    ASSIGN_OR_RETURN(Attribute element, ParseValue(lexer, depth + 1));
    if (element.kind != Attribute::Kind::kDictionary) continue;
    attribute.elements.push_back(std::move(element));
    if (attribute.elements.size() > kMaxListElements) return lexer.Error("a list is too long");
  } while (lexer.Accept(","));
  RETURN_IF_ERROR(lexer.Expect("]"));
  return attribute;
}

absl::StatusOr<Attribute> ParseValue(Lexer& lexer, int depth) {
  if (depth > kMaxSyntaxDepth) return lexer.Error("an attribute is nested too deeply");
  Attribute attribute;
  if (lexer.Is("true") || lexer.Is("false")) {
    attribute.kind = Attribute::Kind::kInteger;
    attribute.integer = lexer.Is("true") ? 1 : 0;
    lexer.Advance();
    return attribute;
  }
  if (lexer.Accept("unit")) return attribute;
  if (lexer.Is("array")) return ParseArray(lexer);
  if (lexer.Is("dense")) return ParseDenseHint(lexer);
  if (lexer.Is("{") || lexer.Is("[")) return ParseBracketed(lexer, depth);
  if (lexer.Is("(")) {
    attribute.kind = Attribute::Kind::kFunctionType;
    ASSIGN_OR_RETURN(attribute.function_type, ParseFunctionType(lexer));
    return attribute;
  }
  const TokenKind kind = lexer.token().kind;
  if (kind == TokenKind::kNumber) return ParseNumber(lexer);
  if (kind == TokenKind::kHash) return ParseDialectAttribute(lexer);
  if (kind == TokenKind::kString) {
    attribute.kind = Attribute::Kind::kString;
    ASSIGN_OR_RETURN(attribute.text, lexer.String());
  } else if (kind == TokenKind::kSymbol) {
    attribute.kind = Attribute::Kind::kSymbol;
    ASSIGN_OR_RETURN(attribute.text, lexer.Symbol());
  } else {
    attribute.kind = Attribute::Kind::kOther;
    ASSIGN_OR_RETURN(attribute.type, ParseType(lexer));
  }
  return attribute;
}

}  // namespace

absl::StatusOr<AttributeList> ParseAttributes(Lexer& lexer) { return ParseDictionary(lexer, 0); }

absl::StatusOr<Attribute> ParseAttribute(Lexer& lexer) { return ParseValue(lexer, 0); }

}  // namespace tritonrl::ttir
