// Functions of CUDA's device library that are operations under another name. The fast ones are
// computed as the exact ones.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "exec/ttir/run/builder.h"

namespace tritonrl::ttir {

namespace {

struct NamedOperation {
  absl::string_view name;  // without "__nv_", "fast_" and the f of floats
  Opcode opcode;
  size_t operands;
};

constexpr NamedOperation kFloatFunctions[] = {
    {"acos", Opcode::kAcos, 1},         {"acosh", Opcode::kAcosh, 1},
    {"asin", Opcode::kAsin, 1},         {"asinh", Opcode::kAsinh, 1},
    {"atan", Opcode::kAtan, 1},         {"atanh", Opcode::kAtanh, 1},
    {"cbrt", Opcode::kCbrt, 1},         {"ceil", Opcode::kCeil, 1},
    {"cos", Opcode::kCos, 1},           {"cosh", Opcode::kCosh, 1},
    {"erf", Opcode::kErf, 1},           {"erfc", Opcode::kErfc, 1},
    {"exp", Opcode::kExp, 1},           {"exp2", Opcode::kExp2, 1},
    {"expm1", Opcode::kExpM1, 1},       {"fabs", Opcode::kAbsF, 1},
    {"floor", Opcode::kFloor, 1},       {"log", Opcode::kLog, 1},
    {"log10", Opcode::kLog10, 1},       {"log1p", Opcode::kLog1P, 1},
    {"log2", Opcode::kLog2, 1},         {"nearbyint", Opcode::kRoundEven, 1},
    {"rint", Opcode::kRoundEven, 1},    {"round", Opcode::kRound, 1},
    {"rsqrt", Opcode::kRsqrt, 1},       {"sin", Opcode::kSin, 1},
    {"sinh", Opcode::kSinh, 1},         {"sqrt", Opcode::kSqrt, 1},
    {"tan", Opcode::kTan, 1},           {"tanh", Opcode::kTanh, 1},
    {"trunc", Opcode::kTrunc, 1},       {"fsqrt_rn", Opcode::kSqrt, 1},
    {"dsqrt_rn", Opcode::kSqrt, 1},     {"atan2", Opcode::kAtan2, 2},
    {"copysign", Opcode::kCopySign, 2}, {"pow", Opcode::kPowF, 2},
    {"fmod", Opcode::kRemF, 2},         {"fmax", Opcode::kMaxNumF, 2},
    {"fmin", Opcode::kMinNumF, 2},      {"fdivide", Opcode::kDivF, 2},
    {"fdiv_rn", Opcode::kDivF, 2},      {"ddiv_rn", Opcode::kDivF, 2},
    {"fadd_rn", Opcode::kAddF, 2},      {"dadd_rn", Opcode::kAddF, 2},
    {"fmul_rn", Opcode::kMulF, 2},      {"dmul_rn", Opcode::kMulF, 2},
    {"fsub_rn", Opcode::kSubF, 2},      {"dsub_rn", Opcode::kSubF, 2},
    {"fma", Opcode::kFma, 3},           {"fmaf_rn", Opcode::kFma, 3},
    {"fma_rn", Opcode::kFma, 3},
};

constexpr NamedOperation kIntegerFunctions[] = {
    {"abs", Opcode::kAbsI, 1},
    {"llabs", Opcode::kAbsI, 1},
    {"clz", Opcode::kCountLeadingZeros, 1},
    {"popc", Opcode::kPopulationCount, 1},
    {"umulhi", Opcode::kMulHiUI, 2},
    {"umul64hi", Opcode::kMulHiUI, 2},
    {"max", Opcode::kMaxSI, 2},
    {"min", Opcode::kMinSI, 2},
    {"umax", Opcode::kMaxUI, 2},
    {"umin", Opcode::kMinUI, 2},
};

struct OtherFunction {
  absl::string_view name;
  LibraryFunction function;
  size_t operands;
};

constexpr OtherFunction kOtherFunctions[] = {
    {"tgamma", LibraryFunction::kGamma, 1},
    {"lgamma", LibraryFunction::kLogGamma, 1},
    {"exp10", LibraryFunction::kExp10, 1},
    {"sinpi", LibraryFunction::kSinPi, 1},
    {"cospi", LibraryFunction::kCosPi, 1},
    {"rcbrt", LibraryFunction::kReciprocalCubeRoot, 1},
    {"normcdf", LibraryFunction::kNormalDistribution, 1},
    {"hypot", LibraryFunction::kHypotenuse, 2},
    {"fdim", LibraryFunction::kPositiveDifference, 2},
    {"nextafter", LibraryFunction::kNextAfter, 2},
    {"remainder", LibraryFunction::kNearestRemainder, 2},
};

template <typename Function>
const Function* Find(absl::Span<const Function> functions, absl::string_view name,
                     size_t operands) {
  for (const Function& function : functions) {
    if (function.name == name && function.operands == operands) return &function;
  }
  return nullptr;
}

// "float" in "float2int_rz".
struct NumberWord {
  absl::string_view word;
  ScalarKind kind;
  bool is_signed;
};

constexpr NumberWord kNumberWords[] = {
    {"float", ScalarKind::kF32, true}, {"double", ScalarKind::kF64, true},
    {"int", ScalarKind::kI32, true},   {"uint", ScalarKind::kI32, false},
    {"ll", ScalarKind::kI64, true},    {"ull", ScalarKind::kI64, false},
};

const NumberWord* FindNumberWord(absl::string_view word, const Type& type) {
  for (const NumberWord& number : kNumberWords) {
    if (number.word == word && type.is(number.kind)) return &number;
  }
  return nullptr;
}

// What rounds a float to an integral one as the conversion's suffix says; kPoison for another.
Opcode RoundingOpcode(absl::string_view suffix) {
  if (suffix == "rn") return Opcode::kRoundEven;
  if (suffix == "rz") return Opcode::kTrunc;
  if (suffix == "ru") return Opcode::kCeil;
  return suffix == "rd" ? Opcode::kFloor : Opcode::kPoison;
}

struct FloatTest {
  absl::string_view float_name;
  absl::string_view double_name;
  Opcode opcode;  // kPoison: the sign
};

constexpr FloatTest kFloatTests[] = {
    {"isnanf", "isnand", Opcode::kIsNan},
    {"isinff", "isinfd", Opcode::kIsInf},
    {"finitef", "isfinited", Opcode::kIsFinite},
    {"signbitf", "signbitd", Opcode::kPoison},
};

}  // namespace

std::optional<Bound> Builder::ExternConversion(const Operation& operation, absl::string_view name) {
  const Type& source = TypeOf(operation.operands[0]);
  const Type& target = TypeOf(operation.results[0]);
  const Lane from = LaneOf(source);
  const Lane to = LaneOf(target);
  const Bound operand = At(operation.operands[0]);
  for (const FloatTest& test : kFloatTests) {
    const bool is_float = source.is(ScalarKind::kF32);
    if (name != (is_float ? test.float_name : test.double_name) || !source.is_float()) continue;
    if (!is_float && !source.is(ScalarKind::kF64)) return std::nullopt;
    if (!target.is(ScalarKind::kI32)) return std::nullopt;
    const Unary kernel = test.opcode == Opcode::kPoison
                             ? kernels_.library_unary(LibraryFunction::kSignBit, from)
                             : kernels_.test(test.opcode, from);
    const Type boolean = source.WithElement(ScalarKind::kI1);
    const Bound result = EmitUnary(kernel, nullptr, operand, boolean);
    return EmitUnary(kernels_.widen(Lane::kBool, to, false), nullptr, result, target);
  }
  const bool wide = source.is(ScalarKind::kI64);
  if (target.is(ScalarKind::kI32) && (wide || source.is(ScalarKind::kI32))) {
    Unary kernel = nullptr;
    if (name == (wide ? "ffsll" : "ffs")) {
      kernel = kernels_.library_unary(LibraryFunction::kFindFirstSet, from);
    } else if (name == (wide ? "clzll" : "clz")) {
      kernel = kernels_.unary(Opcode::kCountLeadingZeros, from);
    } else if (name == (wide ? "popcll" : "popc")) {
      kernel = kernels_.unary(Opcode::kPopulationCount, from);
    }
    if (kernel == nullptr) return std::nullopt;
    const Bound result = EmitUnary(kernel, nullptr, operand, source);
    return wide ? EmitUnary(kernels_.widen(from, to, true), nullptr, result, target) : result;
  }
  const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(name, '2');
  const std::pair<absl::string_view, absl::string_view> last = absl::StrSplit(ends.second, '_');
  const NumberWord* const source_word = FindNumberWord(ends.first, source);
  const NumberWord* const target_word = FindNumberWord(last.first, target);
  const Opcode rounding = RoundingOpcode(last.second);
  if (source_word == nullptr || target_word == nullptr) return std::nullopt;
  if (source.is_integer() && target.is_float() && last.second == "rn") {
    return EmitUnary(kernels_.to_float(from, to, source_word->is_signed), nullptr, operand, target);
  }
  if (!source.is_float() || !target.is_integer() || rounding == Opcode::kPoison) {
    return std::nullopt;
  }
  const Bound whole = EmitUnary(kernels_.unary(rounding, from), nullptr, operand, source);
  return EmitUnary(kernels_.to_integer(from, to, target_word->is_signed), nullptr, whole, target);
}

absl::Status Builder::BuildExtern(const Operation& operation) {
  const std::string& symbol = operation.attributes.symbol;
  const auto missing = [&] {
    return NotExecutable(operation,
                         absl::StrCat("function ", absl::CHexEscape(symbol.substr(0, 80))));
  };
  if (operation.opcode != Opcode::kExternElementwise || operation.operands.empty()) {
    return missing();
  }
  const Type& type = TypeOf(operation.results[0]);
  const size_t operands = operation.operands.size();
  absl::string_view name = symbol;
  if (!absl::ConsumePrefix(&name, "__nv_")) return missing();
  if (operands == 1) {
    const std::optional<Bound> converted = ExternConversion(operation, name);
    if (converted.has_value()) {
      Bind(operation.results[0], *converted);
      return absl::OkStatus();
    }
  }
  for (const ValueId value : operation.operands) {
    if (TypeOf(value) != type) return missing();
  }
  absl::ConsumePrefix(&name, "fast_");
  const absl::Span<const NamedOperation> known =
      type.is_float() ? absl::Span<const NamedOperation>(kFloatFunctions)
                      : absl::Span<const NamedOperation>(kIntegerFunctions);
  const bool plain = type.is(ScalarKind::kF32) || type.is(ScalarKind::kF64) ||
                     type.is(ScalarKind::kI32) || type.is(ScalarKind::kI64);
  if (!plain) return missing();
  const absl::string_view names[] = {
      name, type.is(ScalarKind::kF32) ? absl::StripSuffix(name, "f") : name};
  for (const absl::string_view tried : names) {
    const NamedOperation* const function = Find(known, tried, operands);
    if (function != nullptr) return BuildArithmetic(operation, function->opcode);
    const OtherFunction* const other =
        Find(absl::Span<const OtherFunction>(kOtherFunctions), tried, operands);
    if (other == nullptr || !type.is_float()) continue;
    if (operands == 1) {
      return BuildUnary(operation, kernels_.library_unary(other->function, LaneOf(type)), nullptr);
    }
    return BuildLibraryBinary(operation, other->function);
  }
  return missing();
}

}  // namespace tritonrl::ttir
