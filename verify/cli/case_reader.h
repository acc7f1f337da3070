// Reads cases, i.e. pairs of reference and candidate, from a JSONL file or a folder.
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
  std::string id;                // as text, for people
  std::string id_json = "null";  // the id as JSON string or number; null: no usable id
  int64_t line = 0;              // 1-based line of the JSONL file; 0 in a folder
  std::string where;             // "cases.jsonl, line 12", or the candidate's file
  std::string task;              // the reference's name in messages
  std::string reference_source;
  std::string candidate_source;
  std::string error;  // why the case cannot be checked: one sentence, without `where`; else empty
};

// Reads one of two forms of input:
//
// - A JSONL file. Each line is an object with `id` (string or number, unique), `reference_source`
//   and `candidate_source`; optionally `task`, a name for messages. Other members and empty lines
//   are ignored.
// - A folder. A file NAME_reference.py is the reference of all other files NAME_*.py in the folder
//   (the longest matching NAME counts), with id "NAME_x". In a sub-folder, reference.py is the
//   reference of all other *.py files there, with id "FOLDER/x". Cases are sorted by id.
//
// A broken line or file, or a repeated id, is returned as a case with `error` set.
class CaseReader {
 public:
  virtual ~CaseReader() = default;

  // Errors: NotFound, PermissionDenied, FailedPrecondition (neither a regular file nor a folder),
  // InvalidArgument for a folder without a case.
  static absl::StatusOr<std::unique_ptr<CaseReader>> Open(const std::string& path);

  // Returns the next case, or nullopt at the end. Errors are those of reading the JSONL file.
  virtual absl::StatusOr<std::optional<Case>> Next() = 0;

  // Number of all cases, including broken ones.
  virtual int64_t total() const = 0;
};

// Maximum size in bytes of a line and of a file.
inline constexpr int64_t kMaxCaseBytes = 4 << 20;

// Parses one line of a JSONL file: sets ids, task and sources, or `error`.
Case ParseCase(const std::string& line);

// InvalidArgument if `source` is a program copied from a model's answer with its Markdown fences.
// The message names file and line and gives the remedy.
absl::Status CheckNoFence(const std::string& path, const std::string& source);

// Opens a folder: lists the file names now; Next reads the files.
absl::StatusOr<std::unique_ptr<CaseReader>> OpenCaseFolder(const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_CASE_READER_H_
