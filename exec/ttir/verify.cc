#include "exec/ttir/verify.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/dominance.h"
#include "exec/ttir/limits.h"
#include "exec/ttir/verify_rules.h"

namespace tritonrl::ttir {

namespace {

absl::Status ErrorAt(const Module& module, const Operation& operation, absl::string_view what) {
  std::string text =
      absl::StrCat(OpcodeName(operation.opcode), ", ", module.PlaceOf(operation), ": ", what);
  if (operation.text_line > 0)
    absl::StrAppend(&text, " (TTIR text line ", operation.text_line, ")");
  return absl::InvalidArgumentError(text);
}

bool IsBranch(Opcode opcode) { return opcode == Opcode::kBranch || opcode == Opcode::kCondBranch; }

class FunctionVerifier {
 public:
  FunctionVerifier(const Module& module, const Function& function)
      : module_(module), function_(function), definitions_(function.values.size()) {}

  absl::Status Verify() {
    bool fits = !function_.body.blocks.empty() &&
                function_.body.blocks[0].arguments.size() == function_.arguments.size();
    for (size_t i = 0; fits && i < function_.arguments.size(); ++i) {
      fits = function_.body.blocks[0].arguments[i] == function_.arguments[i].value;
    }
    if (!fits) return FunctionError("its first block does not take its arguments");
    return VerifyRegion(function_.body, nullptr);
  }

 private:
  struct Definition {
    int region = -1;  // number in the order of entering
    BlockId block = 0;
    bool done = false;  // the operation has been passed
  };
  // An open region, and where in it the walk is.
  struct Level {
    int region;
    BlockId block;
    Dominance dominance;
  };

  absl::Status FunctionError(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("@", absl::CHexEscape(function_.name.substr(0, 80)), ": ", what,
                     " (TTIR text line ", function_.text_line, ")"));
  }

  absl::Status Define(ValueId value, int region, size_t block, bool done) {
    if (value < 0 || static_cast<size_t>(value) >= definitions_.size()) {
      return FunctionError("a value's number is out of range");
    }
    if (definitions_[value].region >= 0) return FunctionError("a value is defined twice");
    definitions_[value] = {region, static_cast<BlockId>(block), done};
    return absl::OkStatus();
  }

  // The depth of recursion is that of the regions, which the parser bounds.
  absl::Status VerifyRegion(const Region& region, const Operation* parent) {
    if (levels_.size() > kMaxRegionDepth) return FunctionError("regions are nested too deeply");
    const int number = regions_++;
    for (size_t b = 0; b < region.blocks.size(); ++b) {
      RETURN_IF_ERROR(VerifyEnd(region.blocks[b], parent));
      for (const ValueId value : region.blocks[b].arguments) {
        RETURN_IF_ERROR(Define(value, number, b, /*done=*/true));
      }
      for (const Operation& operation : region.blocks[b].operations) {
        for (const ValueId value : operation.results) {
          RETURN_IF_ERROR(Define(value, number, b, /*done=*/false));
        }
        RETURN_IF_ERROR(VerifySuccessors(region, operation));
      }
    }
    levels_.push_back({number, 0, Dominance(region)});
    for (size_t b = 0; b < region.blocks.size(); ++b) {
      levels_.back().block = static_cast<BlockId>(b);
      for (const Operation& operation : region.blocks[b].operations) {
        RETURN_IF_ERROR(VerifyOperation(operation));
      }
    }
    levels_.pop_back();
    return absl::OkStatus();
  }

  // Each block has one terminator, at its end, and of the kind that fits the region.
  absl::Status VerifyEnd(const Block& block, const Operation* parent) {
    if (block.operations.empty()) return FunctionError("a block is empty");
    for (size_t i = 0; i + 1 < block.operations.size(); ++i) {
      if (IsTerminator(block.operations[i].opcode)) {
        return ErrorAt(module_, block.operations[i], "it is not the last operation of its block");
      }
    }
    const Operation& last = block.operations.back();
    // CheckRegion demands the terminators of the other operations' regions.
    const bool free = parent == nullptr || parent->opcode == Opcode::kMapElementwise;
    const Opcode wanted = parent == nullptr ? Opcode::kReturn : Opcode::kMapReturn;
    const bool fits = free ? last.opcode == wanted || IsBranch(last.opcode)
                           : IsTerminator(last.opcode) && !IsBranch(last.opcode);
    return fits ? absl::OkStatus() : ErrorAt(module_, last, "it cannot end this block");
  }

