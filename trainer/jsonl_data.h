// Random access to (prompt, response) pairs in JSON Lines files of any size: only the places of the
// lines are kept in memory.
#ifndef TRITONRL_TRAINER_JSONL_DATA_H_
#define TRITONRL_TRAINER_JSONL_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

struct SftExample {
  std::string prompt;
  std::string response;
};

class JsonlData {
 public:
  // Scans the files once for line ends. Blank lines are left out. Errors name the file; a set
  // without any line is an error.
  static absl::StatusOr<std::unique_ptr<JsonlData>> Open(const std::vector<std::string>& paths);
  ~JsonlData();
  JsonlData(const JsonlData&) = delete;
  JsonlData& operator=(const JsonlData&) = delete;

  int64_t size() const { return static_cast<int64_t>(lines_.size()); }
  // Bytes of line i: a stand-in for its length in tokens.
  int64_t bytes(int64_t i) const { return lines_[i].bytes; }
  // Reads and parses line i; safe from several threads. An error says "file:line: what is wrong".
  absl::StatusOr<SftExample> Read(int64_t i) const;

 private:
  struct Line {
    int64_t offset;
    int32_t bytes;
    int32_t file;
    int64_t number;  // from 1, for messages
  };
  JsonlData() = default;
  absl::Status Scan(int file);

  std::vector<std::string> paths_;
  std::vector<int> descriptors_;
  std::vector<Line> lines_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_JSONL_DATA_H_
