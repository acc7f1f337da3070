// Puts parsed attributes into the typed fields of an operation.
#ifndef TRITONRL_EXEC_TTIR_ATTRIBUTE_FIELDS_H_
#define TRITONRL_EXEC_TTIR_ATTRIBUTE_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "exec/ttir/attribute_parser.h"
#include "exec/ttir/lexer.h"
#include "exec/ttir/operation.h"

namespace tritonrl::ttir {

// Sets the fields that the attributes name. `segments` gets operandSegmentSizes of the generic
// form. An attribute with an unknown name is an error, unless its name has a dialect in front
// ("tt.num_stages"): MLIR lets passes add those, and they do not change a result.
absl::Status ApplyAttributes(const Lexer& lexer, const AttributeList& list, Module& module,
                             Operation& operation, std::vector<int64_t>* segments = nullptr);

// Sets the field `name` from a word of the printed form, for example "predicate" from "slt". False
// if the word is unknown.
bool ApplyWord(absl::string_view name, absl::string_view word, Operation& operation);

// fastmath<...>, overflow<...>, or a rounding mode; false if a word is unknown.
bool ApplyFlagWords(absl::string_view name, absl::string_view words, Operation& operation);

// tt.divisibility, tt.contiguity, tt.constancy; others are ignored. -1 without hints.
int32_t AddHints(const AttributeList& list, Module& module);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_ATTRIBUTE_FIELDS_H_
