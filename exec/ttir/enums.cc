#include "exec/ttir/enums.h"

namespace tritonrl::ttir {

namespace {

struct Word {
  EnumKind kind;
  const char* word;
  int value;
};

constexpr EnumKind kI = EnumKind::kIntPredicate;
constexpr EnumKind kF = EnumKind::kFloatPredicate;
constexpr EnumKind kA = EnumKind::kAtomicKind;
constexpr EnumKind kR = EnumKind::kReduceKind;
constexpr EnumKind kC = EnumKind::kCacheModifier;
constexpr EnumKind kS = EnumKind::kScaledElement;

constexpr Word kWords[] = {
    {kI, "eq", 0},
    {kI, "ne", 1},
    {kI, "slt", 2},
    {kI, "sle", 3},
    {kI, "sgt", 4},
    {kI, "sge", 5},
    {kI, "ult", 6},
    {kI, "ule", 7},
    {kI, "ugt", 8},
    {kI, "uge", 9},
    {kF, "false", 0},
    {kF, "oeq", 1},
    {kF, "ogt", 2},
    {kF, "oge", 3},
    {kF, "olt", 4},
    {kF, "ole", 5},
    {kF, "one", 6},
    {kF, "ord", 7},
    {kF, "ueq", 8},
    {kF, "ugt", 9},
    {kF, "uge", 10},
    {kF, "ult", 11},
    {kF, "ule", 12},
    {kF, "une", 13},
    {kF, "uno", 14},
    {kF, "true", 15},
    {kC, "none", 1},
    {kC, "ca", 2},
    {kC, "cg", 3},
    {kC, "wb", 4},
    {kC, "cs", 5},
    {kC, "wt", 6},
    {kC, "cv", 7},
    {EnumKind::kEvictionPolicy, "evict_normal", 1},
    {EnumKind::kEvictionPolicy, "evict_first", 2},
    {EnumKind::kEvictionPolicy, "evict_last", 3},
    {EnumKind::kPadding, "zero", 1},
    {EnumKind::kPadding, "nan", 2},
    {kA, "and", 1},
    {kA, "or", 2},
    {kA, "xor", 3},
    {kA, "add", 4},
    {kA, "fadd", 5},
    {kA, "max", 6},
    {kA, "min", 7},
    {kA, "umax", 8},
    {kA, "umin", 9},
    {kA, "exch", 10},
    {kR, "add", 1},
    {kR, "min", 2},
    {kR, "max", 3},
    {kR, "inc", 4},
    {kR, "dec", 5},
    {kR, "and", 6},
    {kR, "or", 7},
    {kR, "xor", 8},
    {EnumKind::kMemorySemantic, "relaxed", 1},
    {EnumKind::kMemorySemantic, "acquire", 2},
    {EnumKind::kMemorySemantic, "release", 3},
    {EnumKind::kMemorySemantic, "acq_rel", 4},
    {EnumKind::kMemoryScope, "gpu", 1},
    {EnumKind::kMemoryScope, "cta", 2},
    {EnumKind::kMemoryScope, "sys", 3},
    {EnumKind::kRounding, "rtz", 0},
    {EnumKind::kRounding, "rtne", 1},
    {EnumKind::kPropagateNan, "none", 0},
    {EnumKind::kPropagateNan, "all", 0xFFFF},
    {EnumKind::kInputPrecision, "tf32", 0},
    {EnumKind::kInputPrecision, "tf32x3", 1},
    {EnumKind::kInputPrecision, "ieee", 2},
    {EnumKind::kInputPrecision, "bf16x3", 3},
    {EnumKind::kInputPrecision, "bf16x6", 4},
    {kS, "e4m3", 0},
    {kS, "e5m2", 1},
    {kS, "e2m3", 2},
    {kS, "e3m2", 3},
    {kS, "e2m1", 4},
    {kS, "bf16", 5},
    {kS, "fp16", 6},
    {EnumKind::kProgramAxis, "x", 0},
    {EnumKind::kProgramAxis, "y", 1},
    {EnumKind::kProgramAxis, "z", 2},
};

}  // namespace

std::optional<int> FindEnumWord(EnumKind kind, absl::string_view word) {
  for (const Word& entry : kWords) {
    if (entry.kind == kind && word == entry.word) return entry.value;
  }
  return std::nullopt;
}

bool IsEnumValue(EnumKind kind, int64_t value) {
  for (const Word& entry : kWords) {
    if (entry.kind == kind && entry.value == value) return true;
  }
  return false;
}

}  // namespace tritonrl::ttir
