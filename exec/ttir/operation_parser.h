// Parses functions: operations in their pretty and generic forms, blocks and regions.
#ifndef TRITONRL_EXEC_TTIR_OPERATION_PARSER_H_
#define TRITONRL_EXEC_TTIR_OPERATION_PARSER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/ttir/attribute_parser.h"
#include "exec/ttir/lexer.h"
#include "exec/ttir/operation.h"

namespace tritonrl::ttir {

// "not executable: tt.xyz, line 12 of kernel.py" for the operation at the lexer's token.
absl::Status NotExecutable(const Lexer& lexer, absl::string_view name, LocationParser& locations,
                           const LocationTable& table);

// Parses the body of one function. The source is divided by subject: operation_parser.cc (values,
// generic form), region_parser.cc (blocks and regions), pretty_parser.cc (forms in the table of
// opcodes.h) and structured_parser.cc (forms of their own).
class OperationParser {
 public:
  // `operations` counts those of the whole module.
  OperationParser(Lexer* lexer, LocationParser* locations, Module* module, Function* function,
                  int* operations)
      : lexer_(*lexer),
        locations_(*locations),
        module_(*module),
        function_(*function),
        operations_(*operations) {}

  // Makes a value with this printed name ("%x") that the current region sees.
  absl::StatusOr<ValueId> Define(absl::string_view printed, const Type& type);

  // `{ ... }` with the values of `arguments` in its first block.
  absl::Status ParseRegion(std::vector<ValueId> arguments, Region* region);

 private:
  // A `%name` in the text.
  struct Use {
    ValueId value;
    size_t begin;
  };
  // Labels of the blocks of a region: numbers in order of their first mention.
  struct Labels {
    absl::flat_hash_map<std::string, int> numbers;
    std::vector<BlockId> blocks;  // by number; -1 until the block begins
  };

  // Values and scopes.
  absl::StatusOr<Use> ParseUse();
  absl::StatusOr<std::vector<Use>> ParseUses();  // `%a, %b`, maybe none
  absl::Status CheckType(const Use& use, const Type& type);
  absl::Status CheckTypes(const std::vector<Use>& uses, const std::vector<Type>& types);
  absl::Status AddOperand(Operation& operation, const Use& use);
  absl::Status AddResults(Operation& operation, const std::vector<Type>& types);

  // Blocks and regions.
  absl::Status ParseBlocks(Region* region, Labels* labels);
  absl::Status ParseLabel(Region* region, Labels* labels);
  absl::Status ResolveLabels(Region* region, const Labels& labels);
  absl::StatusOr<std::vector<ValueId>> ParseBlockArguments();
  int NumberOf(absl::string_view label);
  void AddImplicitYield(Region& region, LocationId location);

  // Operations.
  absl::StatusOr<Operation> ParseOperation();
  absl::Status ParseResultNames();
  absl::Status ParseGeneric(Operation& operation);
  absl::Status ParseGenericSuccessors(Operation& operation);
  absl::Status SetSegments(Operation& operation, const std::vector<int64_t>& segments);
  absl::Status ParseOptionalAttributes(Operation& operation,
                                       std::vector<int64_t>* segments = nullptr);

  // The pretty form by the table's syntax.
  absl::Status ParsePretty(Operation& operation);
  absl::Status ParseElement(absl::string_view element, Operation& operation);
  absl::Status ParseOperandElement(absl::string_view element, Operation& operation);
  absl::Status ParseOptionalElement(absl::string_view element, Operation& operation);
  absl::Status ParseTypeElement(absl::string_view element, Operation& operation);
  absl::Status ParseOperandTypes(Operation& operation, size_t first);
  absl::Status ParseFunctional(Operation& operation);
  absl::Status ParseFlagWords(absl::string_view name, Operation& operation);
  absl::Status ParseCacheWords(Operation& operation);
  absl::Status ParseWord(absl::string_view field, Operation& operation);
  absl::Status CheckOperand(const Operation& operation, size_t index, const Type& type);

  // Forms of their own.
  absl::Status ParseConstantOperation(Operation& operation);
  absl::Status ParseFor(Operation& operation);
  absl::Status ParseIf(Operation& operation);
  absl::Status ParseWhile(Operation& operation);
  absl::Status ParseInitialValues(Operation& operation, std::vector<std::string>* names);
  absl::Status ParseBranch(Operation& operation);
  absl::Status ParseSuccessor(Operation& operation);
  absl::Status ParseScaledDot(Operation& operation);

  Lexer& lexer_;
  LocationParser& locations_;
  Module& module_;
  Function& function_;
  int& operations_;

  absl::flat_hash_map<std::string, ValueId> scope_;
  // Names that each open region hides or adds, with the values they had.
  std::vector<std::vector<std::pair<std::string, ValueId>>> undo_ = {{}};
  std::vector<Labels*> labels_;  // of the open regions
  int depth_ = 0;
  // Of the operation that is being parsed: the names of its results, and where its operands are.
  std::vector<std::string> result_names_;
  std::vector<size_t> operand_begins_;
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_OPERATION_PARSER_H_
