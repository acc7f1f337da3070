#ifndef TRITONRL_VERIFY_CLI_BATCH_H_
#define TRITONRL_VERIFY_CLI_BATCH_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/jsonl.h"
#include "verify/cli/case_reader.h"
#include "verify/pipeline/verifier.h"
#include "verify/verdict/verdict.pb.h"

// Checks many cases and writes a line of JSON for each, in the order of the input, appended so that
// a killed run can go on.

namespace tritonrl {

// A line of the output: {"id", "line", "input_hash", "verdict"}, or of a case that cannot be
// checked {"id", "line", "task", "input_error"}.
struct BatchLine {
  std::string id_json = "null";  // as it was given; null: none usable
  int64_t line = 0;              // of the JSONL input; 0, and left out, for a folder
  std::string task;
  std::string input_error;  // why the case cannot be checked; empty: there is a verdict
  std::string input_hash;   // of sources and settings
  Verdict verdict;
};

std::string BatchLineToJson(const BatchLine& line);

// InvalidArgument for anything else, also for a line of an older version.
absl::StatusOr<BatchLine> ParseBatchLine(const std::string& text);

// "input_error", "correct", or the name of the verdict's reason.
std::string OutcomeLabel(const BatchLine& line);

// The name of the layer that failed, or "".
std::string FailedLayerLabel(const BatchLine& line);

// Hash of what a verdict depends on: both sources and Verifier::settings().
std::string InputHash(const Case& c, const std::string& settings);

// Names a line of the output: the id, or for an input error the input's line.
std::string LineKey(const Case& c);
std::string LineKey(const BatchLine& line);

struct BatchTotals {
  int64_t correct = 0;
  int64_t failed = 0;
  int64_t inconclusive = 0;
  int64_t input_errors = 0;
  std::map<std::pair<std::string, std::string>, int64_t>
      by_layer;  // (FailedLayerLabel, OutcomeLabel)
  int64_t all() const { return correct + failed + inconclusive + input_errors; }
  void Count(const BatchLine& line);
};

class BatchFile {
 public:
  // Opens or creates the file, reads what is there and cuts off a torn last line. DataLoss names
  // a line that is none of ours; FailedPrecondition when another process is writing the file.
  static absl::StatusOr<std::unique_ptr<BatchFile>> Open(const std::string& path);
  BatchFile(const BatchFile&) = delete;
  BatchFile& operator=(const BatchFile&) = delete;

  // True when the case's line is there. FailedPrecondition when it is there for other sources or
  // settings.
  absl::StatusOr<bool> Has(const Case& c, const std::string& input_hash) const;

  // Writes the line in one go; it has left this process when this returns.
  absl::Status Append(const BatchLine& line);

  const BatchTotals& totals() const { return totals_; }  // of what is in the file

 private:
  BatchFile() = default;
  absl::StatusOr<bool> Note(const std::string& path, const Line& text);

  std::unique_ptr<JsonlJournal> lines_;
  absl::flat_hash_map<uint64_t, uint64_t> hashes_;  // hash of LineKey -> hash of input_hash
  BatchTotals totals_;
};

struct BatchOptions {
  std::string in;   // JSONL file or folder, see cases.h
  std::string out;  // JSONL file, see batch_file.h; what it already holds is not checked again
  // Cases in memory at the same time: being checked, or waiting for a slower one before them.
  int max_in_flight = 64;
  std::FILE* messages = stderr;  // progress, and a sentence for each broken line
  std::function<bool()> stop = [] { return false; };  // asked often; true ends the batch early
};

struct BatchSummary {
  BatchTotals totals;        // of the whole output file
  int64_t cases = 0;         // in the input
  int64_t checked = 0;       // lines written by this run
  int64_t already_done = 0;  // lines of this input that an earlier run had written
  bool interrupted = false;
};

// The verdict of a case is written as soon as those of all cases before it are. When `stop` says
// so, no case is begun any more; those that run are finished and written (with gaps where earlier
// ones had not begun), and the next run with the same arguments checks what is missing.
// Closes the verifier in that case. Errors are those of the files.
absl::StatusOr<BatchSummary> RunBatch(const BatchOptions& options, Verifier* verifier);

// The summary as a few lines of text: how many of each layer and outcome.
std::string SummaryText(const BatchSummary& summary);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_BATCH_H_
