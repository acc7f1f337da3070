// Parses the numbers of arith.constant into the bits of their type.
#ifndef TRITONRL_EXEC_TTIR_CONSTANT_PARSER_H_
#define TRITONRL_EXEC_TTIR_CONSTANT_PARSER_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/ttir/attribute_parser.h"
#include "exec/ttir/lexer.h"
#include "exec/ttir/types.h"

namespace tritonrl::ttir {

// The bits of a value in a format: rounded to nearest even, an overflow becomes the infinity or,
// if the format has none, NaN.
uint64_t EncodeFloat(double value, ScalarKind kind);

// The bits of the printed number (`12`, `-1`, `true`, `1.0e+00`, `0x7FC00000`) in the type, or
// nullopt if it does not fit. Hexadecimal floats are the bits themselves.
std::optional<uint64_t> EncodeNumber(absl::string_view text, ScalarKind kind);

// `12 : i32`, `true`, `1.0 : f32`, `dense<...> : tensor<...>`, as the value of arith.constant.
absl::StatusOr<Attribute> ParseConstant(Lexer& lexer);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_CONSTANT_PARSER_H_
