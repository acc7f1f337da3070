// The published values of the paper's tables (eval/published/paper.csv).
#ifndef TRITONRL_EVAL_TABLES_PUBLISHED_H_
#define TRITONRL_EVAL_TABLES_PUBLISHED_H_

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "eval/tables/table.h"

namespace tritonrl {

class Published {
 public:
  // Reads a file in the form of paper.csv; Runfile("eval/published/paper.csv") is its place.
  // InvalidArgument names the line with a wrong number of cells, an unknown metric, a number that
  // cannot be read or is no percentage, or a cell that an earlier line has.
  static absl::StatusOr<Published> Load(const std::string& csv);

  // The value in the metric's unit (78.0 % is 0.78), or nullopt if the paper has none.
  std::optional<double> Find(const std::string& table, const std::string& row, int level,
                             const std::string& metric, int k) const;

  // The labels of a table's rows, sorted; empty if there is no such table.
  std::vector<std::string> Rows(const std::string& table) const;

  // Sets Cell::published of every cell whose column has no variant. rows[i] is the label in
  // paper.csv of the table's row i, or "" if the paper has no such row. NotFound lists the labels
  // of table->name if one is unknown; InvalidArgument if the numbers of rows or cells differ.
  absl::Status Fill(const std::vector<std::string>& rows, TableData* table) const;

  // Number of values.
  int size() const { return values_.size(); }

 private:
  // table, row, level, k, metric
  using Key = std::tuple<std::string, std::string, int, int, std::string>;

  absl::Status AddLine(const std::vector<std::string>& cells);

  std::map<Key, double> values_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_TABLES_PUBLISHED_H_
