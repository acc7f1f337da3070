// Places of buffers in a program's arena.
#ifndef TRITONRL_EXEC_TTIR_RUN_PLAN_H_
#define TRITONRL_EXEC_TTIR_RUN_PLAN_H_

#include <cstdint>
#include <vector>

#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

struct Buffer {
  int64_t bytes = 0;
  int32_t depth = 0;  // of the container that defines it; 0: once per launch, and so never reused
};

struct Plan {
  std::vector<int32_t> offsets;  // of each buffer
  int64_t arena_bytes = 0;
};

// Buffers of at most kSmallBytes, mostly scalars, have a place of their own. Larger ones share
// places by their lifetimes; a place is a power of two, as tensors are. Places of whole pages have
// a gap behind them: else steps would read and write at the same offset in different pages, which
// the processor takes for the same address.
inline constexpr int64_t kSmallBytes = 64;
inline constexpr int64_t kGapsFrom = 4096;
inline constexpr int64_t kPlaceGap = 17 * 64;
inline constexpr int64_t kMaxArenaBytes = int64_t{1} << 30;  // offsets are 32 bits

// Replaces the numbers of buffers in both codes by offsets. arena_bytes above kMaxArenaBytes means
// that the buffers do not fit; the codes are then as before.
Plan PlanBuffers(const std::vector<Buffer>& buffers, Code* prologue, Code* body);

// Replaces buffer `from` by `to` in all steps.
void RenameBuffer(int32_t from, int32_t to, Code* code);

// Whether a step of the code, or of a code in it, reads or writes the buffer.
bool Touches(const Code& code, int32_t buffer);
bool Touches(const Step& step, int32_t buffer);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_PLAN_H_
