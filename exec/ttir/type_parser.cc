#include "exec/ttir/type_parser.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/limits.h"

namespace tritonrl::ttir {

namespace {

absl::StatusOr<Type> ParseScalarWord(Lexer& lexer) {
  if (lexer.token().kind != TokenKind::kWord) return lexer.Expected("a type");
  absl::string_view name = lexer.token().text;
  Type::Signedness signedness = Type::Signedness::kNone;
  if (name.size() > 2 && name[1] == 'i' && (name[0] == 's' || name[0] == 'u')) {
    signedness = name[0] == 's' ? Type::Signedness::kSigned : Type::Signedness::kUnsigned;
    name.remove_prefix(1);
  }
  const std::optional<ScalarKind> kind = FindScalar(name);
  if (!kind.has_value()) return lexer.Expected("a type that the executor knows");
  lexer.Advance();
  return Type::Scalar(*kind).WithSignedness(signedness);
}

// `!tt.ptr<scalar>`, also of pointers; `!tt.ptr<tensor<...>>` only where `tensors`.
absl::StatusOr<Type> ParsePointerBody(Lexer& lexer, bool tensors, int depth);

absl::StatusOr<Type> ParseElement(Lexer& lexer, int depth) {
  if (lexer.token().text != "!tt.ptr") return ParseScalarWord(lexer);
  if (depth > kMaxPointerLevels) return lexer.Error("a pointer type has too many levels");
  lexer.Advance();
  return ParsePointerBody(lexer, /*tensors=*/false, depth + 1);
}

// Reads `16x32x` in front of the element type. The tokens do not divide there, so that the text is
// read directly.
absl::StatusOr<std::vector<int64_t>> ParseDimensions(Lexer& lexer) {
  std::vector<int64_t> dims;
  const absl::string_view text = lexer.text();
  size_t at = lexer.token().begin;
  while (at < text.size() && absl::ascii_isdigit(text[at])) {
    int64_t size = 0;
    size_t end = at;
    for (; end < text.size() && absl::ascii_isdigit(text[end]); ++end) {
      size = size * 10 + (text[end] - '0');
      if (size > (int64_t{1} << 32)) return lexer.Error("a dimension of a tensor is too large");
    }
    if (end >= text.size() || text[end] != 'x') {
      return lexer.ErrorAt(end, "expected 'x' behind a tensor's dimension");
    }
    dims.push_back(size);
    if (dims.size() > kMaxRank) return lexer.Error("a tensor has too many dimensions");
    at = end + 1;
  }
  lexer.Seek(at);
  return dims;
}

absl::StatusOr<Type> ParseTensor(Lexer& lexer) {
  const size_t begin = lexer.token().begin;
  ASSIGN_OR_RETURN(const ShapedType shaped, ParseShapedType(lexer));
  const std::optional<Type> type = Type::Tensor(shaped.dims, shaped.element);
  if (type.has_value()) return *type;
  return lexer.ErrorAt(
      begin, absl::StrCat("a tensor has dimensions that are no powers of two, or more than ",
                          int64_t{1} << kMaxLog2Elements, " elements"));
}

absl::StatusOr<Type> ParsePointerBody(Lexer& lexer, bool tensors, int depth) {
  RETURN_IF_ERROR(lexer.Expect("<"));
  Type type;
  if (tensors && lexer.Is("tensor")) {
    ASSIGN_OR_RETURN(type, ParseTensor(lexer));
    if (type.pointer_levels() > 0) return lexer.Error("a block pointer to pointers is unknown");
    type = type.WithKind(Type::Kind::kBlockPointer);
  } else {
    ASSIGN_OR_RETURN(const Type pointee, ParseElement(lexer, depth));
    if (pointee.signedness() != Type::Signedness::kNone) return lexer.Error("a pointee has a sign");
    type = Type::Scalar(pointee.element(), pointee.pointer_levels() + 1);
  }
  if (lexer.Accept(",")) {
    ASSIGN_OR_RETURN(const int64_t space, lexer.Integer());
    if (space != 1) return lexer.Error("a pointer is not in global memory");
  }
  RETURN_IF_ERROR(lexer.Expect(">"));
  return type;
}

absl::StatusOr<Type> ParseDescriptorBody(Lexer& lexer) {
  RETURN_IF_ERROR(lexer.Expect("<"));
  if (!lexer.Is("tensor")) return lexer.Expected("\"tensor\"");
  ASSIGN_OR_RETURN(const Type block, ParseTensor(lexer));
  if (block.pointer_levels() > 0) return lexer.Error("a descriptor of pointers is unknown");
  RETURN_IF_ERROR(lexer.Expect(">"));
  return block.WithKind(Type::Kind::kDescriptor);
}

}  // namespace

absl::StatusOr<ShapedType> ParseShapedType(Lexer& lexer) {
  RETURN_IF_ERROR(lexer.Expect("tensor"));
  if (!lexer.Is("<")) return lexer.Expected("\"<\"");
  lexer.Advance();
  ShapedType shaped;
  ASSIGN_OR_RETURN(shaped.dims, ParseDimensions(lexer));
  ASSIGN_OR_RETURN(shaped.element, ParseElement(lexer, 0));
  // A comma would begin the layout that TTGIR gives a tensor.
  if (lexer.Is(",")) return lexer.Error("a tensor with a layout is no Triton IR but TritonGPU IR");
  RETURN_IF_ERROR(lexer.Expect(">"));
  return shaped;
}

absl::StatusOr<Type> ParseType(Lexer& lexer, Unnamed unnamed) {
  const bool bare = lexer.Is("<");
  if (lexer.token().text == "!tt.ptr" || (bare && unnamed == Unnamed::kPointer)) {
    if (!bare) lexer.Advance();
    return ParsePointerBody(lexer, /*tensors=*/true, 1);
  }
  if (lexer.token().text == "!tt.tensordesc" || (bare && unnamed == Unnamed::kDescriptor)) {
    if (!bare) lexer.Advance();
    return ParseDescriptorBody(lexer);
  }
  ASSIGN_OR_RETURN(const Type type,
                   lexer.Is("tensor") ? ParseTensor(lexer) : ParseScalarWord(lexer));
  // si8 and ui8 are elements of a descriptor's block alone.
  if (type.signedness() == Type::Signedness::kNone) return type;
  return lexer.Error("a type has a sign, which only a descriptor's may have");
}

absl::StatusOr<std::vector<Type>> ParseTypeList(Lexer& lexer) {
  std::vector<Type> types;
  do {
    ASSIGN_OR_RETURN(const Type type, ParseType(lexer));
    types.push_back(type);
    if (types.size() > kMaxListElements) return lexer.Error("a list of types is too long");
  } while (lexer.Accept(","));
  return types;
}

absl::StatusOr<std::vector<Type>> ParseResultTypes(Lexer& lexer) {
  std::vector<Type> types;
  if (!lexer.Accept("(")) {
    ASSIGN_OR_RETURN(const Type type, ParseType(lexer));
    types.push_back(type);
    return types;
  }
  if (lexer.Accept(")")) return types;
  ASSIGN_OR_RETURN(types, ParseTypeList(lexer));
  RETURN_IF_ERROR(lexer.Expect(")"));
  return types;
}

absl::StatusOr<FunctionType> ParseFunctionType(Lexer& lexer) {
  FunctionType type;
  if (!lexer.Is("(")) return lexer.Expected("\"(\"");
  ASSIGN_OR_RETURN(type.inputs, ParseResultTypes(lexer));
  RETURN_IF_ERROR(lexer.Expect("->"));
  ASSIGN_OR_RETURN(type.results, ParseResultTypes(lexer));
  return type;
}

}  // namespace tritonrl::ttir
