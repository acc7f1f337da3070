// The frame of every bench: common flags, warm-up and measured rounds, the peer's process, and one
// table of figures, which --csv also writes in the form of results/*.csv.
#ifndef TRITONRL_BENCH_HARNESS_HARNESS_H_
#define TRITONRL_BENCH_HARNESS_HARNESS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/figure_table.h"
#include "bench/harness/peer.h"

namespace tritonrl {

struct BenchOptions {
  std::string usage;  // first line of --help
  // Defaults of the flags of the same names. The bench refuses a flag whose default is unset. A
  // `peer` of "true" or "false" makes --peer a switch; the bench interprets any other value.
  std::optional<int> warmup = std::nullopt, repeats = std::nullopt;
  std::optional<std::string> peer = std::nullopt, device = std::nullopt;
};

// Runs one round of a case and returns its figure, for example seconds. `measured` is false in
// warm-up rounds.
using BenchCase = std::function<absl::StatusOr<double>(bool measured)>;

class Bench {
 public:
  // `name` is the program's name; `flags` holds the flags' values. RunBench makes the object for a
  // bench; tests make their own.
  Bench(std::string name, BenchOptions flags);

  int warmup() const { return flags_.warmup.value_or(0); }
  int repeats() const { return flags_.repeats.value_or(1); }
  const std::string& device() const { return *flags_.device; }
  // The value of --peer; empty for "", "none", "no" and "false".
  std::string peer() const;

  // Set the subject and the peer's name of figures added later. The subject is the title of a table
  // and a column of the CSV; its default is the program's name.
  void set_subject(std::string subject) { subject_ = std::move(subject); }
  void set_peer_name(std::string name) { peer_name_ = std::move(name); }
  // Suppresses this rank's table and CSV.
  void Mute() { muted_ = true; }

  // Calls each case warmup() times, then runs repeats() rounds, each of which calls every case
  // once. Returns the measured values by case and round, or the first error.
  absl::StatusOr<std::vector<std::vector<double>>> Measure(
      const std::vector<BenchCase>& cases) const;

  // Adds the figures of one setting, for example "decode, 64 sequences".
  void Add(const std::string& setting, std::vector<Figure> figures);

  // Prints the figures added since the last call to stdout. RunBench calls it once more at the end.
  void PrintTable();
  // As in FigureTable; a muted rank has no table and only checks the file.
  std::string TakeTable() { return muted_ ? "" : figures_.TakeTable(); }
  std::string CsvLines(const std::string& prefix, int first, const RunInfo& info) const {
    return figures_.CsvLines(prefix, first, info);
  }
  absl::Status AppendCsv(const std::string& path, const RunInfo& info, bool write = true) const {
    return figures_.AppendCsv(path, info, write && !muted_);
  }

 private:
  const std::string name_;
  const BenchOptions flags_;
  std::string subject_, peer_name_;
  FigureTable figures_;
  bool muted_ = false;
};

// Divides `amount` by each of `seconds`.
std::vector<double> Rates(double amount, const std::vector<double>& seconds);
double Fastest(const std::vector<double>& seconds);
double Mean(const std::vector<double>& values);
// Measures the wall time of one call, in seconds.
double SecondsOf(const std::function<void()>& work);

// Implements main() of a bench: reads the flags, calls `run`, prints the table and writes --csv. If
// `run` fails, the figures added so far are still printed and written. Exit codes: 0; 1 for an
// error (one sentence on stderr); 2 for a flag that this bench does not have.
[[noreturn]] void RunBench(const BenchOptions& options, int argc, char** argv,
                           const std::function<absl::Status(Bench*)>& run);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_HARNESS_HARNESS_H_
