// Steps that move elements and compute nothing.
#ifndef TRITONRL_EXEC_TTIR_RUN_COPY_STEPS_H_
#define TRITONRL_EXEC_TTIR_RUN_COPY_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

// in[0] holds one element of `bytes` bytes, out[0] gets it `count` times.
Step::Run FillStep(int bytes);

// Copies `count` elements of `number` bytes.
Step::Run CopyStep();

// Copies elements of `bytes` bytes of a tensor into another order: out[i0][i1]... =
// in[offset + i0 * strides[0] + i1 * strides[1] + ...].
struct StridedCopy : StepData {
  int bytes = 0;
  CopyRows rows = nullptr;
  int64_t offset = 0;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // in elements

  void Run(void* out, const void* in) const;
};
// Of these dimensions, those that one loop can walk are joined.
std::shared_ptr<const StridedCopy> MakeStridedCopy(int bytes, int64_t offset,
                                                   const std::vector<int64_t>& dims,
                                                   const std::vector<int64_t>& strides);
bool RunStridedCopy(const Step& step, Program& program);

// out[0][i * operands + k] = in[k][i]; `count` elements of `number` bytes in each operand.
bool RunInterleave(const Step& step, Program& program);
// One operand behind the other.
bool RunConcatenate(const Step& step, Program& program);

// Elements between two places with strides of their own, in elements; 0 repeats one.
struct Strided {
  std::byte* at = nullptr;
  int64_t stride = 1;
};
void MoveElements(int bytes, Strided out, Strided in, int64_t count);

// A pointer between memory and a buffer: its argument is not known behind it.
void StripArgument(void* out, const void* a, int64_t count);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_COPY_STEPS_H_
