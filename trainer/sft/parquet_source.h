// Rows of a Parquet file as JSON Lines, read by Arrow in a Python process.
#ifndef TRITONRL_TRAINER_SFT_PARQUET_SOURCE_H_
#define TRITONRL_TRAINER_SFT_PARQUET_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "trainer/sft/byte_source.h"

namespace tritonrl {

// Starts the process, which reads the columns that some form of example uses
// (read_parquet.py). `file_bytes` is the size of the file. InvalidArgument with Arrow's reason for
// a damaged file.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenParquetSource(const std::string& path,
                                                              int64_t file_bytes);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_PARQUET_SOURCE_H_
