// Numbers of operands, and the rules of elementwise operations.
#include "exec/ttir/verify_rules.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tritonrl::ttir {

namespace {

// The numbers of operands that the syntax in the opcodes' table allows.
struct Count {
  size_t least = 0;
  size_t most = 0;
};

Count CountOf(const OpcodeInfo& info) {
  constexpr size_t kAny = ~size_t{0};
  switch (info.opcode) {
    case Opcode::kConstant:
      return {0, 0};
    case Opcode::kIf:
      return {1, 1};
    case Opcode::kFor:
      return {3, kAny};
    case Opcode::kDotScaled:
      return {3, 5};
    case Opcode::kReduce:
    case Opcode::kScan:
    case Opcode::kMapElementwise:
    case Opcode::kCondBranch:
      return {1, kAny};
    case Opcode::kWhile:
    case Opcode::kBranch:
      return {0, kAny};
    default:
      break;
  }
  Count count;
  bool any = false;
  for (const absl::string_view element : absl::StrSplit(info.syntax, ' ')) {
    if (element == "%" || element == "%1") ++count.least, ++count.most;
    if (element == "?,%") ++count.most;
    if (element == "%*" || element == ":%*") any = true;
  }
  if (any) count.most = kAny;
  return count;
}

}  // namespace

std::string FindViolation(const Module& module, const Function& function,
                          const Operation& operation) {
  return RuleChecker(module, function, operation).Check();
}

std::string RuleChecker::CheckCount() const {
  const OpcodeInfo& info = InfoOf(operation_.opcode);
  const Count count = CountOf(info);
  if (operands() < count.least || operands() > count.most) {
    return absl::StrCat("it has ", operands(), " operands");
  }
  if (info.results >= 0 && operation_.results.size() != static_cast<size_t>(info.results)) {
    return absl::StrCat("it has ", operation_.results.size(), " results");
  }
  if (operation_.regions.size() != static_cast<size_t>(info.regions)) {
    return absl::StrCat("it has ", operation_.regions.size(), " regions");
  }
  return "";
}

std::string RuleChecker::Check() const {
  if (std::string violation = CheckCount(); !violation.empty()) return violation;
  if (rule() <= Rule::kPointerToInt) return CheckElementwise();
  if (rule() <= Rule::kCompareAndSwap) return CheckMemory();
  if (rule() <= Rule::kInlineAsm) return CheckShape();
  return CheckControl();
}

std::string RuleChecker::CheckElementwise() const {
  switch (rule()) {
    case Rule::kIntSame:
      return CheckSame(/*is_float=*/false);
    case Rule::kFloatSame:
      return CheckSame(/*is_float=*/true);
    case Rule::kCompareInt:
    case Rule::kCompareFloat:
    case Rule::kFloatTest:
      return CheckCompare();
    case Rule::kFloatIntPower:
      if (!In(0).is_float() || !In(1).is_integer() || !In(0).SameShape(In(1)) || Out() != In(0)) {
        return "it takes a float and an integer of one shape";
      }
      return "";
    case Rule::kSelect:
      return CheckSelect();
    case Rule::kConstant:
      return CheckConstant();
    case Rule::kBitcast:
    case Rule::kPointerBitcast:
      return CheckBitcast();
    default:
      return CheckCast();
  }
}

std::string RuleChecker::CheckSame(bool is_float) const {
  const Type& type = In(0);
  if (is_float ? !type.is_float() : !type.is_integer()) {
    return absl::StrCat("it takes ", is_float ? "floats" : "integers", " and not ",
                        type.ToString());
  }
  for (size_t i = 1; i < operands(); ++i) {
    if (In(i) != type) {
      return absl::StrCat("its operands are ", type.ToString(), " and ", In(i).ToString());
    }
  }
  for (size_t i = 0; i < operation_.results.size(); ++i) {
    if (Out(i) != type) {
      return absl::StrCat("it makes ", Out(i).ToString(), " of ", type.ToString());
    }
  }
  return "";
}

