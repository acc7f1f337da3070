// How many floating point operations an operation stands for. A function is one operation, as the
// hardware has units for the common ones, and a fused multiply-add is two.
#include "exec/ttir/run/builder.h"

namespace tritonrl::ttir {

namespace {

// Of each element.
int64_t FlopsOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kFma:
    case Opcode::kClampF:
      return 2;
    case Opcode::kAbsI:
    case Opcode::kMulHiUI:  // of integers, and counted since the first model of a launch's time
      return 1;
    default:
      break;
  }
  switch (InfoOf(opcode).rule) {
    case Rule::kCompareFloat:
    case Rule::kFloatSame:
    case Rule::kFloatTest:
    case Rule::kFloatIntPower:
    case Rule::kExtern:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

Work Builder::WorkOf(const Operation& operation) const {
  Work work;
  switch (operation.opcode) {
    case Opcode::kReduce:
    case Opcode::kScan: {
      const Type& type = TypeOf(operation.operands[0]);
      if (type.is_float()) work.flops = type.elements();
      return work;
    }
    case Opcode::kDot: {
      const Type& a = TypeOf(operation.operands[0]);
      const InputPrecision precision = operation.attributes.precision;
      const bool rounds =
          precision == InputPrecision::kTf32 || precision == InputPrecision::kTf32x3;
      const bool full = a.is(ScalarKind::kF64) || (a.is(ScalarKind::kF32) && !rounds);
      (full ? work.dot_flops : work.tensor_flops) =
          2 * TypeOf(operation.results[0]).elements() * a.dim(a.rank() - 1);
      return work;
    }
    case Opcode::kDotScaled: {
      const Type& a = TypeOf(operation.operands[0]);
      const bool packed = operation.attributes.left_element == ScaledElement::kE2M1 &&
                          operation.attributes.has(kLeftKPack);
      work.tensor_flops = 2 * TypeOf(operation.results[0]).elements() * a.dim(1) * (packed ? 2 : 1);
      return work;
    }
    default:
      break;
  }
  if (operation.results.empty()) return work;
  work.flops = FlopsOf(operation.opcode) * TypeOf(operation.results[0]).elements();
  return work;
}

}  // namespace tritonrl::ttir
