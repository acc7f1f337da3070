// Reads the text of a Triton IR module, as Triton 3.6 prints it, into the typed form.
#ifndef TRITONRL_EXEC_TTIR_PARSER_H_
#define TRITONRL_EXEC_TTIR_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/ttir/operation.h"

namespace tritonrl::ttir {

// Parses and verifies. The text is untrusted: limits.h bounds it, and any text gives a module or an
// InvalidArgument of one sentence: with line and column of the text where it is not Triton IR, with
// operation and source line where an operation is unknown ("not executable: tt.xyz, line 12 of
// kernel.py") or breaks its rule.
absl::StatusOr<Module> ParseTtir(absl::string_view text);

// The first half alone, for tests: the module may break the rules that verify.h checks.
absl::StatusOr<Module> ParseWithoutVerification(absl::string_view text);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_PARSER_H_