std::string RuleChecker::CheckCompare() const {
  const bool is_float = rule() != Rule::kCompareInt;
  if (is_float ? !In(0).is_float() : !In(0).is_integer()) {
    return absl::StrCat("it compares ", In(0).ToString());
  }
  if (operands() > 1 && In(1) != In(0)) {
    return absl::StrCat("it compares ", In(0).ToString(), " with ", In(1).ToString());
  }
  if (Out() != In(0).WithElement(ScalarKind::kI1)) return "its result is not i1 of that shape";
  return "";
}

std::string RuleChecker::CheckSelect() const {
  const Type& condition = In(0);
  if (!condition.is(ScalarKind::kI1)) return "its condition is not i1";
  if (In(1) != In(2) || Out() != In(1)) return "it selects between different types";
  if (condition.is_tensor() && (!In(1).is_tensor() || !condition.SameShape(In(1)))) {
    return "its condition has another shape";
  }
  return "";
}

std::string RuleChecker::CheckConstant() const {
  const int32_t index = attributes().constant;
  if (index < 0 || static_cast<size_t>(index) >= module_.constants.size()) return "it has no value";
  const Constant& constant = module_.constants[index];
  if (constant.type != Out()) return "its value has another type";
  if (!constant.is_splat() && static_cast<int64_t>(constant.bits.size()) != Out().elements()) {
    return "its value has another number of elements";
  }
  return "";
}

std::string RuleChecker::CheckCast() const {
  const Type& from = In(0);
  const Type& to = Out();
  bool fits = from.is_value() && to.kind() == from.kind() && from.SameShape(to);
  const int grow = to.bit_width() - from.bit_width();
  const bool index = from.element() == ScalarKind::kIndex || to.element() == ScalarKind::kIndex;
  switch (rule()) {
    case Rule::kIndexLike:
      fits = fits && from.is_integer() && to.is_integer() && index;
      break;
    case Rule::kWiden:
      fits = fits && from.is_integer() && to.is_integer() && grow > 0 && !index;
      break;
    case Rule::kNarrow:
      fits = fits && from.is_integer() && to.is_integer() && grow < 0 && !index;
      break;
    case Rule::kWidenFloat:
      fits = fits && from.is_float() && to.is_float() && grow > 0;
      break;
    case Rule::kNarrowFloat:
      fits = fits && from.is_float() && to.is_float() && grow < 0;
      break;
    case Rule::kIntToFloat:
      fits = fits && from.is_integer() && to.is_float() && !index;
      break;
    case Rule::kFloatToInt:
      fits = fits && from.is_float() && to.is_integer() && !index;
      break;
    case Rule::kFloatCast:
      fits = fits && from.is_float() && to.is_float();
      break;
    case Rule::kIntToPointer:
      fits = fits && from.is(ScalarKind::kI64) && to.is_pointer();
      break;
    case Rule::kPointerToInt:
      fits = fits && from.is_pointer() && to.is(ScalarKind::kI64);
      break;
    default:
      fits = false;
  }
  if (fits) return "";
  return absl::StrCat("it cannot make ", to.ToString(), " of ", from.ToString());
}

std::string RuleChecker::CheckBitcast() const {
  const Type& from = In(0);
  const Type& to = Out();
  const bool shapes = from.is_value() && to.kind() == from.kind() && from.SameShape(to);
  const bool pointers = from.is_pointer() && to.is_pointer() && rule() == Rule::kPointerBitcast;
  const bool numbers = !from.is_pointer() && !to.is_pointer() &&
                       from.bit_width() == to.bit_width() && from.element() != ScalarKind::kIndex &&
                       to.element() != ScalarKind::kIndex;
  if (shapes && (pointers || numbers)) return "";
  return absl::StrCat("it cannot make ", to.ToString(), " of ", from.ToString());
}

std::string RuleChecker::CheckExtern() const {
  const bool is_asm = rule() == Rule::kInlineAsm;
  if (operation_.results.empty()) return "it has no result";
  if (is_asm && (attributes().packed_elements < 1 || attributes().packed_elements > 1024)) {
    return "its number of packed elements is out of range";
  }
  for (size_t i = 0; i < operands() + operation_.results.size(); ++i) {
    const Type& type = i < operands() ? In(i) : Out(i - operands());
    if (!type.is_value()) return absl::StrCat("it takes no ", type.ToString());
    if (!type.SameShape(Out())) return "its operands and results have different shapes";
  }
  return "";
}

}  // namespace tritonrl::ttir
