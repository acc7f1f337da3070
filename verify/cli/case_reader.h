// Reads cases, i.e. pairs of reference and candidate, from a JSONL file or a folder. A candidate is
// a program, or a model's response that holds one.
#ifndef TRITONRL_VERIFY_CLI_CASE_READER_H_
#define TRITONRL_VERIFY_CLI_CASE_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/response.h"

namespace tritonrl {

struct Case {
  std::string id;                // as text, for people
  std::string id_json = "null";  // the id as JSON string or number; null: no usable id
  int64_t line = 0;              // 1-based line of the JSONL file; 0 in a folder
  std::string where;             // "cases.jsonl, line 12", or the candidate's file
  std::string task;              // the reference's name in messages
  std::string reference_source;
  // The candidate; for a response the code in it, "" if the response is malformed.
  std::string candidate_source;
  std::optional<std::string> response;  // the whole response, for a case that has one
  ResponseStyle style;                  // how the response is read
  bool truncated = false;               // the response was cut off at the length limit
  std::string error;  // why the case cannot be checked: one sentence, without `where`; else empty
};

// How cases with a response, and samples of a run, are read.
struct CaseOptions {
  // Settings as in OverrideResponseStyle; "auto" is what the line says, or else the default style.
  std::string response_style = "auto";
  std::string code_block = "auto";
  // Sources of references by task id, for lines without `reference_source`; null: none.
  std::shared_ptr<const std::map<std::string, std::string>> references;
};

// The options with the tasks of a folder (LoadTasks) as references. Invalid task files are left out
// and named in `problems`. Errors: those of LoadTasks; a wrong setting.
absl::StatusOr<CaseOptions> MakeCaseOptions(const std::string& response_style,
                                            const std::string& code_block, const std::string& tasks,
                                            std::vector<std::string>* problems);

// Reads one of two forms of input:
//
// - A JSONL file. Each line is an object with `id` (string or number, unique), `reference_source`
//   and `candidate_source`; optionally `task`, a name for messages. Other members and empty lines
//   are ignored. `response` may stand for `candidate_source`, with `response_style` and
//   `code_block` (tasks/response_style.h) and `truncated` (bool) beside it. With
//   CaseOptions.references, samples of a run (trainer/grpo/sample_batch.h) are cases too: `task`
//   names the reference, `slot` and `sample` make the id, and `finish_reason` says if the response
//   was cut off.
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
  static absl::StatusOr<std::unique_ptr<CaseReader>> Open(const std::string& path,
                                                          const CaseOptions& options = {});

  // Returns the next case, or nullopt at the end. Errors are those of reading the JSONL file.
  virtual absl::StatusOr<std::optional<Case>> Next() = 0;

  // Number of all cases, including broken ones.
  virtual int64_t total() const = 0;
};

// Maximum size in bytes of a line and of a file.
inline constexpr int64_t kMaxCaseBytes = 4 << 20;

// Parses one line of a JSONL file: sets ids, task, sources and response, or `error`.
Case ParseCase(const std::string& line, const CaseOptions& options = {});

// InvalidArgument if `source` is a program copied from a model's answer with its Markdown fences.
// The message names file and line and gives the remedy.
absl::Status CheckNoFence(const std::string& path, const std::string& source);

// Opens a folder: lists the file names now; Next reads the files.
absl::StatusOr<std::unique_ptr<CaseReader>> OpenCaseFolder(const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_CASE_READER_H_
