#include "exec/ttir/parser.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/attribute_fields.h"
#include "exec/ttir/attribute_parser.h"
#include "exec/ttir/lexer.h"
#include "exec/ttir/limits.h"
#include "exec/ttir/operation_parser.h"
#include "exec/ttir/type_parser.h"
#include "exec/ttir/verify.h"

namespace tritonrl::ttir {

namespace {

class ModuleParser {
 public:
  explicit ModuleParser(absl::string_view text) : lexer_(text), locations_(&module_.locations) {}

  absl::StatusOr<Module> Parse() {
    RETURN_IF_ERROR(locations_.ParseAliases(lexer_.text()));
    RETURN_IF_ERROR(SkipAliases());
    const bool generic = lexer_.token().text == "\"builtin.module\"";
    RETURN_IF_ERROR(generic ? ParseGenericHead() : ParseHead());
    while (!lexer_.Is("}")) RETURN_IF_ERROR(ParseFunction());
    lexer_.Advance();
    if (generic) RETURN_IF_ERROR(ParseGenericTail(nullptr));
    RETURN_IF_ERROR(locations_.ParseOptional(lexer_).status());
    RETURN_IF_ERROR(SkipAliases());
    if (lexer_.token().kind != TokenKind::kEnd) return lexer_.Expected("the end of the text");
    RETURN_IF_ERROR(ResolveCalls());
    return std::move(module_);
  }

 private:
  // `#loc7 = loc(...)`, which ParseAliases has read.
  absl::Status SkipAliases() {
    while (lexer_.token().kind == TokenKind::kHash) {
      lexer_.Advance();
      RETURN_IF_ERROR(lexer_.Expect("="));
      if (!lexer_.Is("loc")) return lexer_.Expected("\"loc\"");
      RETURN_IF_ERROR(locations_.ParseOptional(lexer_).status());
    }
    return absl::OkStatus();
  }

  absl::Status ParseHead() {
    if (!lexer_.Accept("module")) RETURN_IF_ERROR(lexer_.Expect("builtin.module"));
    if (lexer_.token().kind == TokenKind::kSymbol) lexer_.Advance();
    if (lexer_.Accept("attributes")) RETURN_IF_ERROR(ParseAttributes(lexer_).status());
    return lexer_.Expect("{");
  }

  absl::Status ParseGenericHead() {
    lexer_.Advance();
    RETURN_IF_ERROR(lexer_.Expect("("));
    RETURN_IF_ERROR(lexer_.Expect(")"));
    if (lexer_.Accept("<")) {
      RETURN_IF_ERROR(ParseAttributes(lexer_).status());
      RETURN_IF_ERROR(lexer_.Expect(">"));
    }
    RETURN_IF_ERROR(lexer_.Expect("("));
    RETURN_IF_ERROR(lexer_.Expect("{"));
    if (lexer_.token().kind != TokenKind::kBlock) return absl::OkStatus();
    lexer_.Advance();
    return lexer_.Expect(":");
  }

  // `) {attributes} : () -> ()`
  absl::Status ParseGenericTail(AttributeList* attributes) {
    RETURN_IF_ERROR(lexer_.Expect(")"));
    if (lexer_.Is("{")) {
      ASSIGN_OR_RETURN(AttributeList list, ParseAttributes(lexer_));
      if (attributes != nullptr) *attributes = std::move(list);
    }
    RETURN_IF_ERROR(lexer_.Expect(":"));
    return ParseFunctionType(lexer_).status();
  }

  absl::Status ParseFunction() {
    if (module_.functions.size() >= kMaxFunctions) return lexer_.Error("too many functions");
    Function function;
    function.text_line = lexer_.PositionOf(lexer_.token().begin).line;
    OperationParser body(&lexer_, &locations_, &module_, &function, &operations_);
    if (lexer_.token().text == "\"tt.func\"") {
      RETURN_IF_ERROR(ParseGenericFunction(function, body));
    } else if (lexer_.Accept("tt.func")) {
      RETURN_IF_ERROR(ParsePrettyFunction(function, body));
    } else if (lexer_.token().kind == TokenKind::kWord) {
      return NotExecutable(lexer_, lexer_.token().text, locations_, module_.locations);
    } else {
      return lexer_.Expected("a function");
    }
    ASSIGN_OR_RETURN(function.location, locations_.ParseOptional(lexer_));
    const auto [entry, is_new] =
        by_name_.try_emplace(function.name, static_cast<int32_t>(module_.functions.size()));
    if (!is_new) return lexer_.Error("two functions have one name");
    module_.functions.push_back(std::move(function));
    return absl::OkStatus();
  }

