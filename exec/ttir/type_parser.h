// Parses types of Triton IR.
#ifndef TRITONRL_EXEC_TTIR_TYPE_PARSER_H_
#define TRITONRL_EXEC_TTIR_TYPE_PARSER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "exec/ttir/lexer.h"
#include "exec/ttir/types.h"

namespace tritonrl::ttir {

// The type of `<...>` without a name: MLIR omits the name where only one type is possible.
enum class Unnamed : uint8_t { kNothing, kPointer, kDescriptor };

// One type. InvalidArgument with line and column for all other text, as for the functions below.
absl::StatusOr<Type> ParseType(Lexer& lexer, Unnamed unnamed = Unnamed::kNothing);

// `T, T, ...`, at least one.
absl::StatusOr<std::vector<Type>> ParseTypeList(Lexer& lexer);

struct FunctionType {
  std::vector<Type> inputs;
  std::vector<Type> results;
};

// `(T, ...) -> T`, `(T, ...) -> (T, ...)`.
absl::StatusOr<FunctionType> ParseFunctionType(Lexer& lexer);

// `T`, `()`, or `(T, ...)`.
absl::StatusOr<std::vector<Type>> ParseResultTypes(Lexer& lexer);

// The dimensions of `tensor<3xi32>` in an attribute, which need not be powers of two, and the
// element. The current token is "tensor".
struct ShapedType {
  std::vector<int64_t> dims;
  Type element;
};
absl::StatusOr<ShapedType> ParseShapedType(Lexer& lexer);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_TYPE_PARSER_H_
