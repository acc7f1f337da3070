// Anonymous memory of a fixed size that jobs receive by descriptor. It can be sealed against writes
// when its content is final.
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
  // Makes a memfd of `bytes` zeros. Its size is sealed, so an access within a mapping never faults.
  // The kernel allocates pages at the first write, so a generous size costs nothing.
  static absl::StatusOr<SharedMemory> Create(const std::string& name, uint64_t bytes);

  // Takes a memfd that a trusted job has made and sized. InvalidArgument: its size is not sealed.
  // The descriptor is closed in any case.
  static absl::StatusOr<SharedMemory> Adopt(int fd);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  int fd() const { return fd_; }  // -1: default-constructed or moved from
  uint64_t bytes() const { return bytes_; }

  // Seals the memory: no process can write to it any more, nor change its seals. FailedPrecondition
  // while a process still has it mapped for writing, or if a job has put other seals on it.
  absl::Status Seal();

  // Maps the first `bytes` (at most the whole memory) for reading; later calls return the first
  // call's mapping. The bytes of unsealed memory may change under the reader. Call Seal before Map,
  // because a mapping may prevent the seal.
  absl::StatusOr<absl::string_view> Map(uint64_t bytes);
  // The mapping; empty before Map.
  absl::string_view view() const {
    return map_ == nullptr ? absl::string_view()
                           : absl::string_view(static_cast<const char*>(map_), mapped_);
  }

  // Memory of the pages allocated so far.
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
