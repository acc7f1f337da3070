// Regions: their blocks, the blocks' labels and arguments.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/limits.h"
#include "exec/ttir/operation_parser.h"
#include "exec/ttir/type_parser.h"

namespace tritonrl::ttir {

int OperationParser::NumberOf(absl::string_view label) {
  Labels& labels = *labels_.back();
  const auto [entry, is_new] =
      labels.numbers.try_emplace(label, static_cast<int>(labels.blocks.size()));
  if (is_new) labels.blocks.push_back(-1);
  return entry->second;
}

absl::Status OperationParser::ParseRegion(std::vector<ValueId> arguments, Region* region) {
  if (++depth_ > kMaxRegionDepth) return lexer_.Error("regions are nested too deeply");
  RETURN_IF_ERROR(lexer_.Expect("{"));
  Labels labels;
  labels_.push_back(&labels);
  undo_.emplace_back();
  if (!arguments.empty()) {
    region->blocks.emplace_back();
    region->blocks.back().arguments = std::move(arguments);
  }
  RETURN_IF_ERROR(ParseBlocks(region, &labels));
  RETURN_IF_ERROR(lexer_.Expect("}"));
  RETURN_IF_ERROR(ResolveLabels(region, labels));
  for (const auto& [name, value] : undo_.back()) scope_.erase(name);
  undo_.pop_back();
  labels_.pop_back();
  --depth_;
  return absl::OkStatus();
}

absl::Status OperationParser::ParseBlocks(Region* region, Labels* labels) {
  while (!lexer_.Is("}")) {
    if (lexer_.token().kind == TokenKind::kBlock) {
      RETURN_IF_ERROR(ParseLabel(region, labels));
      continue;
    }
    if (region->blocks.empty()) region->blocks.emplace_back();
    Block& block = region->blocks.back();
    if (!block.operations.empty() && IsTerminator(block.operations.back().opcode)) {
      return lexer_.Error("a block goes on behind its terminator");
    }
    ASSIGN_OR_RETURN(Operation operation, ParseOperation());
    block.operations.push_back(std::move(operation));
  }
  return absl::OkStatus();
}

absl::Status OperationParser::ParseLabel(Region* region, Labels* labels) {
  if (region->blocks.size() >= kMaxBlocks) return lexer_.Error("a region has too many blocks");
  if (region->blocks.size() == 1 && region->blocks[0].operations.empty()) {
    return lexer_.Error("a block is empty");
  }
  const int number = NumberOf(lexer_.token().text);
  if (labels->blocks[number] >= 0) return lexer_.Error("a block's label is defined twice");
  labels->blocks[number] = static_cast<BlockId>(region->blocks.size());
  lexer_.Advance();
  Block block;
  ASSIGN_OR_RETURN(block.arguments, ParseBlockArguments());
  RETURN_IF_ERROR(lexer_.Expect(":"));
  region->blocks.push_back(std::move(block));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueId>> OperationParser::ParseBlockArguments() {
  std::vector<ValueId> arguments;
  if (!lexer_.Accept("(")) return arguments;
  do {
    const Token name = lexer_.token();
    if (name.kind != TokenKind::kValue) return lexer_.Expected("a block's argument");
    lexer_.Advance();
    RETURN_IF_ERROR(lexer_.Expect(":"));
    ASSIGN_OR_RETURN(const Type type, ParseType(lexer_));
    RETURN_IF_ERROR(locations_.ParseOptional(lexer_).status());
    ASSIGN_OR_RETURN(const ValueId value, Define(name.text, type));
    arguments.push_back(value);
  } while (lexer_.Accept(","));
  RETURN_IF_ERROR(lexer_.Expect(")"));
  return arguments;
}

absl::Status OperationParser::ResolveLabels(Region* region, const Labels& labels) {
  for (const auto& [name, number] : labels.numbers) {
    if (labels.blocks[number] >= 0) continue;
    return lexer_.Error(absl::StrCat("the block ", name.substr(0, 40), " is not defined"));
  }
  for (Block& block : region->blocks) {
    if (block.operations.empty()) continue;
    for (Successor& successor : block.operations.back().successors) {
      successor.block = labels.blocks[successor.block];
    }
  }
  return absl::OkStatus();
}

void OperationParser::AddImplicitYield(Region& region, LocationId location) {
  if (region.blocks.empty()) region.blocks.emplace_back();
  Block& block = region.blocks.back();
  if (!block.operations.empty() && IsTerminator(block.operations.back().opcode)) return;
  Operation yield;
  yield.opcode = Opcode::kYield;
  yield.location = location;
  block.operations.push_back(std::move(yield));
}

}  // namespace tritonrl::ttir
