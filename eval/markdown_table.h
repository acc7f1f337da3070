// Tables as Markdown.
#ifndef TRITONRL_EVAL_MARKDOWN_TABLE_H_
#define TRITONRL_EVAL_MARKDOWN_TABLE_H_

#include <string>
#include <vector>

namespace tritonrl {

// Columns are padded to one width, the first is left-aligned and the others right-aligned. A row
// that is shorter than the header is filled with empty cells; "|" in a cell is escaped.
std::string MarkdownTable(const std::vector<std::string>& header,
                          const std::vector<std::vector<std::string>>& rows);

// 0.7831 -> "78.3"
std::string Percent(double share);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_MARKDOWN_TABLE_H_
