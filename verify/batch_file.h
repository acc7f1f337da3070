// The output of a batch: one JSON object a line, appended so that a killed run can go on.
#ifndef TRITONRL_VERIFY_BATCH_FILE_H_
#define TRITONRL_VERIFY_BATCH_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/line_file.h"
#include "nlohmann/json.hpp"
#include "verify/cases.h"
#include "verify/verdict.pb.h"

namespace tritonrl {

// The line of a case that was checked: VerdictJson's members with the id as it was given, then
// "line" (JSONL input only), "input_hash" (of sources and settings) and "worker" (its figures).
std::string VerdictLine(const Case& c, const Verdict& verdict, const std::string& input_hash);

// The line of a case that could not be: id (null when there is no usable one), nulls for what is
// not known, outcome "input_error" and the reason.
std::string InputErrorLine(const Case& c);

// Hash of what a verdict depends on: both sources and Verifier::settings().
std::string InputHash(const Case& c, const std::string& settings);

// Names a line of the output: the id, or for an input error the input's line.
std::string LineKey(const Case& c);
std::string LineKey(const nlohmann::ordered_json& line);

struct BatchTotals {
  int64_t correct = 0;
  int64_t failed = 0;
  int64_t inconclusive = 0;
  int64_t input_errors = 0;
  std::map<std::pair<std::string, std::string>, int64_t> by_layer;  // (failed layer, outcome)
  int64_t all() const { return correct + failed + inconclusive + input_errors; }
  void Count(const nlohmann::ordered_json& line);
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
  absl::Status Append(const std::string& line);

  const BatchTotals& totals() const { return totals_; }  // of what is in the file

 private:
  BatchFile() = default;
  absl::Status Note(const std::string& path, const Line& line);

  std::unique_ptr<LineFile> lines_;
  absl::flat_hash_map<uint64_t, uint64_t> hashes_;  // hash of LineKey -> hash of input_hash
  BatchTotals totals_;
};

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_BATCH_FILE_H_
