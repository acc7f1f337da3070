// The rules of calls, loops, branches, printing and assertions.
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "exec/ttir/verify_rules.h"

namespace tritonrl::ttir {

std::string RuleChecker::CheckControl() const {
  switch (rule()) {
    case Rule::kAssert:
    case Rule::kAssume:
    case Rule::kConditionalBranch:
    case Rule::kCondition:
      if (!In(0).is(ScalarKind::kI1)) return "its condition is not i1";
      if (rule() != Rule::kAssert && !In(0).is_scalar()) return "its condition is a tensor";
      return "";
    case Rule::kPrint:
      if (!attributes().is_signed.empty() && attributes().is_signed.size() != operands()) {
        return "isSigned has not one number for each value";
      }
      return "";
    case Rule::kCall:
      return CheckCall();
    case Rule::kReturn:
      return CheckReturn();
    case Rule::kFor:
      return CheckFor();
    case Rule::kIf:
      return CheckIf();
    case Rule::kWhile:
      return CheckWhile();
    default:
      return "";
  }
}

std::vector<Type> RuleChecker::TypesOf(size_t first_operand) const {
  std::vector<Type> types;
  for (size_t i = first_operand; i < operands(); ++i) types.push_back(In(i));
  return types;
}

std::vector<Type> RuleChecker::ResultTypes() const {
  std::vector<Type> types;
  for (const ValueId value : operation_.results) types.push_back(TypeOf(value));
  return types;
}

const Block* RuleChecker::BlockOf(size_t region) const {
  const std::vector<Block>& blocks = operation_.regions[region].blocks;
  return blocks.size() == 1 ? &blocks[0] : nullptr;
}

std::string RuleChecker::CheckRegion(size_t region, const std::vector<Type>& arguments,
                                     Opcode terminator, const std::vector<Type>& yielded) const {
  const std::vector<Block>& blocks = operation_.regions[region].blocks;
  // Only the function of a map may have several blocks, as it may return early.
  if (blocks.empty() || (blocks.size() > 1 && rule() != Rule::kMap)) {
    return "its region has not one block";
  }
  if (blocks[0].arguments.size() != arguments.size()) {
    return absl::StrCat("its region has ", blocks[0].arguments.size(), " arguments and not ",
                        arguments.size());
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Type& type = TypeOf(blocks[0].arguments[i]);
    if (type == arguments[i]) continue;
    return absl::StrCat("its region's argument ", i, " is ", type.ToString(), " and not ",
                        arguments[i].ToString());
  }
  for (const Block& block : blocks) {
    if (block.operations.empty()) return "its region has an empty block";
    const Operation& last = block.operations.back();
    if (blocks.size() > 1 && last.opcode != terminator) continue;  // a branch
    if (last.opcode != terminator) {
      return absl::StrCat("its region does not end with ", OpcodeName(terminator));
    }
    const size_t first = terminator == Opcode::kCondition ? 1 : 0;
    if (last.operands.size() != yielded.size() + first) {
      return absl::StrCat("its region hands over ", last.operands.size(), " values and not ",
                          yielded.size() + first);
    }
    for (size_t i = 0; i < yielded.size(); ++i) {
      const Type& type = TypeOf(last.operands[i + first]);
      if (type == yielded[i]) continue;
      return absl::StrCat("its region hands over ", type.ToString(), " and not ",
                          yielded[i].ToString());
    }
  }
  return "";
}

std::string RuleChecker::CheckCall() const {
  const int32_t callee = attributes().callee;
  if (callee < 0 || static_cast<size_t>(callee) >= module_.functions.size()) {
    return "it calls no function";
  }
  const Function& function = module_.functions[callee];
  bool fits = function.arguments.size() == operands() && function.results == ResultTypes();
  for (size_t i = 0; fits && i < operands(); ++i) {
    fits = In(i) == function.TypeOf(function.arguments[i].value);
  }
  return fits ? ""
              : absl::StrCat("the types do not fit @",
                             absl::CHexEscape(function.name.substr(0, 80)));
}

std::string RuleChecker::CheckReturn() const {
  return TypesOf(0) == function_.results ? "" : "its values are not of the function's types";
}

std::string RuleChecker::CheckFor() const {
  const Type& bound = In(0);
  if (!bound.is_scalar() || !bound.is_integer() || In(1) != bound || In(2) != bound) {
    return "its bounds and step are not integers of one type";
  }
  const std::vector<Type> carried = TypesOf(3);
  if (carried != ResultTypes()) return "its results are not of its initial values' types";
  std::vector<Type> arguments = {bound};
  arguments.insert(arguments.end(), carried.begin(), carried.end());
  return CheckRegion(0, arguments, Opcode::kYield, carried);
}

std::string RuleChecker::CheckIf() const {
  if (!In(0).is_scalar() || !In(0).is(ScalarKind::kI1)) return "its condition is not i1";
  const std::vector<Type> results = ResultTypes();
  if (std::string violation = CheckRegion(0, {}, Opcode::kYield, results); !violation.empty()) {
    return violation;
  }
  if (operation_.regions[1].blocks.empty()) {
    return results.empty() ? "" : "it has results but no else";
  }
  return CheckRegion(1, {}, Opcode::kYield, results);
}

std::string RuleChecker::CheckWhile() const {
  const std::vector<Type> carried = TypesOf(0);
  const std::vector<Type> results = ResultTypes();
  std::string violation = CheckRegion(0, carried, Opcode::kCondition, results);
  if (violation.empty()) violation = CheckRegion(1, results, Opcode::kYield, carried);
  return violation;
}

}  // namespace tritonrl::ttir
