// The table of one instruction set.
#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {

namespace {

bool IsFloatLane(Lane lane) { return lane == Lane::kF32 || lane == Lane::kF64; }

Unary FindUnary(Opcode opcode, Lane lane) {
  if (!IsFloatLane(lane)) return FindIntegerUnary(opcode, lane);
  const Unary simple = FindFloatUnary(opcode, lane);
  return simple != nullptr ? simple : FindMath(opcode, lane);
}

Binary FindBinary(Opcode opcode, Lane lane, int form) {
  if (!IsFloatLane(lane)) return FindIntegerBinary(opcode, lane, form);
  const Binary simple = FindFloatBinary(opcode, lane, form);
  return simple != nullptr ? simple : FindBinaryMath(opcode, lane, form);
}

constexpr KernelSet kSet = {
    .unary = FindUnary,
    .binary = FindBinary,
    .ternary = FindFloatTernary,
    .clamp_propagating_nan = {ClampFloats, ClampDoubles},
    .compare_int = FindIntegerCompare,
    .compare_float = FindFloatCompare,
    .select = FindSelect,
    .test = FindFloatTest,
    .power = FindFloatPower,
    .library_unary = FindLibraryUnary,
    .library_binary = FindLibraryBinary,
    .widen = FindWiden,
    .to_float = FindToFloat,
    .to_odd_float = FindToOddFloat,
    .narrow_toward_zero = NarrowTowardZero,
    .to_integer = FindToInteger,
    .round = FindRound,
    .decode = FindDecode,
    .encode = FindEncode,
    .add_pointer = AddPointer,
    .is_sequence = IsSequence,
    .pointer_range = RangeOf,
    .gather = Gather,
    .scatter = Scatter,
    .copy_rows = FindCopyRows,
    .dot = FindDot,
    .truncate_tf32 = TruncateTf32,
    .dot_fp8 = DotFp8,
};

}  // namespace

const KernelSet& Kernels() { return kSet; }

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
