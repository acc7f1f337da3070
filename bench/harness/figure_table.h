// The figures of a bench, as tables for people and as lines of results/*.csv.
#ifndef TRITONRL_BENCH_HARNESS_FIGURE_TABLE_H_
#define TRITONRL_BENCH_HARNESS_FIGURE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tritonrl {

struct Figure {
  std::string metric;
  double value = 0;
  std::string unit = {};
  std::optional<double> peer = std::nullopt, bound = std::nullopt;  // in the same unit
  std::vector<double> rounds = {};  // values of the single rounds, for the spread
};

// A figure for an integer count.
Figure Count(std::string metric, int64_t number, std::string unit = "");

// The columns of results/*.csv that describe a run.
struct RunInfo {
  std::string machine, commit, date, command;
};

class FigureTable {
 public:
  // Adds the figures of one setting, for example "decode, 64 sequences", of a subject, the title of
  // a table. `peer` is the name of what figures with a peer's value are compared with.
  void Add(const std::string& subject, const std::string& setting, const std::string& peer,
           std::vector<Figure> figures);

  // The tables of the figures added since the last call.
  std::string TakeTable();
  // Returns all figures as CSV lines with the ids `prefix`-001, ..., numbered from `first`.
  std::string CsvLines(const std::string& prefix, int first, const RunInfo& info) const;
  // Appends CsvLines to the file, which may be absent or empty, numbered from its last id on. Fails
  // if the file has other columns. With `write` false it only checks the file.
  absl::Status AppendCsv(const std::string& path, const RunInfo& info, bool write = true) const;

 private:
  struct Row {
    std::string subject, setting, peer_name;
    Figure figure;
  };

  std::vector<Row> rows_;
  size_t printed_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_HARNESS_FIGURE_TABLE_H_