  absl::Status ParsePrettyFunction(Function& function, OperationParser& body) {
    if (lexer_.Accept("private")) {
      function.is_public = false;
    } else {
      lexer_.Accept("public");
    }
    ASSIGN_OR_RETURN(function.name, lexer_.Symbol());
    RETURN_IF_ERROR(lexer_.Expect("("));
    while (!lexer_.Is(")")) {
      if (!function.arguments.empty()) RETURN_IF_ERROR(lexer_.Expect(","));
      RETURN_IF_ERROR(ParseArgument(function, body));
    }
    lexer_.Advance();
    if (lexer_.Accept("->")) {
      ASSIGN_OR_RETURN(function.results, ParseResultTypes(lexer_));
    }
    if (lexer_.Accept("attributes")) {
      ASSIGN_OR_RETURN(const AttributeList list, ParseAttributes(lexer_));
      SetAttributes(list, function);
    }
    if (!lexer_.Is("{")) return lexer_.Error("a function has no body");
    std::vector<ValueId> arguments;
    for (const Argument& argument : function.arguments) arguments.push_back(argument.value);
    return body.ParseRegion(std::move(arguments), &function.body);
  }

  absl::Status ParseArgument(Function& function, OperationParser& body) {
    const Token name = lexer_.token();
    if (name.kind != TokenKind::kValue) return lexer_.Expected("a function's argument");
    lexer_.Advance();
    RETURN_IF_ERROR(lexer_.Expect(":"));
    ASSIGN_OR_RETURN(const Type type, ParseType(lexer_));
    Argument argument;
    if (lexer_.Is("{")) {
      ASSIGN_OR_RETURN(const AttributeList list, ParseAttributes(lexer_));
      argument.hints = AddHints(list, module_);
    }
    ASSIGN_OR_RETURN(argument.location, locations_.ParseOptional(lexer_));
    ASSIGN_OR_RETURN(argument.value, body.Define(name.text, type));
    function.arguments.push_back(argument);
    return absl::OkStatus();
  }

  // `"tt.func"() <{function_type = ..., sym_name = ...}> ({ ^bb0(...): ... }) : () -> ()`
  absl::Status ParseGenericFunction(Function& function, OperationParser& body) {
    lexer_.Advance();
    for (const char* word : {"(", ")", "<"}) RETURN_IF_ERROR(lexer_.Expect(word));
    ASSIGN_OR_RETURN(const AttributeList list, ParseAttributes(lexer_));
    for (const char* word : {">", "("}) RETURN_IF_ERROR(lexer_.Expect(word));
    SetAttributes(list, function);
    RETURN_IF_ERROR(body.ParseRegion({}, &function.body));
    AttributeList further;
    RETURN_IF_ERROR(ParseGenericTail(&further));
    SetAttributes(further, function);
    if (function.body.blocks.empty()) return lexer_.Error("a function has no body");
    for (const ValueId value : function.body.blocks[0].arguments) {
      function.arguments.push_back({.value = value});
    }
    for (const NamedAttribute& named : list) {
      if (named.name == "function_type") {
        const std::vector<Type>& inputs = named.value.function_type.inputs;
        bool fits = inputs.size() == function.arguments.size();
        for (size_t i = 0; fits && i < inputs.size(); ++i) {
          fits = inputs[i] == function.TypeOf(function.arguments[i].value);
        }
        if (!fits) return lexer_.Error("a function's arguments do not fit its type");
        function.results = named.value.function_type.results;
      }
      if (named.name != "arg_attrs") continue;
      const auto& elements = named.value.elements;
      for (size_t i = 0; i < elements.size() && i < function.arguments.size(); ++i) {
        function.arguments[i].hints = AddHints(elements[i].entries, module_);
      }
    }
    return absl::OkStatus();
  }

  static void SetAttributes(const AttributeList& list, Function& function) {
    for (const NamedAttribute& named : list) {
      if (named.name == "noinline") function.is_noinline = named.value.integer != 0;
      if (named.name == "sym_name") function.name = named.value.text;
      if (named.name == "sym_visibility") function.is_public = named.value.text != "private";
    }
  }

  absl::Status ResolveCalls() {
    for (Function& function : module_.functions) RETURN_IF_ERROR(ResolveCalls(function.body));
    return absl::OkStatus();
  }

  // The depth is that of the regions, which the parser has bounded.
  absl::Status ResolveCalls(Region& region) {
    for (Block& block : region.blocks) {
      for (Operation& operation : block.operations) {
        for (Region& inner : operation.regions) RETURN_IF_ERROR(ResolveCalls(inner));
        if (operation.opcode != Opcode::kCall) continue;
        const auto found = by_name_.find(operation.attributes.symbol);
        if (found == by_name_.end()) {
          return absl::InvalidArgumentError(absl::StrCat(
              "tt.call, ", module_.PlaceOf(operation), ": the function @",
              absl::CHexEscape(operation.attributes.symbol.substr(0, 80)), " does not exist"));
        }
        operation.attributes.callee = found->second;
      }
    }
    return absl::OkStatus();
  }

  Module module_;
  Lexer lexer_;
  LocationParser locations_;
  absl::flat_hash_map<std::string, int32_t> by_name_;
  int operations_ = 0;
};

}  // namespace

absl::StatusOr<Module> ParseWithoutVerification(absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("TTIR text: it has more than ", kMaxTextBytes, " bytes"));
  }
  return ModuleParser(text).Parse();
}

absl::StatusOr<Module> ParseTtir(absl::string_view text) {
  ASSIGN_OR_RETURN(Module module, ParseWithoutVerification(text));
  RETURN_IF_ERROR(Verify(module));
  return module;
}

}  // namespace tritonrl::ttir
