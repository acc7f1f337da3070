// Reads pairs of reference and candidate from a JSONL file or a folder, one at a time.
#ifndef TRITONRL_VERIFY_CLI_CASE_READER_H_
#define TRITONRL_VERIFY_CLI_CASE_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

struct Case {
  std::string id;                // for people
  std::string id_json = "null";  // as it was given: a JSON string or integer; null: none usable
  int64_t line = 0;              // 1-based line of the JSONL file; 0 in a folder
  std::string where;             // "cases.jsonl, line 12", or the candidate's file
  std::string task;              // the reference's name in messages
  std::string reference_source;
  std::string candidate_source;
  std::string error;  // not empty: cannot be checked, and why (one sentence without the place)
};

// One of the two forms of input:
//
// - a JSONL file: each line an object with `id` (string or integer, unique), `reference_source`
//   and `candidate_source`; optionally `task`, a name for messages. Other members are ignored,
//   empty lines passed over.
// - a folder. A file NAME_reference.py is the reference of every other file NAME_*.py beside it
//   (the longest NAME that fits), id "NAME_x"; in a sub-folder, reference.py is the reference of
//   every other *.py file there, id "FOLDER/x". Sorted by id.
//
// A broken line or file, or an id that was there before, comes back as a case with `error` set.
class CaseReader {
 public:
  virtual ~CaseReader() = default;

  // NotFound, PermissionDenied, FailedPrecondition (neither a plain file nor a folder), or
  // InvalidArgument for a folder without a case.
  static absl::StatusOr<std::unique_ptr<CaseReader>> Open(const std::string& path);

  // The next case; nothing at the end. An error means that reading itself failed.
  virtual absl::StatusOr<std::optional<Case>> Next() = 0;

  // Cases in all, broken ones too.
  virtual int64_t total() const = 0;
};

// The largest line and the largest file that are read, in bytes.
inline constexpr int64_t kMaxCaseBytes = 4 << 20;

// One line of a JSONL file, without its place: fills ids, task and sources, or `error`.
Case ParseCase(const std::string& line);

// InvalidArgument for a program file copied from a model's answer with its Markdown fences: names
// the file, the line and what to do.
absl::Status CheckNoFence(const std::string& path, const std::string& source);

// Reader of a folder: lists names at once, reads files as Next reaches them.
absl::StatusOr<std::unique_ptr<CaseReader>> OpenCaseFolder(const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_CASE_READER_H_
