// The pretty form of operations by the syntax in the table of opcodes.h. Elements of a syntax are
// divided by spaces:
//   %      an operand            %*  operands, maybe none       ?,%  ", operand" or nothing
//   %1     an operand that becomes the second
//   @      a function            "f  a string for the field f   A    attributes, maybe none
//   /f     a word for the field f (/predicate:I and :F name the kind of comparison)
//   =f     "f = word"            ?,f ", f = word" or nothing    !f   the word f or nothing
//   F O R N  fastmath<...>, overflow<...>, a rounding mode, nneg, each or nothing
//   o      cacheModifier = word, evictionPolicy = word, each or nothing
// and of types:
//   Ta     one of all operands and results     To   one of all operands
//   T0 T1  one of that operand                 T0r T2r  of that operand and the result
//   Tr     one of each result                  Ts   results, one each      Td  a descriptor result
//   Tc     of all operands; the result is i1   Tp   of the pointer; the result is what it points to
//   Tu     of the operand; the result is its element        Tsel  those of arith.select
//   Tl     operands, one each                  Tf   a function type
//   :Tl :Tv  ": types" of all operands, of those after the first, if there are any
//   :%*    ": operands : types" or nothing
// Anything else stands for itself.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "exec/ttir/attribute_fields.h"
#include "exec/ttir/limits.h"
#include "exec/ttir/operation_parser.h"
#include "exec/ttir/type_parser.h"

namespace tritonrl::ttir {

absl::Status OperationParser::ParsePretty(Operation& operation) {
  switch (operation.opcode) {
    case Opcode::kConstant:
      return ParseConstantOperation(operation);
    case Opcode::kFor:
      return ParseFor(operation);
    case Opcode::kIf:
      return ParseIf(operation);
    case Opcode::kWhile:
      return ParseWhile(operation);
    case Opcode::kBranch:
    case Opcode::kCondBranch:
      return ParseBranch(operation);
    case Opcode::kDotScaled:
      return ParseScaledDot(operation);
    default:
      break;
  }
  absl::string_view syntax = InfoOf(operation.opcode).syntax;
  if (syntax.empty()) {
    return lexer_.Error(absl::StrCat(OpcodeName(operation.opcode), " has only a generic form"));
  }
  while (!syntax.empty()) {
    const size_t space = syntax.find(' ');
    RETURN_IF_ERROR(ParseElement(syntax.substr(0, space), operation));
    syntax = space == absl::string_view::npos ? "" : syntax.substr(space + 1);
  }
  if (operation.results.empty()) return AddResults(operation, {});
  return absl::OkStatus();
}

absl::Status OperationParser::ParseElement(absl::string_view element, Operation& operation) {
  if (element[0] == '%') return ParseOperandElement(element, operation);
  if (element[0] == 'T') return ParseTypeElement(element, operation);
  if (element == "A") return ParseOptionalAttributes(operation);
  if (element == "F") return ParseFlagWords("fastmath", operation);
  if (element == "O") return ParseFlagWords("overflow", operation);
  if (element == "o") return ParseCacheWords(operation);
  if (element[0] == '/') return ParseWord(element.substr(1), operation);
  if (element == "R") {
    const absl::string_view word = lexer_.token().text;
    if (lexer_.token().kind != TokenKind::kWord || word == "fastmath") return absl::OkStatus();
    if (!ApplyFlagWords("roundingmode", word, operation)) return lexer_.Expected("a rounding mode");
    lexer_.Advance();
    return absl::OkStatus();
  }
  if (element == "N") {
    if (lexer_.Accept("nneg")) operation.attributes.flags |= kNonNegative;
    return absl::OkStatus();
  }
  if (element == "@") {
    ASSIGN_OR_RETURN(operation.attributes.symbol, lexer_.Symbol());
    return absl::OkStatus();
  }
  if (element[0] == '"') {
    ASSIGN_OR_RETURN(operation.attributes.text, lexer_.String());
    return absl::OkStatus();
  }
  if (element[0] == '=') {
    RETURN_IF_ERROR(lexer_.Expect(element.substr(1)));
    RETURN_IF_ERROR(lexer_.Expect("="));
    return ParseWord(element.substr(1), operation);
  }
  if (element[0] == '?' || element[0] == '!' || (element[0] == ':' && element.size() > 1)) {
    return ParseOptionalElement(element, operation);
  }
  return lexer_.Expect(element);
}

absl::Status OperationParser::ParseOptionalElement(absl::string_view element,
                                                   Operation& operation) {
  if (element == ":Tl") return ParseOperandTypes(operation, 0);
  if (element == ":Tv") return ParseOperandTypes(operation, 1);
  if (element == ":%*") {
    if (!lexer_.Accept(":")) return absl::OkStatus();
    RETURN_IF_ERROR(ParseOperandElement("%*", operation));
    return ParseOperandTypes(operation, 0);
  }
  if (element[0] == '!') {
    if (!lexer_.Accept(element.substr(1))) return absl::OkStatus();
    if (element == "!allow_reorder") operation.attributes.flags |= kAllowReorder;
    return absl::OkStatus();
  }
  if (!lexer_.Accept(",")) return absl::OkStatus();
  const absl::string_view rest = element.substr(2);
  if (rest == "%") return ParseOperandElement("%", operation);
  RETURN_IF_ERROR(lexer_.Expect(rest));
  RETURN_IF_ERROR(lexer_.Expect("="));
  return ParseWord(rest, operation);
}

absl::Status OperationParser::ParseOperandElement(absl::string_view element, Operation& operation) {
  if (element == "%*") {
    ASSIGN_OR_RETURN(const std::vector<Use> uses, ParseUses());
    for (const Use& use : uses) RETURN_IF_ERROR(AddOperand(operation, use));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Use use, ParseUse());
  if (element == "%1") {
    operation.operands.insert(operation.operands.begin() + 1, use.value);
    operand_begins_.insert(operand_begins_.begin() + 1, use.begin);
    return absl::OkStatus();
  }
  return AddOperand(operation, use);
}

absl::Status OperationParser::ParseWord(absl::string_view field, Operation& operation) {
  const absl::string_view name = field.substr(0, field.find(':'));
  // Words such as "true" of a comparison are tokens like others.
  if (lexer_.token().kind != TokenKind::kWord || !ApplyWord(name, lexer_.token().text, operation)) {
    return lexer_.Expected(absl::StrCat("a word for ", name));
  }
  lexer_.Advance();
  return absl::OkStatus();
}

absl::Status OperationParser::ParseFlagWords(absl::string_view name, Operation& operation) {
  if (!lexer_.Accept(name)) return absl::OkStatus();
  RETURN_IF_ERROR(lexer_.Expect("<"));
  do {
    if (!ApplyFlagWords(name, lexer_.token().text, operation)) {
      return lexer_.Expected(absl::StrCat("a word of ", name));
    }
    lexer_.Advance();
  } while (lexer_.Accept(","));
  return lexer_.Expect(">");
}

absl::Status OperationParser::ParseCacheWords(Operation& operation) {
  while (lexer_.Is("cacheModifier") || lexer_.Is("evictionPolicy")) {
    const absl::string_view field = lexer_.Is("cacheModifier") ? "cache" : "evict";
    lexer_.Advance();
    RETURN_IF_ERROR(lexer_.Expect("="));
    RETURN_IF_ERROR(ParseWord(field, operation));
  }
  return absl::OkStatus();
}

absl::Status OperationParser::CheckOperand(const Operation& operation, size_t index,
                                           const Type& type) {
  if (index >= operation.operands.size()) return lexer_.Error("a type has no operand");
  return CheckType({operation.operands[index], operand_begins_[index]}, type);
}

absl::Status OperationParser::ParseOperandTypes(Operation& operation, size_t first) {
  if (operation.operands.size() <= first) return absl::OkStatus();
  RETURN_IF_ERROR(lexer_.Expect(":"));
  for (size_t i = first; i < operation.operands.size(); ++i) {
    if (i > first) RETURN_IF_ERROR(lexer_.Expect(","));
    ASSIGN_OR_RETURN(const Type type, ParseType(lexer_));
    RETURN_IF_ERROR(CheckOperand(operation, i, type));
  }
  return absl::OkStatus();
}

absl::Status OperationParser::ParseFunctional(Operation& operation) {
  ASSIGN_OR_RETURN(const FunctionType type, ParseFunctionType(lexer_));
  if (type.inputs.size() != operation.operands.size()) {
    return lexer_.Error("there are not as many types as operands");
  }
  for (size_t i = 0; i < type.inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckOperand(operation, i, type.inputs[i]));
  }
  return AddResults(operation, type.results);
}

