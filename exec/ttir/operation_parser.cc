#include "exec/ttir/operation_parser.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/attribute_fields.h"
#include "exec/ttir/limits.h"
#include "exec/ttir/type_parser.h"

namespace tritonrl::ttir {

absl::Status NotExecutable(const Lexer& lexer, absl::string_view name, LocationParser& locations,
                           const LocationTable& table) {
  // The operation's syntax is unknown, but its location is the last thing on its line.
  const size_t begin = lexer.token().begin;
  const absl::string_view text = lexer.text();
  const absl::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  const size_t at = line.rfind(" loc(");
  std::string place = absl::StrCat("line ", lexer.PositionOf(begin).line, " of the TTIR text");
  if (at != absl::string_view::npos) {
    Lexer tail(text);
    tail.Seek(begin + at);
    const auto location = locations.ParseOptional(tail);
    if (location.ok() && table.PositionOf(*location).known()) {
      place = table.PositionOf(*location).ToString();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("not executable: ", absl::CHexEscape(name.substr(0, 80)), ", ", place));
}

absl::StatusOr<ValueId> OperationParser::Define(absl::string_view printed, const Type& type) {
  if (function_.values.size() >= kMaxValues) return lexer_.Error("a function has too many values");
  std::string name(printed.substr(1));
  const auto value = static_cast<ValueId>(function_.values.size());
  const auto [entry, is_new] = scope_.try_emplace(name, value);
  if (!is_new) {
    return lexer_.Error(absl::StrCat("%", name.substr(0, 40), " is defined twice"));
  }
  undo_.back().emplace_back(name, value);
  function_.values.push_back({type, std::move(name)});
  return value;
}

absl::StatusOr<OperationParser::Use> OperationParser::ParseUse() {
  const Token token = lexer_.token();
  if (token.kind != TokenKind::kValue) return lexer_.Expected("a value such as %0");
  lexer_.Advance();
  std::string name(token.text.substr(1));
  const Token& next = lexer_.token();
  if (next.kind == TokenKind::kHash && next.begin == token.begin + token.text.size()) {
    const std::string numbered = absl::StrCat(name, next.text);
    if (next.text != "#0" || scope_.contains(numbered)) name = numbered;
    lexer_.Advance();
  }
  auto found = scope_.find(name);
  if (found == scope_.end()) found = scope_.find(absl::StrCat(name, "#0"));
  if (found == scope_.end()) {
    return lexer_.ErrorAt(token.begin,
                          absl::StrCat("%", name.substr(0, 40), " is used before it is defined"));
  }
  return Use{found->second, token.begin};
}

absl::StatusOr<std::vector<OperationParser::Use>> OperationParser::ParseUses() {
  std::vector<Use> uses;
  if (lexer_.token().kind != TokenKind::kValue) return uses;
  do {
    ASSIGN_OR_RETURN(const Use use, ParseUse());
    uses.push_back(use);
    if (uses.size() > kMaxListElements) return lexer_.Error("a list of operands is too long");
  } while (lexer_.Accept(","));
  return uses;
}

absl::Status OperationParser::CheckType(const Use& use, const Type& type) {
  const Type& known = function_.TypeOf(use.value);
  if (known == type) return absl::OkStatus();
  return lexer_.ErrorAt(
      use.begin, absl::StrCat("%", function_.values[use.value].name.substr(0, 40), " has the type ",
                              known.ToString(), " and not ", type.ToString()));
}

absl::Status OperationParser::CheckTypes(const std::vector<Use>& uses,
                                         const std::vector<Type>& types) {
  if (uses.size() != types.size()) {
    return lexer_.Error(
        absl::StrCat("there are ", uses.size(), " values and ", types.size(), " types"));
  }
  for (size_t i = 0; i < uses.size(); ++i) RETURN_IF_ERROR(CheckType(uses[i], types[i]));
  return absl::OkStatus();
}

absl::Status OperationParser::AddOperand(Operation& operation, const Use& use) {
  operation.operands.push_back(use.value);
  operand_begins_.push_back(use.begin);
  return absl::OkStatus();
}

absl::Status OperationParser::AddResults(Operation& operation, const std::vector<Type>& types) {
  if (types.size() != result_names_.size()) {
    return lexer_.Error(absl::StrCat(OpcodeName(operation.opcode), " has ", types.size(),
                                     " results but ", result_names_.size(), " names for them"));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    ASSIGN_OR_RETURN(const ValueId value, Define(result_names_[i], types[i]));
    operation.results.push_back(value);
  }
  return absl::OkStatus();
}

absl::Status OperationParser::ParseResultNames() {
  if (lexer_.token().kind != TokenKind::kValue) return absl::OkStatus();
  do {
    const std::string name(lexer_.token().text);
    if (lexer_.token().kind != TokenKind::kValue) return lexer_.Expected("a result's name");
    lexer_.Advance();
    if (lexer_.Accept(":")) {
      ASSIGN_OR_RETURN(const int64_t count, lexer_.Integer());
      if (count < 1 || count > kMaxListElements) return lexer_.Error("too many results");
      for (int64_t i = 0; i < count; ++i) result_names_.push_back(absl::StrCat(name, "#", i));
    } else {
      result_names_.push_back(name);
    }
    if (result_names_.size() > kMaxListElements) return lexer_.Error("too many results");
  } while (lexer_.Accept(","));
  return lexer_.Expect("=");
}

absl::StatusOr<Operation> OperationParser::ParseOperation() {
  if (++operations_ > kMaxOperations) return lexer_.Error("the module has too many operations");
  std::vector<std::string> outer_names = std::exchange(result_names_, {});
  std::vector<size_t> outer_begins = std::exchange(operand_begins_, {});
  RETURN_IF_ERROR(ParseResultNames());
  Operation operation;
  const Token token = lexer_.token();
  const Lexer::Position position = lexer_.PositionOf(token.begin);
  operation.text_line = position.line;
  operation.text_column = position.column;
  const bool generic = token.kind == TokenKind::kString;
  if (!generic && token.kind != TokenKind::kWord) return lexer_.Expected("an operation");
  std::string name(token.text);
  if (generic) name = name.substr(1, name.size() - 2);
  const std::optional<Opcode> opcode = FindOpcode(name);
  if (!opcode.has_value()) return NotExecutable(lexer_, name, locations_, module_.locations);
  operation.opcode = *opcode;
  lexer_.Advance();
  if (generic) {
    RETURN_IF_ERROR(ParseGeneric(operation));
  } else {
    RETURN_IF_ERROR(ParsePretty(operation));
  }
  ASSIGN_OR_RETURN(operation.location, locations_.ParseOptional(lexer_));
  if (operation.opcode == Opcode::kFor || operation.opcode == Opcode::kIf) {
    for (Region& region : operation.regions) {
      if (!region.blocks.empty()) AddImplicitYield(region, operation.location);
    }
  }
  result_names_ = std::move(outer_names);
  operand_begins_ = std::move(outer_begins);
  return operation;
}

absl::Status OperationParser::ParseOptionalAttributes(Operation& operation,
                                                      std::vector<int64_t>* segments) {
  if (!lexer_.Is("{")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const AttributeList list, ParseAttributes(lexer_));
  return ApplyAttributes(lexer_, list, module_, operation, segments);
}

absl::Status OperationParser::ParseGeneric(Operation& operation) {
  RETURN_IF_ERROR(lexer_.Expect("("));
  ASSIGN_OR_RETURN(const std::vector<Use> uses, ParseUses());
  RETURN_IF_ERROR(lexer_.Expect(")"));
  for (const Use& use : uses) RETURN_IF_ERROR(AddOperand(operation, use));
  if (lexer_.Is("[")) RETURN_IF_ERROR(ParseGenericSuccessors(operation));
  std::vector<int64_t> segments;
  if (lexer_.Accept("<")) {
    RETURN_IF_ERROR(ParseOptionalAttributes(operation, &segments));
    RETURN_IF_ERROR(lexer_.Expect(">"));
  }
  if (lexer_.Accept("(")) {
    do {
      operation.regions.emplace_back();
      RETURN_IF_ERROR(ParseRegion({}, &operation.regions.back()));
    } while (lexer_.Accept(","));
    RETURN_IF_ERROR(lexer_.Expect(")"));
  }
  RETURN_IF_ERROR(ParseOptionalAttributes(operation, &segments));
  RETURN_IF_ERROR(lexer_.Expect(":"));
  ASSIGN_OR_RETURN(const FunctionType type, ParseFunctionType(lexer_));
  RETURN_IF_ERROR(CheckTypes(uses, type.inputs));
  RETURN_IF_ERROR(SetSegments(operation, segments));
  return AddResults(operation, type.results);
}

absl::Status OperationParser::ParseGenericSuccessors(Operation& operation) {
  lexer_.Advance();
  do {
    if (lexer_.token().kind != TokenKind::kBlock) return lexer_.Expected("a block");
    if (operation.successors.size() >= 2) return lexer_.Error("there are too many successors");
    operation.successors.push_back({.block = NumberOf(lexer_.token().text)});
    lexer_.Advance();
  } while (lexer_.Accept(","));
  return lexer_.Expect("]");
}

// Puts the groups of operands, which the generic form gives by their sizes, where the pretty form
// would have them.
absl::Status OperationParser::SetSegments(Operation& operation,
                                          const std::vector<int64_t>& segments) {
  const auto operands = static_cast<int64_t>(operation.operands.size());
  int64_t sum = 0;
  for (const int64_t size : segments) {
    if (size < 0 || size > operands) return lexer_.Error("operandSegmentSizes are wrong");
    sum += size;
  }
  if (!segments.empty() && sum != operands) return lexer_.Error("operandSegmentSizes are wrong");
  switch (operation.opcode) {
    case Opcode::kBranch:
      if (operation.successors.size() != 1) return lexer_.Error("cf.br has no single successor");
      operation.successors[0].count = static_cast<int32_t>(operands);
      return absl::OkStatus();
    case Opcode::kCondBranch:
      if (operation.successors.size() != 2 || segments.size() != 3 || segments[0] != 1) {
        return lexer_.Error("cf.cond_br lacks successors or operandSegmentSizes");
      }
      operation.successors[0].first = 1;
      operation.successors[0].count = static_cast<int32_t>(segments[1]);
      operation.successors[1].first = static_cast<int32_t>(1 + segments[1]);
      operation.successors[1].count = static_cast<int32_t>(segments[2]);
      return absl::OkStatus();
    case Opcode::kDotScaled:
      if (segments.size() != 5 || segments[3] > 1 || segments[4] > 1) {
        return lexer_.Error("tt.dot_scaled lacks operandSegmentSizes");
      }
      if (segments[3] == 1) operation.attributes.flags |= kLeftScale;
      if (segments[4] == 1) operation.attributes.flags |= kRightScale;
      return absl::OkStatus();
    default:
      // Elsewhere the groups follow from the number of operands, unless one in the middle is empty.
      if (!operation.successors.empty()) return lexer_.Error("the operation has no successors");
      for (size_t i = 1; i < segments.size(); ++i) {
        if (segments[i] > 0 && segments[i - 1] == 0) {
          return lexer_.Error("an operand lacks another in front of it");
        }
      }
      return absl::OkStatus();
  }
}

}  // namespace tritonrl::ttir
