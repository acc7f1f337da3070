// Reads a file of KernelBook's rows: Parquet, a JSON array or JSON Lines, or gzip of these two.
#ifndef TRITONRL_TOOLS_KERNELBOOK_ROWS_H_
#define TRITONRL_TOOLS_KERNELBOOK_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

// One row, by the published names of its columns.
struct KernelBookRow {
  int64_t number = 0;  // 1-based in the file
  std::string uuid;    // "" if the row has none; a number as decimal text
  std::string entry_point;
  std::string python_code;
  std::string repo_name, repo_link, sha, module_name;  // "" if unknown
  std::string licenses;                                // joined by ", "
};

// A row that cannot be used. `message` is one sentence that names the file and the row or line.
struct BadRow {
  KernelBookRow row;  // what is known of it
  std::string message;
};

struct KernelBookRows {
  std::vector<KernelBookRow> rows;
  std::vector<BadRow> bad;
};

// Reads `path`; its contents tell the format. Stops after `limit` rows (0: reads all). The file's
// text is not kept in memory, only the fields above.
//
// A row without python_code or entry_point, or a line that is not a JSON object, becomes a BadRow.
// InvalidArgument, one sentence: the file has none of the formats, lacks a needed column, has no
// row, or ends in the middle of the JSON array. NotFound: there is no such file.
absl::StatusOr<KernelBookRows> ReadKernelBook(const std::string& path, int64_t limit);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_KERNELBOOK_ROWS_H_
