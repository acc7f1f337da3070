// The files that an import writes, and the table that it prints.
#ifndef TRITONRL_TOOLS_KERNELBOOK_IMPORT_OUTPUT_H_
#define TRITONRL_TOOLS_KERNELBOOK_IMPORT_OUTPUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/kernelbook/rows.h"

namespace tritonrl {

// A row that is left out. `reason` is one of ReasonsByStage().
struct LeftOut {
  KernelBookRow row;
  std::string reason;
  std::string message;  // one sentence
};

struct ImportSummary {
  int64_t rows = 0;                         // read from the file
  int64_t kept = 0;                         // tasks written
  std::map<std::string, int64_t> left_out;  // by reason
  int64_t ran = 0;          // tasks that this import ran; the others' findings were in the journal
  double read_seconds = 0;  // of reading the file
  double compare_seconds = 0;  // of syntax checks and normal forms
  double run_seconds = 0;
};

// The stages in their order, each with the reasons for which it leaves rows out.
const std::vector<std::pair<std::string, std::vector<std::string>>>& ReasonsByStage();

// The row's task file without ".py": its uuid (or row number) and class, in characters that are
// safe in file names.
std::string TaskName(const KernelBookRow& row);

// The row as a task file: the source as published, and a line that names the model.
std::string TaskText(const KernelBookRow& row);

// Claims the folder `out` for the import of the file `in` in source.json. FailedPrecondition names
// both files if the folder holds an import of another file; the same file may have moved.
absl::Status ClaimFolder(const std::string& out, const std::string& in);

// Writes tasks/, origins.jsonl (where each task comes from, and its licences), left_out.jsonl and
// summary.json into the folder `out`, each in one step.
absl::Status WriteImport(const std::string& out, const std::string& in,
                         const std::vector<KernelBookRow>& kept,
                         const std::vector<LeftOut>& left_out, const ImportSummary& summary);

// The counts as a table: rows that each stage left out, by reason, and rows that remained.
std::string ImportTable(const ImportSummary& summary);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_KERNELBOOK_IMPORT_OUTPUT_H_
