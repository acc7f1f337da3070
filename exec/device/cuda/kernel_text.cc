#include "exec/device/cuda/kernel_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tritonrl::device {
namespace {

struct Prints {
  std::set<int32_t> lines;
  std::map<int32_t, int> operations_of_line;
};

void FindPrints(const ttir::Region& region, Prints& prints) {
  for (const ttir::Block& block : region.blocks) {
    for (const ttir::Operation& operation : block.operations) {
      ++prints.operations_of_line[operation.text_line];
      if (operation.opcode == ttir::Opcode::kPrint) prints.lines.insert(operation.text_line);
      for (const ttir::Region& inner : operation.regions) FindPrints(inner, prints);
    }
  }
}

// The place behind the text literal that begins at `at`.
size_t SkipLiteral(absl::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

// The place behind the parenthesis that closes the one at `at`.
size_t SkipParentheses(absl::string_view text, size_t at) {
  int depth = 0;
  while (at < text.size()) {
    if (text[at] == '"') {
      at = SkipLiteral(text, at);
      continue;
    }
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    ++at;
    if (depth == 0) break;
  }
  return at;
}

}  // namespace

std::string WithoutLocations(absl::string_view text) {
  constexpr absl::string_view kLocation = " loc(";
  std::string result;
  result.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    const bool line_begins = at == 0 || text[at - 1] == '\n';
    if (line_begins && absl::StartsWith(text.substr(at), "#loc")) {
      at = text.find('\n', at);  // an alias
      if (at == absl::string_view::npos) break;
    } else if (text[at] == '"') {
      const size_t end = std::min(SkipLiteral(text, at), text.size());
      result.append(text.data() + at, end - at);
      at = end;
    } else if (absl::StartsWith(text.substr(at), kLocation)) {
      at = SkipParentheses(text, at + kLocation.size() - 1);
    } else {
      result.push_back(text[at++]);
    }
  }
  return result;
}

absl::StatusOr<std::string> WithoutPrints(absl::string_view text, const ttir::Module& module) {
  Prints prints;
  for (const ttir::Function& function : module.functions) FindPrints(function.body, prints);
  if (prints.lines.empty()) return std::string(text);
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (const int32_t line : prints.lines) {
    if (prints.operations_of_line[line] != 1) {
      return absl::UnimplementedError("a line of the Triton IR has several operations");
    }
    lines[static_cast<size_t>(line) - 1] = "";
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace tritonrl::device
