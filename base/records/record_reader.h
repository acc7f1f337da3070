// The JSON records of a data file, one after the other.
#ifndef TRITONRL_BASE_RECORDS_RECORD_READER_H_
#define TRITONRL_BASE_RECORDS_RECORD_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/records/byte_source.h"

namespace tritonrl {

struct Record {
  std::string text;      // JSON, perhaps malformed
  int64_t line = 0;      // of the record's beginning, from 1; of Parquet the row
  int64_t number = 0;    // of the record in the file, from 1
  bool complete = true;  // false: a line that the file ends in, without a line break
};

// Reads JSON Lines, a JSON array, gzip of either, or Parquet. The contents decide which.
// A byte order mark, Windows line ends and blank lines are skipped. Memory: one record and a block.
class RecordReader {
 public:
  // `columns`: those of a Parquet file that are read; none: all. Errors name the file.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(
      const std::string& path, const std::vector<std::string>& columns = {});

  // Returns the next record, nullopt at the end. Errors, with the place: a record above 2 GiB, and
  // an array that is cut off or has text after its end.
  absl::StatusOr<std::optional<Record>> Next();

  // "JSON Lines", "JSON array", "JSON Lines, gzip", "JSON array, gzip" or "Parquet".
  std::string Describe() const;
  // The record's place for a message: "file:12", "file:1 (example 7)" in an array, "file (row 12)".
  std::string Where(const Record& record) const;

  // The names of all columns of a Parquet file; empty for other files.
  const std::vector<std::string>& columns() const { return columns_; }
  // How much of the file has been read, and its size, in bytes.
  int64_t consumed() const { return bytes_->consumed(); }
  int64_t file_bytes() const { return file_bytes_; }

 private:
  RecordReader(std::string path, OpenedSource source)
      : path_(std::move(path)),
        bytes_(std::move(source.bytes)),
        kind_(source.kind),
        file_bytes_(source.file_bytes),
        columns_(std::move(source.columns)) {}

  absl::Status Begin();
  // Removes the used bytes from buffer_, then appends a block.
  absl::Status Fill();
  // The next byte without taking it, -1 at the end of the file.
  absl::StatusOr<int> Peek();
  void Take();
  // Takes white space; counts lines.
  absl::Status SkipSpace();
  absl::StatusOr<std::optional<Record>> NextLine();
  absl::StatusOr<std::optional<Record>> NextElement();
  absl::Status EndArray();

  const std::string path_;
  const std::unique_ptr<ByteSource> bytes_;
  const FileKind kind_;
  const int64_t file_bytes_;
  const std::vector<std::string> columns_;
  bool array_ = false;
  bool end_ = false;        // bytes_ is at its end
  bool array_end_ = false;  // the array's closing bracket was read
  std::string buffer_;
  size_t used_ = 0;
  int64_t line_ = 1;  // of the next byte
  int64_t records_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RECORDS_RECORD_READER_H_
