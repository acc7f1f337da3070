// Inline assembly (tt.elementwise_inline_asm): straight PTX between registers, without memory,
// branches, other threads, and what differs from run to run (clocks, numbers of processors).
// Approximate functions are computed accurately; all else is exact, as on sm_90.
#ifndef TRITONRL_EXEC_TTIR_RUN_PTX_PROGRAM_H_
#define TRITONRL_EXEC_TTIR_RUN_PTX_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "exec/ttir/run/ptx/instructions.h"

namespace tritonrl::ttir::ptx {

class Program {
 public:
  // `bits`: of the values that the constraints name; the `results` first ones are written, and the
  // others read. InvalidArgument: what is not executable, or wrong.
  static absl::StatusOr<Program> Parse(absl::string_view text, absl::string_view constraints,
                                       absl::Span<const int> bits, int results);

  // The registers before a run: those of the constraints are at kFirstOperand.
  const std::vector<uint64_t>& registers() const { return initial_; }
  static constexpr size_t kFirstOperand = 1;
  static constexpr size_t kMaxRegisters = 1024;
  void Run(uint64_t* registers) const;
  int64_t size() const { return static_cast<int64_t>(instructions_.size()); }

 private:
  friend class Parser;
  std::vector<Instruction> instructions_;
  std::vector<uint64_t> initial_;
};

}  // namespace tritonrl::ttir::ptx

#endif  // TRITONRL_EXEC_TTIR_RUN_PTX_PROGRAM_H_
