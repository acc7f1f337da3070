#ifndef TRITONRL_EVAL_MARKDOWN_H_
#define TRITONRL_EVAL_MARKDOWN_H_

#include <string>
#include <vector>

namespace tritonrl {

// A Markdown table. Columns have equal width; the first is left-aligned, the others right-aligned.
// A row shorter than the header is filled with empty cells; "|" in a cell is escaped.
std::string MarkdownTable(const std::vector<std::string>& header,
                          const std::vector<std::vector<std::string>>& rows);

// 0.7831 -> "78.3"
std::string Percent(double share);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_MARKDOWN_H_
