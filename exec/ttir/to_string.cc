#include <string>

#include "absl/strings/str_cat.h"
#include "exec/ttir/operation.h"

namespace tritonrl::ttir {

namespace {

std::string ValueText(const Function& function, ValueId value) {
  return absl::StrCat("%", function.values[value].name, ": ", function.TypeOf(value).ToString());
}

void AppendRegion(const Function& function, const Region& region, int depth, std::string* text) {
  for (size_t b = 0; b < region.blocks.size(); ++b) {
    const Block& block = region.blocks[b];
    absl::StrAppend(text, std::string(2 * depth, ' '), "^", b, "(");
    for (const ValueId value : block.arguments) {
      absl::StrAppend(text, ValueText(function, value), ";");
    }
    absl::StrAppend(text, ")\n");
    for (const Operation& operation : block.operations) {
      absl::StrAppend(text, std::string(2 * depth + 2, ' '), ToString(function, operation), "\n");
      for (const Region& inner : operation.regions) {
        AppendRegion(function, inner, depth + 2, text);
      }
    }
  }
}

}  // namespace

std::string ToString(const Function& function, const Operation& operation) {
  std::string text;
  for (const ValueId value : operation.results) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", ValueText(function, value));
  }
  absl::StrAppend(&text, text.empty() ? "" : " = ", OpcodeName(operation.opcode));
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? " %" : ", %", function.values[operation.operands[i]].name);
  }
  for (const Successor& successor : operation.successors) {
    absl::StrAppend(&text, " ^", successor.block);
  }
  return text;
}

std::string ToString(const Module& module) {
  std::string text;
  for (const Function& function : module.functions) {
    absl::StrAppend(&text, "@", function.name, "\n");
    AppendRegion(function, function.body, 1, &text);
  }
  return text;
}

}  // namespace tritonrl::ttir
