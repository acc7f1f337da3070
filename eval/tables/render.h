// Tables as text. All three need a table that CheckTable accepts, and give the same bytes for the
// same table on every machine.
#ifndef TRITONRL_EVAL_TABLES_RENDER_H_
#define TRITONRL_EVAL_TABLES_RENDER_H_

#include <string>

#include "eval/tables/table.h"

namespace tritonrl {

// A page: title, caption, a table for each level and k, notes (layout.h).
std::string RenderMarkdown(const TableData& table);

// A table* environment with the same contents; its document needs the packages adjustbox, which
// narrows wide tables to the page, and booktabs.
std::string RenderLatex(const TableData& table);

// A line for each cell (RFC 4180), with the key of eval/published/paper.csv: table, row (labels
// joined by ", "), level, k, metric; then variant, value, low, high, published (shares in %, as
// there), modelled (yes, no), missing, and the stamp. Empty: there is none.
std::string RenderCsv(const TableData& table);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_TABLES_RENDER_H_
