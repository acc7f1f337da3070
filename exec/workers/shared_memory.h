// Anonymous memory that is handed to a job by descriptor: of a fixed size, and sealed against
// writing once its content is final.
#ifndef TRITONRL_EXEC_WORKERS_SHARED_MEMORY_H_
#define TRITONRL_EXEC_WORKERS_SHARED_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

class SharedMemory {
 public:
  // A memfd of `bytes` zeros that nobody can shrink or grow: whoever maps it never meets its end.
  // Pages are taken when they are first written, so a generous size costs nothing.
  static absl::StatusOr<SharedMemory> Create(const std::string& name, uint64_t bytes);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  int fd() const { return fd_; }  // -1: empty object
  uint64_t bytes() const { return bytes_; }

  // From now on nobody can write it, nor lift a seal. FailedPrecondition while somebody still has
  // it mapped for writing, or when its user has put seals of its own on it.
  absl::Status Seal();

  // The first `bytes` (at most all) for reading; later calls give the same. While it is not sealed
  // its bytes may change under the reader. Seal before mapping, as a mapping may hinder it.
  absl::StatusOr<absl::string_view> Map(uint64_t bytes);
  // What Map() gave; empty before.
  absl::string_view view() const {
    return map_ == nullptr ? absl::string_view()
                           : absl::string_view(static_cast<const char*>(map_), mapped_);
  }

  // Memory really in use.
  int64_t resident_bytes() const;

 private:
  void Release();

  int fd_ = -1;
  uint64_t bytes_ = 0;
  uint64_t mapped_ = 0;
  bool sealed_ = false;
  void* map_ = nullptr;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_SHARED_MEMORY_H_
