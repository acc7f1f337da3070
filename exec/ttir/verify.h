// Verifies the typed form. An executor relies on these properties without further checks.
#ifndef TRITONRL_EXEC_TTIR_VERIFY_H_
#define TRITONRL_EXEC_TTIR_VERIFY_H_

#include "absl/status/status.h"
#include "exec/ttir/operation.h"

namespace tritonrl::ttir {

// InvalidArgument "tt.dot, line 12 of kernel.py: <what is wrong> (TTIR text line 30)" unless
// - each operand's definition dominates it, in its block or a region around it;
// - blocks end with a terminator, regions have the blocks and arguments that their operation needs;
// - types follow the rule of each operation (opcodes.h);
// - calls name a function with these types, and no function calls itself, directly or not.
absl::Status Verify(const Module& module);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_VERIFY_H_