  absl::Status VerifySuccessors(const Region& region, const Operation& operation) {
    const size_t wanted = operation.opcode == Opcode::kBranch       ? 1
                          : operation.opcode == Opcode::kCondBranch ? 2
                                                                    : 0;
    if (operation.successors.size() != wanted) {
      return ErrorAt(module_, operation, "it has a wrong number of successors");
    }
    for (const Successor& successor : operation.successors) {
      if (successor.block <= 0 || static_cast<size_t>(successor.block) >= region.blocks.size()) {
        return ErrorAt(module_, operation, "it branches to no block, or to the first");
      }
      const Block& target = region.blocks[successor.block];
      const int64_t end = int64_t{successor.first} + successor.count;
      bool fits = successor.first >= 0 && successor.count >= 0 &&
                  end <= static_cast<int64_t>(operation.operands.size()) &&
                  target.arguments.size() == static_cast<size_t>(successor.count);
      for (int32_t i = 0; fits && i < successor.count; ++i) {
        fits = function_.TypeOf(operation.operands[successor.first + i]) ==
               function_.TypeOf(target.arguments[i]);
      }
      if (!fits) return ErrorAt(module_, operation, "its values do not fit the block's arguments");
    }
    return absl::OkStatus();
  }

  absl::Status VerifyUse(const Operation& operation, ValueId value) {
    if (value < 0 || static_cast<size_t>(value) >= definitions_.size()) {
      return ErrorAt(module_, operation, "an operand's number is out of range");
    }
    const Definition& definition = definitions_[value];
    for (const Level& level : levels_) {
      if (level.region != definition.region) continue;
      const bool before = level.block == definition.block
                              ? definition.done
                              : level.dominance.Dominates(definition.block, level.block);
      if (before) return absl::OkStatus();
    }
    return ErrorAt(module_, operation,
                   absl::StrCat("the definition of %", function_.values[value].name.substr(0, 40),
                                " does not dominate this use"));
  }

  absl::Status VerifyOperation(const Operation& operation) {
    for (const ValueId value : operation.operands) RETURN_IF_ERROR(VerifyUse(operation, value));
    if (const std::string violation = FindViolation(module_, function_, operation);
        !violation.empty()) {
      return ErrorAt(module_, operation, violation);
    }
    for (const Region& region : operation.regions) {
      RETURN_IF_ERROR(VerifyRegion(region, &operation));
    }
    for (const ValueId value : operation.results) definitions_[value].done = true;
    return absl::OkStatus();
  }

  const Module& module_;
  const Function& function_;
  std::vector<Definition> definitions_;
  std::vector<Level> levels_;
  int regions_ = 0;
};

// Finds recursive calls, and chains of calls that are too long.
class CallVerifier {
 public:
  explicit CallVerifier(const Module& module)
      : module_(module), state_(module.functions.size(), kNew) {}

  absl::Status Verify() {
    for (size_t i = 0; i < module_.functions.size(); ++i) RETURN_IF_ERROR(Visit(i, 0));
    return absl::OkStatus();
  }

 private:
  enum State : uint8_t { kNew, kOpen, kDone };

  absl::Status Visit(size_t function, int depth) {
    if (state_[function] == kDone) return absl::OkStatus();
    if (depth > kMaxCallDepth) {
      return absl::InvalidArgumentError("the module's functions call each other too deeply");
    }
    state_[function] = kOpen;
    RETURN_IF_ERROR(VisitRegion(module_.functions[function].body, depth));
    state_[function] = kDone;
    return absl::OkStatus();
  }

  absl::Status VisitRegion(const Region& region, int depth) {
    for (const Block& block : region.blocks) {
      for (const Operation& operation : block.operations) {
        for (const Region& inner : operation.regions) RETURN_IF_ERROR(VisitRegion(inner, depth));
        if (operation.opcode != Opcode::kCall) continue;
        const auto callee = static_cast<size_t>(operation.attributes.callee);
        if (state_[callee] == kOpen) {
          return ErrorAt(
              module_, operation,
              absl::StrCat("@", absl::CHexEscape(module_.functions[callee].name.substr(0, 80)),
                           " calls itself, directly or through others"));
        }
        RETURN_IF_ERROR(Visit(callee, depth + 1));
      }
    }
    return absl::OkStatus();
  }

  const Module& module_;
  std::vector<State> state_;
};

}  // namespace

absl::Status Verify(const Module& module) {
  for (const Function& function : module.functions) {
    RETURN_IF_ERROR(FunctionVerifier(module, function).Verify());
  }
  return CallVerifier(module).Verify();
}

}  // namespace tritonrl::ttir
