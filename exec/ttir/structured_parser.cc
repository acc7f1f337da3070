// Operations whose printed form is their own: constants, loops, branches, the scaled dot product.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/attribute_fields.h"
#include "exec/ttir/constant_parser.h"
#include "exec/ttir/limits.h"
#include "exec/ttir/operation_parser.h"
#include "exec/ttir/type_parser.h"

namespace tritonrl::ttir {

// `arith.constant {attributes} value : type`
absl::Status OperationParser::ParseConstantOperation(Operation& operation) {
  RETURN_IF_ERROR(ParseOptionalAttributes(operation));
  ASSIGN_OR_RETURN(Attribute value, ParseConstant(lexer_));
  const Type type = value.type;
  AttributeList list;
  list.push_back({"value", std::move(value)});
  RETURN_IF_ERROR(ApplyAttributes(lexer_, list, module_, operation));
  return AddResults(operation, {type});
}

// `(%inner = %outer, ...)`: the outer values become operands.
absl::Status OperationParser::ParseInitialValues(Operation& operation,
                                                 std::vector<std::string>* names) {
  RETURN_IF_ERROR(lexer_.Expect("("));
  do {
    if (lexer_.token().kind != TokenKind::kValue) return lexer_.Expected("a value such as %0");
    names->emplace_back(lexer_.token().text);
    if (names->size() > kMaxListElements) return lexer_.Error("a loop has too many values");
    lexer_.Advance();
    RETURN_IF_ERROR(lexer_.Expect("="));
    ASSIGN_OR_RETURN(const Use use, ParseUse());
    RETURN_IF_ERROR(AddOperand(operation, use));
  } while (lexer_.Accept(","));
  return lexer_.Expect(")");
}

// `scf.for %i = %a to %b step %c iter_args(%x = %y) -> (T) : i32 { ... } {attributes}`
absl::Status OperationParser::ParseFor(Operation& operation) {
  if (lexer_.Accept("unsigned")) operation.attributes.flags |= kUnsignedCompare;
  std::vector<std::string> names = {std::string(lexer_.token().text)};
  if (lexer_.token().kind != TokenKind::kValue) return lexer_.Expected("a loop's variable");
  lexer_.Advance();
  for (const char* word : {"=", "to", "step"}) {
    RETURN_IF_ERROR(lexer_.Expect(word));
    ASSIGN_OR_RETURN(const Use use, ParseUse());
    RETURN_IF_ERROR(AddOperand(operation, use));
  }
  std::vector<Type> results;
  if (lexer_.Accept("iter_args")) {
    RETURN_IF_ERROR(ParseInitialValues(operation, &names));
    RETURN_IF_ERROR(lexer_.Expect("->"));
    ASSIGN_OR_RETURN(results, ParseResultTypes(lexer_));
  }
  Type variable = Type::Scalar(ScalarKind::kIndex);
  if (lexer_.Accept(":")) {
    ASSIGN_OR_RETURN(variable, ParseType(lexer_));
  }
  if (results.size() + 1 != names.size()) return lexer_.Error("a loop's values lack types");
  std::vector<Type> types = {variable};
  types.insert(types.end(), results.begin(), results.end());
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    RETURN_IF_ERROR(CheckOperand(operation, i, types[i < 3 ? 0 : i - 2]));
  }
  // The names are seen in the region alone, so that this scope ends with it.
  undo_.emplace_back();
  std::vector<ValueId> arguments;
  for (size_t i = 0; i < names.size(); ++i) {
    ASSIGN_OR_RETURN(const ValueId value, Define(names[i], types[i]));
    arguments.push_back(value);
  }
  operation.regions.emplace_back();
  RETURN_IF_ERROR(ParseRegion(std::move(arguments), &operation.regions.back()));
  for (const auto& [name, value] : undo_.back()) scope_.erase(name);
  undo_.pop_back();
  RETURN_IF_ERROR(ParseOptionalAttributes(operation));
  return AddResults(operation, results);
}

// `scf.if %c -> (T) { ... } else { ... } {attributes}`
absl::Status OperationParser::ParseIf(Operation& operation) {
  ASSIGN_OR_RETURN(const Use condition, ParseUse());
  RETURN_IF_ERROR(AddOperand(operation, condition));
  std::vector<Type> results;
  if (lexer_.Accept("->")) {
    ASSIGN_OR_RETURN(results, ParseResultTypes(lexer_));
  }
  operation.regions.resize(2);
  RETURN_IF_ERROR(ParseRegion({}, &operation.regions[0]));
  if (operation.regions[0].blocks.empty()) operation.regions[0].blocks.emplace_back();
  if (lexer_.Accept("else")) {
    RETURN_IF_ERROR(ParseRegion({}, &operation.regions[1]));
    if (operation.regions[1].blocks.empty()) operation.regions[1].blocks.emplace_back();
  }
  RETURN_IF_ERROR(ParseOptionalAttributes(operation));
  return AddResults(operation, results);
}

