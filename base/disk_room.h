// Room on the disk that is reserved before something is produced that must be kept.
#ifndef TRITONRL_BASE_DISK_ROOM_H_
#define TRITONRL_BASE_DISK_ROOM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/file.h"

namespace tritonrl {

// Room behind the end of a file, for bytes that will be appended to it. Other files cannot take it.
// The size of the file does not change. The reservation ends with this object, which cuts the file
// to its size: no other process may append to the file then.
class DiskRoom {
 public:
  explicit DiskRoom(std::string path) : path_(std::move(path)), fd_(-1) {}
  ~DiskRoom();
  DiskRoom(const DiskRoom&) = delete;
  DiskRoom& operator=(const DiskRoom&) = delete;

  // Reserves room for `bytes` bytes behind the present end of the file; creates a missing file.
  // What was reserved before and is not used counts. ResourceExhausted, with the bytes that are
  // needed: the disk is full, or the file may not grow so far. File systems that cannot reserve
  // (EOPNOTSUPP) give OK, and then an append may still fail.
  absl::Status Reserve(int64_t bytes);

 private:
  const std::string path_;
  ScopedFd fd_;  // opened by the first Reserve
};

// "1.5 MB", "12.0 kB", "300 bytes".
std::string BytesText(int64_t bytes);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_DISK_ROOM_H_
