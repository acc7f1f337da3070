// Block pointers and tensor descriptors. Both are records of int64 in one buffer:
// base pointer | shape | strides | offsets (0 in a descriptor) | padding.
#ifndef TRITONRL_EXEC_TTIR_RUN_BLOCK_STEPS_H_
#define TRITONRL_EXEC_TTIR_RUN_BLOCK_STEPS_H_

#include <cstdint>
#include <vector>

#include "exec/ttir/enums.h"
#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

// Bytes of the record of a tensor with `rank` axes.
inline constexpr int64_t BlockBytes(int rank) { return (3 * int64_t{rank} + 2) * 8; }

struct MakeBlockData : StepData {
  int rank = 0;
  Padding padding = Padding::kNone;
  std::vector<bool> is_wide;  // of each operand: i64, else i32
  bool has_padding = false;   // the last operand says whether to pad with NaN
  // Of a descriptor, which hardware has to load and store through.
  bool is_descriptor = false;
  int element_bytes = 0;
  int64_t inner_block = 0;  // elements of the block's last axis
};
// in: base, shape, strides and, for a block pointer, offsets, or padding; out: the record.
bool RunMakeBlock(const Step& step, Program& program);

// in: record, one i32 for each axis; out: the record with its offsets moved. `number`: the rank.
bool RunAdvance(const Step& step, Program& program);

struct BlockAddressData : StepData {
  std::vector<int64_t> dims;  // of the block
  std::vector<bool> checked;  // of each axis: whether elements outside of the shape are masked
  int bytes = 0;              // of an element in memory
  bool has_rows = false;      // the first index is a tensor with a row for each row of the block
  Lane lane = Lane::kF32;     // of the padding
  Padding padding = Padding::kNone;  // of a block pointer, whose record has none
};
// in: record, an index (i32) for each axis or none; out: pointers, mask, the padding's element.
// Padding is 0 or NaN.
bool RunBlockAddresses(const Step& step, Program& program);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_BLOCK_STEPS_H_
