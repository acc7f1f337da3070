// What the renderers for people have in common: a table as plain texts, without any markup.
#ifndef TRITONRL_EVAL_TABLES_LAYOUT_H_
#define TRITONRL_EVAL_TABLES_LAYOUT_H_

#include <string>
#include <vector>

#include "eval/tables/table.h"

namespace tritonrl {

// The columns of one level and one k. Each row has as many texts as the header.
struct TableBlock {
  std::string heading;  // "Level 1, k = 10"
  size_t labels = 0;    // leading columns that are labels
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

struct TableLayout {
  std::vector<TableBlock> blocks;
  std::vector<std::string> notes;
};

// Lays out a table that CheckTable accepts. Blocks are in the order of their first columns.
//  - A published value has a column of its own behind that of `ours`; columns without any
//    published value have none.
//  - A modelled value says so in its cell, and a note says what that means.
//  - A missing value refers to a numbered note with its reason.
//  - The last column refers to the stamp of the row's values. If they have several, each value
//    refers to its own.
TableLayout LayOut(const TableData& table);

// The stamp in one line: "commit 1a2b, configuration 3c4d, without a GPU, seeds 0 1, torch 2.4".
std::string StampText(const Stamp& stamp);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_TABLES_LAYOUT_H_
