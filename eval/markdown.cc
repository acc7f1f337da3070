#include "eval/markdown.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tritonrl {
namespace {

std::string Row(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string line = "|";
  for (size_t c = 0; c < widths.size(); ++c) {
    const std::string cell = c < cells.size() ? cells[c] : "";
    const std::string padding(widths[c] - std::min(widths[c], cell.size()), ' ');
    line += " ";
    line += c == 0 ? cell + padding : padding + cell;
    line += " |";
  }
  return line + "\n";
}

}  // namespace

std::string MarkdownTable(const std::vector<std::string>& header,
                          const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> all = {header};
  all.insert(all.end(), rows.begin(), rows.end());
  std::vector<size_t> widths(header.size(), 3);
  for (std::vector<std::string>& row : all) {
    row.resize(header.size());
    for (size_t c = 0; c < row.size(); ++c) {
      row[c] = absl::StrReplaceAll(row[c], {{"|", "\\|"}, {"\n", " "}});
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string text = Row(all[0], widths) + "|";
  for (size_t c = 0; c < widths.size(); ++c) {
    text += c == 0 ? ":" + std::string(widths[c] + 1, '-') + "|"
                   : std::string(widths[c] + 1, '-') + ":|";
  }
  text += "\n";
  for (size_t r = 1; r < all.size(); ++r) text += Row(all[r], widths);
  return text;
}

std::string Percent(double share) { return absl::StrFormat("%.1f", 100 * share); }

}  // namespace tritonrl
