// The bytes of a data file: as they are, decompressed from gzip, or the rows of a Parquet file as
// JSON Lines.
#ifndef TRITONRL_BASE_RECORDS_BYTE_SOURCE_H_
#define TRITONRL_BASE_RECORDS_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

enum class FileKind { kPlain, kGzip, kParquet };

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads at most `size` bytes (above 0) to `to` and returns their number, 0 at the end. Errors
  // name the file.
  virtual absl::StatusOr<size_t> Read(char* to, size_t size) = 0;
  // How much of the file has been read: a number of its bytes.
  virtual int64_t consumed() const = 0;
};

struct OpenedSource {
  std::unique_ptr<ByteSource> bytes;
  FileKind kind = FileKind::kPlain;
  int64_t file_bytes = 0;
  std::vector<std::string> columns;  // of a Parquet file: the names of all its columns
};

// Opens a file of the kind that its first bytes say. Of a Parquet file only `columns` are read;
// none given: all. InvalidArgument for other compressed files and for a damaged Parquet file,
// FailedPrecondition for a Git LFS pointer; all errors name the file.
absl::StatusOr<OpenedSource> OpenByteSource(const std::string& path,
                                            const std::vector<std::string>& columns);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RECORDS_BYTE_SOURCE_H_
