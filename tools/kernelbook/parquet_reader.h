// Reads parquet files through a helper process, which has Arrow in its Python environment.
#ifndef TRITONRL_TOOLS_KERNELBOOK_PARQUET_READER_H_
#define TRITONRL_TOOLS_KERNELBOOK_PARQUET_READER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tritonrl {

// Calls `columns` once with the names of all columns, then `line` with each row as the text of a
// JSON object that holds the columns `wanted`, in the order of the file. An error of either ends
// the reading. Other errors name `path`: InvalidArgument (no parquet file, or a damaged one),
// DeadlineExceeded (no row came for two minutes), Unavailable (the helper process ended).
absl::Status ReadParquet(
    const std::string& path, const std::vector<std::string>& wanted,
    const std::function<absl::Status(const std::vector<std::string>& names)>& columns,
    const std::function<absl::Status(const std::string& text)>& line);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_KERNELBOOK_PARQUET_READER_H_
