// Checks many cases and appends one line of JSON per case, in the order of the input, to a file
// from which a killed run can be continued.
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

namespace tritonrl {

// A line of the output: {"id", "line", "input_hash", "verdict"}, or, for a case that cannot be
// checked, {"id", "line", "task", "input_error"}.
struct BatchLine {
  std::string id_json = "null";  // the input's id as JSON; null: no usable id
  int64_t line = 0;              // line in the JSONL input; 0, and not written, for a folder
  std::string task;
  std::string input_error;  // why the case cannot be checked; empty: there is a verdict
  std::string input_hash;   // InputHash
  Verdict verdict;
};

std::string BatchLineToJson(const BatchLine& line);

// Parses BatchLineToJson's form. InvalidArgument for other text, including lines of older versions.
absl::StatusOr<BatchLine> ParseBatchLine(const std::string& text);

// "input_error", "correct", or the name of the verdict's reason.
std::string OutcomeLabel(const BatchLine& line);

// The name of the layer that failed, or "".
std::string FailedLayerLabel(const BatchLine& line);

// Hash of everything that a verdict depends on: both sources, or reference and response with its
// style, and Verifier::settings().
std::string InputHash(const Case& c, const std::string& settings);

// The key that links a case to its line of the output: the id, or, for an input error in a JSONL
// file, the input's line number.
std::string LineKey(const Case& c);
std::string LineKey(const BatchLine& line);

struct BatchTotals {
  int64_t correct = 0;
  int64_t failed = 0;
  int64_t infra_errors = 0;
  int64_t input_errors = 0;
  std::map<std::pair<std::string, std::string>, int64_t>
      by_layer;  // (FailedLayerLabel, OutcomeLabel)
  int64_t all() const { return correct + failed + infra_errors + input_errors; }
  void Count(const BatchLine& line);
};

// The output file of a batch.
class BatchFile {
 public:
  // Opens or creates the file, reads its lines and removes an incomplete last line. DataLoss names
  // a line that ParseBatchLine refuses; FailedPrecondition if another process writes the file.
  static absl::StatusOr<std::unique_ptr<BatchFile>> Open(const std::string& path);
  BatchFile(const BatchFile&) = delete;
  BatchFile& operator=(const BatchFile&) = delete;

  // Returns whether Open found the case's line. FailedPrecondition if that line belongs to other
  // sources or settings.
  absl::StatusOr<bool> Has(const Case& c, const std::string& input_hash) const;

  // Appends the line in one write; the kernel has it when this returns.
  absl::Status Append(const BatchLine& line);

  const BatchTotals& totals() const { return totals_; }  // of all lines in the file

 private:
  BatchFile() = default;
  absl::StatusOr<bool> Note(const std::string& path, const Line& text);

  std::unique_ptr<JsonlJournal> lines_;
  absl::flat_hash_map<uint64_t, uint64_t> hashes_;  // hash of LineKey -> hash of input_hash
  BatchTotals totals_;
};

struct BatchOptions {
  std::string in;     // JSONL file or folder (CaseReader)
  CaseOptions cases;  // how `in` is read
  std::string out;    // JSONL file (BatchFile); cases that have a line in it are not checked again
  // Maximum number of cases in memory: cases being checked, and finished cases that wait for an
  // earlier, slower one.
  int max_in_flight = 64;
  std::FILE* messages = stderr;  // for progress, and a sentence about each of the first 20 errors
  std::function<bool()> stop = [] { return false; };  // called often; true ends the batch early
};

struct BatchSummary {
  BatchTotals totals;        // of the whole output file
  int64_t cases = 0;         // in the input
  int64_t checked = 0;       // lines written by this run
  int64_t already_done = 0;  // cases of the input whose lines an earlier run wrote
  bool interrupted = false;
};

// Checks all cases of the input that have no line in the output. A case's line is written when the
// lines of all cases before it are written. After `stop` returns true, the verifier is closed and
// no further case starts; the running cases are finished and written, without cancelled ones
// between them, and the next run with the same arguments checks the missing cases. Errors are those
// of the files.
absl::StatusOr<BatchSummary> RunBatch(const BatchOptions& options, Verifier* verifier);

// Returns the totals, and the number of cases for each failed layer and outcome, as text.
std::string SummaryText(const BatchSummary& summary);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_BATCH_H_
