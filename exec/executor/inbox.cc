#include "exec/executor/inbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl::executor {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kMostKept = 256 << 20;  // bytes that stay warm between candidates

}  // namespace

absl::StatusOr<std::unique_ptr<Inbox>> Inbox::Create() {
  ASSIGN_OR_RETURN(SharedMemory memory, SharedMemory::Create("executor_inbox", kBytes));
  // Opened once more: who gets this descriptor cannot map the memory for writing.
  const int reader =
      open(absl::StrCat("/proc/self/fd/", memory.fd()).c_str(), O_RDONLY | O_CLOEXEC);
  if (reader < 0) return ErrnoStatus(errno, "open", "an executor's memory for reading");
  void* const base =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory.fd(), 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    close(reader);
    return ErrnoStatus(error, "map", "an executor's memory");
  }
  return std::unique_ptr<Inbox>(new Inbox(std::move(memory), reader, static_cast<char*>(base)));
}

Inbox::~Inbox() {
  munmap(base_, kBytes);
  close(reader_);
}

absl::StatusOr<uint64_t> Inbox::Append(const void* data, size_t bytes) {
  const uint64_t begin = (end_ + kAlignment - 1) / kAlignment * kAlignment;
  if (begin > kBytes || bytes > kBytes - begin) {
    return absl::ResourceExhaustedError("the inputs are too large for an executor");
  }
  memcpy(base_ + begin, data, bytes);
  end_ = begin + bytes;
  touched_ = std::max(touched_, end_);
  return begin;
}

void Inbox::Truncate(uint64_t end) {
  end_ = end;
  if (end_ > 0 || touched_ <= kMostKept) return;
  (void)fallocate(memory_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(kMostKept), static_cast<off_t>(touched_ - kMostKept));
  touched_ = kMostKept;
}

absl::StatusOr<Contents> InboxPlacer::Place(const at::Tensor& tensor, size_t bytes) {
  Contents contents;
  const char* const data = static_cast<const char*>(tensor.const_data_ptr());
  if (shared_ != nullptr && !shared_->view().empty()) {
    const char* const begin = shared_->view().data();
    const uint64_t offset = data - begin;
    if (data >= begin && data < begin + shared_->view().size() &&
        bytes <= shared_->view().size() - offset && offset % tensor.element_size() == 0) {
      contents.set_region(1);
      contents.set_offset(offset);
      return contents;
    }
  }
  if (window_ != nullptr && window_->Contains(data)) {
    contents.set_region(2);
    contents.set_offset(static_cast<uint64_t>(data - window_->base()));
    return contents;
  }
  ASSIGN_OR_RETURN(const uint64_t offset, inbox_.Append(data, bytes));
  contents.set_offset(offset);
  return contents;
}

}  // namespace tritonrl::executor
