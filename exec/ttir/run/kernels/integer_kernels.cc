// Integer arithmetic, comparisons and selections.
#include <cstdint>

#include "exec/ttir/run/kernels/integer_functions.h"
#include "exec/ttir/run/kernels/loops.h"
#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

struct Equal {
  template <typename T>
  static uint8_t Of(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <typename T>
  static uint8_t Of(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <typename T>
  static uint8_t Of(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <typename T>
  static uint8_t Of(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <typename T>
  static uint8_t Of(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <typename T>
  static uint8_t Of(T a, T b) {
    return a >= b;
  }
};

struct Choose {
  template <typename T>
  static T Of(uint8_t condition, T a, T b) {
    return condition != 0 ? a : b;
  }
};

template <typename F>
Unary UnaryOf(Lane lane) {
  switch (lane) {
    case Lane::kI8:
      return UnaryLoop<int8_t, int8_t, F>;
    case Lane::kI16:
      return UnaryLoop<int16_t, int16_t, F>;
    case Lane::kI32:
      return UnaryLoop<int32_t, int32_t, F>;
    case Lane::kI64:
      return UnaryLoop<int64_t, int64_t, F>;
    default:
      return nullptr;
  }
}

template <typename F>
Binary Same(Lane lane, int form) {
  switch (lane) {
    case Lane::kI8:
      return BinaryOf<int8_t, int8_t, F>(form);
    case Lane::kI16:
      return BinaryOf<int16_t, int16_t, F>(form);
    case Lane::kI32:
      return BinaryOf<int32_t, int32_t, F>(form);
    case Lane::kI64:
      return BinaryOf<int64_t, int64_t, F>(form);
    default:
      return nullptr;
  }
}

template <typename F>
Binary Compare(Lane lane, int form, bool is_unsigned) {
  switch (lane) {
    case Lane::kBool:
      return BinaryOf<uint8_t, uint8_t, F>(form);
    case Lane::kI8:
      return is_unsigned ? BinaryOf<uint8_t, uint8_t, F>(form) : BinaryOf<uint8_t, int8_t, F>(form);
    case Lane::kI16:
      return is_unsigned ? BinaryOf<uint8_t, uint16_t, F>(form)
                         : BinaryOf<uint8_t, int16_t, F>(form);
    case Lane::kI32:
      return is_unsigned ? BinaryOf<uint8_t, uint32_t, F>(form)
                         : BinaryOf<uint8_t, int32_t, F>(form);
    case Lane::kI64:
      return is_unsigned ? BinaryOf<uint8_t, uint64_t, F>(form)
                         : BinaryOf<uint8_t, int64_t, F>(form);
    default:
      return nullptr;
  }
}

// One bit is 0 or -1 where signs count.
Binary FindBooleanBinary(Opcode opcode, int form) {
  switch (opcode) {
    case Opcode::kAddI:
    case Opcode::kSubI:
    case Opcode::kXorI:
      return BinaryOf<uint8_t, uint8_t, Xor>(form);
    case Opcode::kMulI:
    case Opcode::kAndI:
    case Opcode::kMaxSI:
    case Opcode::kMinUI:
      return BinaryOf<uint8_t, uint8_t, And>(form);
    case Opcode::kOrI:
    case Opcode::kMinSI:
    case Opcode::kMaxUI:
      return BinaryOf<uint8_t, uint8_t, Or>(form);
    default:
      return nullptr;
  }
}

}  // namespace

Unary FindIntegerUnary(Opcode opcode, Lane lane) {
  switch (opcode) {
    case Opcode::kAbsI:
      return UnaryOf<Absolute>(lane);
    case Opcode::kCountLeadingZeros:
      return UnaryOf<LeadingZeros>(lane);
    case Opcode::kCountTrailingZeros:
      return UnaryOf<TrailingZeros>(lane);
    case Opcode::kPopulationCount:
      return UnaryOf<Population>(lane);
    default:
      return nullptr;
  }
}

// Of the extended products this is the second result, the high half.
Binary FindIntegerBinary(Opcode opcode, Lane lane, int form) {
  if (lane == Lane::kBool) return FindBooleanBinary(opcode, form);
  switch (opcode) {
#define TRITONRL_TTIR_CASE(name, functor) \
  case Opcode::k##name:                   \
    return Same<functor>(lane, form);
    TRITONRL_TTIR_CASE(AddI, Add)
    TRITONRL_TTIR_CASE(SubI, Subtract)
    TRITONRL_TTIR_CASE(MulI, Multiply)
    TRITONRL_TTIR_CASE(DivSI, Divide)
    TRITONRL_TTIR_CASE(DivUI, DivideUnsigned)
    TRITONRL_TTIR_CASE(RemSI, Remainder)
    TRITONRL_TTIR_CASE(RemUI, RemainderUnsigned)
    TRITONRL_TTIR_CASE(CeilDivSI, CeilDivide)
    TRITONRL_TTIR_CASE(CeilDivUI, CeilDivideUnsigned)
    TRITONRL_TTIR_CASE(FloorDivSI, FloorDivide)
    TRITONRL_TTIR_CASE(AndI, And)
    TRITONRL_TTIR_CASE(OrI, Or)
    TRITONRL_TTIR_CASE(XorI, Xor)
    TRITONRL_TTIR_CASE(ShlI, ShiftLeft)
    TRITONRL_TTIR_CASE(ShrSI, ShiftRight)
    TRITONRL_TTIR_CASE(ShrUI, ShiftRightUnsigned)
    TRITONRL_TTIR_CASE(MaxSI, Maximum)
    TRITONRL_TTIR_CASE(MaxUI, MaximumUnsigned)
    TRITONRL_TTIR_CASE(MinSI, Minimum)
    TRITONRL_TTIR_CASE(MinUI, MinimumUnsigned)
    TRITONRL_TTIR_CASE(MulSIExtended, HighProduct)
    TRITONRL_TTIR_CASE(MulUIExtended, HighProductUnsigned)
    TRITONRL_TTIR_CASE(MulHiUI, HighProductUnsigned)
    TRITONRL_TTIR_CASE(IPowI, Power)
#undef TRITONRL_TTIR_CASE
    default:
      return nullptr;
  }
}

Binary FindIntegerCompare(IntPredicate predicate, Lane lane, int form) {
  // The signed order of one bit is the unsigned one turned around.
  const bool turned = lane == Lane::kBool;
  switch (predicate) {
    case IntPredicate::kEq:
      return Compare<Equal>(lane, form, true);
    case IntPredicate::kNe:
      return Compare<NotEqual>(lane, form, true);
    case IntPredicate::kSlt:
      return turned ? Compare<Greater>(lane, form, true) : Compare<Less>(lane, form, false);
    case IntPredicate::kSle:
      return turned ? Compare<GreaterEqual>(lane, form, true)
                    : Compare<LessEqual>(lane, form, false);
    case IntPredicate::kSgt:
      return turned ? Compare<Less>(lane, form, true) : Compare<Greater>(lane, form, false);
    case IntPredicate::kSge:
      return turned ? Compare<LessEqual>(lane, form, true)
                    : Compare<GreaterEqual>(lane, form, false);
    case IntPredicate::kUlt:
      return Compare<Less>(lane, form, true);
    case IntPredicate::kUle:
      return Compare<LessEqual>(lane, form, true);
    case IntPredicate::kUgt:
      return Compare<Greater>(lane, form, true);
    case IntPredicate::kUge:
      return Compare<GreaterEqual>(lane, form, true);
  }
  return nullptr;
}

Ternary FindSelect(Lane lane, int form) {
  switch (lane) {
    case Lane::kBool:
    case Lane::kI8:
      return TernaryOf<uint8_t, uint8_t, Choose>(form);
    case Lane::kI16:
      return TernaryOf<uint8_t, uint16_t, Choose>(form);
    case Lane::kI32:
    case Lane::kF32:
      return TernaryOf<uint8_t, uint32_t, Choose>(form);
    default:
      return TernaryOf<uint8_t, uint64_t, Choose>(form);
  }
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
