// Enumerations in the attributes of Triton IR, with the words and numbers that MLIR prints.
#ifndef TRITONRL_EXEC_TTIR_ENUMS_H_
#define TRITONRL_EXEC_TTIR_ENUMS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tritonrl::ttir {

// The values are those of MLIR and Triton, as the generic form prints numbers.
enum class IntPredicate : uint8_t { kEq, kNe, kSlt, kSle, kSgt, kSge, kUlt, kUle, kUgt, kUge };
enum class FloatPredicate : uint8_t {
  kFalse,
  kOeq,
  kOgt,
  kOge,
  kOlt,
  kOle,
  kOne,
  kOrd,
  kUeq,
  kUgt,
  kUge,
  kUlt,
  kUle,
  kUne,
  kUno,
  kTrue,
};
enum class CacheModifier : uint8_t { kNone = 1, kCa, kCg, kWb, kCs, kWt, kCv };
enum class EvictionPolicy : uint8_t { kNormal = 1, kFirst, kLast };
enum class Padding : uint8_t { kNone = 0, kZero = 1, kNan = 2 };
enum class AtomicKind : uint8_t {
  kAnd = 1,
  kOr,
  kXor,
  kAdd,
  kFadd,
  kMax,
  kMin,
  kUmax,
  kUmin,
  kExchange,
};
enum class ReduceKind : uint8_t { kAdd = 1, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };
enum class MemorySemantic : uint8_t { kRelaxed = 1, kAcquire, kRelease, kAcquireRelease };
enum class MemoryScope : uint8_t { kGpu = 1, kCta, kSystem };
enum class Rounding : uint8_t { kTowardZero = 0, kNearestEven = 1, kUnset = 2 };
enum class PropagateNan : uint16_t { kNone = 0, kAll = 0xFFFF };
enum class InputPrecision : uint8_t { kTf32, kTf32x3, kIeee, kBf16x3, kBf16x6 };
enum class ScaledElement : uint8_t { kE4M3, kE5M2, kE2M3, kE3M2, kE2M1, kBF16, kFP16 };
enum class ProgramAxis : uint8_t { kX, kY, kZ };

// The kinds of words, for the parser's table.
enum class EnumKind : uint8_t {
  kIntPredicate,
  kFloatPredicate,
  kCacheModifier,
  kEvictionPolicy,
  kPadding,
  kAtomicKind,
  kReduceKind,
  kMemorySemantic,
  kMemoryScope,
  kRounding,
  kPropagateNan,
  kInputPrecision,
  kScaledElement,
  kProgramAxis,
};

// The number of a word of this kind, nullopt if unknown; whether a number belongs to the kind.
std::optional<int> FindEnumWord(EnumKind kind, absl::string_view word);
bool IsEnumValue(EnumKind kind, int64_t value);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_ENUMS_H_
