// The frame of every bench: common flags, warm-up and measured rounds, the peer's process, and one
// table of figures, which --csv also writes in the form of results/*.csv.
#ifndef TRITONRL_BENCH_HARNESS_HARNESS_H_
#define TRITONRL_BENCH_HARNESS_HARNESS_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

struct BenchOptions {
  std::string usage;  // of --help
  // Defaults of the flags of the same names; a bench without one refuses that flag. A `peer` of
  // "true" or "false" makes --peer a switch; any other default leaves its meaning to the bench.
  std::optional<int> warmup = std::nullopt, repeats = std::nullopt;
  std::optional<std::string> peer = std::nullopt, device = std::nullopt;
};

struct Figure {
  std::string metric;
  double value = 0;
  std::string unit = {};
  std::optional<double> peer = std::nullopt, bound = std::nullopt;  // in the same unit
  std::vector<double> rounds = {};  // of which `value` is the summary; for the spread
};

Figure Count(std::string metric, int64_t number, std::string unit = "");

// A script that a bench compares with. It runs under the Python of FindPythonEnv and prints its
// figures as JSON objects, one a line; its other lines are ignored.
struct PeerCommand {
  std::string script;                    // path from the workspace's root; may be empty
  std::vector<std::string> arguments;    // after the script
  std::vector<std::string> launcher;     // Python's own arguments, before the script
  std::string input;                     // of stdin
  std::vector<std::string> python_path;  // folders to import from
  std::vector<std::pair<std::string, std::string>> env;
  absl::Duration timeout = absl::Minutes(30);
};

// Runs the script to its end. Errors name the script and tell its exit code and the end of its
// stderr, or that it did not finish in time or printed no JSON object.
absl::StatusOr<std::vector<nlohmann::json>> RunPeer(const PeerCommand& command);

// A number of a peer's line, times `scale`; nothing where the line or the number is missing.
std::optional<double> PeerValue(const nlohmann::json& line, const char* key, double scale = 1);

// Where and how a bench runs, as columns of results/*.csv.
struct RunInfo {
  std::string machine, commit, date, command;
};

// The case's figure of one round, for example seconds. `measured` is false in warm-up rounds.
using BenchCase = std::function<absl::StatusOr<double>(bool measured)>;

class Bench {
 public:
  // `name`: the program's; the values of the flags as in `flags`. Benches get theirs from RunBench.
  Bench(std::string name, BenchOptions flags);

  int warmup() const { return flags_.warmup.value_or(0); }
  int repeats() const { return flags_.repeats.value_or(1); }
  const std::string& device() const { return *flags_.device; }
  // What --peer says; empty for "", "none", "no" and "false".
  std::string peer() const;

  // Of the figures added from now on: the subject, which is the title of a table and a column of
  // the CSV (at first the program's name), and the name of the peer.
  void set_subject(std::string subject) { subject_ = std::move(subject); }
  void set_peer_name(std::string name) { peer_name_ = std::move(name); }
  // This rank prints and writes nothing.
  void Mute() { muted_ = true; }

  // Calls each case warmup() times, then all cases in turn in each of repeats() rounds. Returns the
  // values of the measured rounds of each case, or the first error.
  absl::StatusOr<std::vector<std::vector<double>>> Measure(
      const std::vector<BenchCase>& cases) const;

  // setting: what is measured, with its sizes.
  void Add(const std::string& setting, std::vector<Figure> figures);

  // The figures that were added since the last call, on stdout. RunBench prints the rest.
  void PrintTable();
  std::string TakeTable();
  // All figures as lines of a CSV; ids are `prefix`-001 and on, from `first`.
  std::string CsvLines(const std::string& prefix, int first, const RunInfo& info) const;
  // Appends them to a file, which may be absent or empty, with the ids that follow its last one.
  // Error: the file begins with other columns. `write` false: checks the file only.
  absl::Status AppendCsv(const std::string& path, const RunInfo& info, bool write = true) const;

 private:
  struct Row {
    std::string subject, setting, peer_name;
    Figure figure;
  };

  const std::string name_;
  const BenchOptions flags_;
  std::string subject_, peer_name_;
  std::vector<Row> rows_;
  size_t printed_ = 0;
  bool muted_ = false;
};

// amount / seconds, for each.
std::vector<double> Rates(double amount, const std::vector<double>& seconds);
double Fastest(const std::vector<double>& seconds);
double Mean(const std::vector<double>& values);
// Seconds of one call.
double SecondsOf(const std::function<void()>& work);

// The whole of main(): reads the flags, runs the bench, prints its table and writes --csv, also
// where `run` fails after some figures. Ends the process: code 0, 1 for an error (one sentence on
// stderr), 2 for a flag that this bench does not have.
[[noreturn]] void RunBench(const BenchOptions& options, int argc, char** argv,
                           const std::function<absl::Status(Bench*)>& run);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_HARNESS_HARNESS_H_
