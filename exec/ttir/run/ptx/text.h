// Words and numbers of PTX.
#ifndef TRITONRL_EXEC_TTIR_RUN_PTX_TEXT_H_
#define TRITONRL_EXEC_TTIR_RUN_PTX_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tritonrl::ttir::ptx {

// With blanks in the place of comments.
std::string WithoutComments(absl::string_view text);

// Takes the first word and the blanks behind it off.
absl::string_view TakeWord(absl::string_view* text);

// The parts between commas outside of braces.
std::vector<absl::string_view> SplitOperands(absl::string_view text);

struct Number {
  uint64_t bits = 0;  // of an integer, or of a float after 0f or 0d
  bool has_point = false;
  double value = 0;  // if it has a point
};
std::optional<Number> ParseNumber(absl::string_view text);

}  // namespace tritonrl::ttir::ptx

#endif  // TRITONRL_EXEC_TTIR_RUN_PTX_TEXT_H_