absl::Status OperationParser::ParseTypeElement(absl::string_view element, Operation& operation) {
  if (element == "Tf") return ParseFunctional(operation);
  if (element == "Tl" || element == "Ts") {
    ASSIGN_OR_RETURN(const std::vector<Type> types, ParseTypeList(lexer_));
    if (element == "Ts") return AddResults(operation, types);
    if (types.size() != operation.operands.size()) return lexer_.Error("types are missing");
    for (size_t i = 0; i < types.size(); ++i) RETURN_IF_ERROR(CheckOperand(operation, i, types[i]));
    return absl::OkStatus();
  }
  const Unnamed unnamed = element == "Td" ? Unnamed::kDescriptor : Unnamed::kPointer;
  ASSIGN_OR_RETURN(Type type, ParseType(lexer_, unnamed));
  if (element == "Tsel") {
    // A scalar condition has no type in the text.
    if (lexer_.Accept(",")) {
      RETURN_IF_ERROR(CheckOperand(operation, 0, type));
      ASSIGN_OR_RETURN(type, ParseType(lexer_));
    } else {
      RETURN_IF_ERROR(CheckOperand(operation, 0, Type::Scalar(ScalarKind::kI1)));
    }
    for (size_t i = 1; i < 3; ++i) RETURN_IF_ERROR(CheckOperand(operation, i, type));
    return AddResults(operation, {type});
  }
  if (element == "Ta" || element == "To" || element == "Tc") {
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      RETURN_IF_ERROR(CheckOperand(operation, i, type));
    }
  } else if (element == "Tp" || element == "Tu") {
    RETURN_IF_ERROR(CheckOperand(operation, 0, type));
  } else if (element[1] >= '0' && element[1] <= '9') {
    RETURN_IF_ERROR(CheckOperand(operation, static_cast<size_t>(element[1] - '0'), type));
  }
  if (element == "Tc") return AddResults(operation, {type.WithElement(ScalarKind::kI1)});
  if (element == "Tp") return AddResults(operation, {type.Pointee()});
  if (element == "Tu") return AddResults(operation, {type.ElementType()});
  if (element == "Ta" || element == "Tr" || element == "Td" || absl::EndsWith(element, "r")) {
    const int results = InfoOf(operation.opcode).results;
    return AddResults(operation, std::vector<Type>(static_cast<size_t>(results), type));
  }
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