// `scf.while (%x = %y) : (T) -> (U) { ... } do { ^bb0(%z: U): ... } attributes {...}`
absl::Status OperationParser::ParseWhile(Operation& operation) {
  std::vector<std::string> names;
  if (lexer_.Is("(")) RETURN_IF_ERROR(ParseInitialValues(operation, &names));
  RETURN_IF_ERROR(lexer_.Expect(":"));
  ASSIGN_OR_RETURN(const FunctionType type, ParseFunctionType(lexer_));
  if (type.inputs.size() != names.size()) return lexer_.Error("a loop's values lack types");
  undo_.emplace_back();
  std::vector<ValueId> arguments;
  for (size_t i = 0; i < names.size(); ++i) {
    RETURN_IF_ERROR(CheckOperand(operation, i, type.inputs[i]));
    ASSIGN_OR_RETURN(const ValueId value, Define(names[i], type.inputs[i]));
    arguments.push_back(value);
  }
  operation.regions.resize(2);
  RETURN_IF_ERROR(ParseRegion(std::move(arguments), &operation.regions[0]));
  for (const auto& [name, value] : undo_.back()) scope_.erase(name);
  undo_.pop_back();
  RETURN_IF_ERROR(lexer_.Expect("do"));
  RETURN_IF_ERROR(ParseRegion({}, &operation.regions[1]));
  if (lexer_.Accept("attributes")) RETURN_IF_ERROR(ParseOptionalAttributes(operation));
  return AddResults(operation, type.results);
}

// `^bb1(%x, %y : T, U)` or `^bb1`
absl::Status OperationParser::ParseSuccessor(Operation& operation) {
  if (lexer_.token().kind != TokenKind::kBlock) return lexer_.Expected("a block such as ^bb1");
  Successor successor;
  successor.block = NumberOf(lexer_.token().text);
  successor.first = static_cast<int32_t>(operation.operands.size());
  lexer_.Advance();
  if (lexer_.Accept("(")) {
    ASSIGN_OR_RETURN(const std::vector<Use> uses, ParseUses());
    RETURN_IF_ERROR(lexer_.Expect(":"));
    ASSIGN_OR_RETURN(const std::vector<Type> types, ParseTypeList(lexer_));
    RETURN_IF_ERROR(lexer_.Expect(")"));
    RETURN_IF_ERROR(CheckTypes(uses, types));
    for (const Use& use : uses) RETURN_IF_ERROR(AddOperand(operation, use));
    successor.count = static_cast<int32_t>(uses.size());
  }
  operation.successors.push_back(successor);
  return absl::OkStatus();
}

// `cf.br ^bb1(...)`, `cf.cond_br %c, ^bb1(...), ^bb2(...)`
absl::Status OperationParser::ParseBranch(Operation& operation) {
  if (operation.opcode == Opcode::kCondBranch) {
    ASSIGN_OR_RETURN(const Use condition, ParseUse());
    RETURN_IF_ERROR(AddOperand(operation, condition));
    RETURN_IF_ERROR(lexer_.Expect(","));
    RETURN_IF_ERROR(ParseSuccessor(operation));
    RETURN_IF_ERROR(lexer_.Expect(","));
  }
  RETURN_IF_ERROR(ParseSuccessor(operation));
  RETURN_IF_ERROR(ParseOptionalAttributes(operation));
  return AddResults(operation, {});
}

// `tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e2m1 rhs = e4m3 {attributes} : A, S * B, T ->
// C`
absl::Status OperationParser::ParseScaledDot(Operation& operation) {
  std::optional<Use> scales[2];
  for (int side = 0; side < 2; ++side) {
    ASSIGN_OR_RETURN(const Use use, ParseUse());
    RETURN_IF_ERROR(AddOperand(operation, use));
    if (lexer_.Accept("scale")) {
      ASSIGN_OR_RETURN(scales[side], ParseUse());
    }
    RETURN_IF_ERROR(lexer_.Expect(","));
  }
  ASSIGN_OR_RETURN(const Use accumulator, ParseUse());
  RETURN_IF_ERROR(AddOperand(operation, accumulator));
  for (const auto& [word, field] : {std::pair("lhs", "a_elem_type"), {"rhs", "b_elem_type"}}) {
    RETURN_IF_ERROR(lexer_.Expect(word));
    RETURN_IF_ERROR(lexer_.Expect("="));
    RETURN_IF_ERROR(ParseWord(field, operation));
  }
  RETURN_IF_ERROR(ParseOptionalAttributes(operation));
  RETURN_IF_ERROR(lexer_.Expect(":"));
  for (int side = 0; side < 2; ++side) {
    if (side == 1) RETURN_IF_ERROR(lexer_.Expect("*"));
    ASSIGN_OR_RETURN(const Type type, ParseType(lexer_));
    RETURN_IF_ERROR(CheckOperand(operation, static_cast<size_t>(side), type));
    if (!scales[side].has_value()) continue;
    RETURN_IF_ERROR(lexer_.Expect(","));
    ASSIGN_OR_RETURN(const Type scale, ParseType(lexer_));
    RETURN_IF_ERROR(CheckType(*scales[side], scale));
    operation.attributes.flags |= side == 0 ? kLeftScale : kRightScale;
    RETURN_IF_ERROR(AddOperand(operation, *scales[side]));
  }
  RETURN_IF_ERROR(lexer_.Expect("->"));
  ASSIGN_OR_RETURN(const Type result, ParseType(lexer_));
  return AddResults(operation, {result});
}

}  // namespace tritonrl::ttir
