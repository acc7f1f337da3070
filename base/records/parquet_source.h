// Rows of a Parquet file as JSON Lines, read by Arrow in a Python process.
#ifndef TRITONRL_BASE_RECORDS_PARQUET_SOURCE_H_
#define TRITONRL_BASE_RECORDS_PARQUET_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/records/byte_source.h"

namespace tritonrl {

// Starts the process, which reads `columns` (read_parquet.py), and fills opened->bytes and
// opened->columns; opened->file_bytes is the size of the file. InvalidArgument with Arrow's reason
// for a damaged file.
absl::Status OpenParquetSource(const std::string& path, const std::vector<std::string>& columns,
                               OpenedSource* opened);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RECORDS_PARQUET_SOURCE_H_
