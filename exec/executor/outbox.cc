#include "exec/executor/outbox.h"

#include <c10/core/impl/alloc_cpu.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/file.h"

namespace tritonrl::executor {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kMostKept = 256 << 20;  // bytes that stay warm between candidates

// In front of each tensor's memory: LibTorch gives back nothing but a pointer to that.
struct alignas(64) Header {
  Outbox* outbox;  // null: it is from the heap
  size_t offset;   // of the header in the outbox
};

Header* HeaderOf(void* data) { return static_cast<Header*>(data) - 1; }

}  // namespace

absl::StatusOr<std::unique_ptr<Outbox>> Outbox::Create(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "look at", "the memory for answers");
  const auto bytes = static_cast<size_t>(info.st_size);
  void* const base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return ErrnoStatus(errno, "map", "the memory for answers");
  return std::unique_ptr<Outbox>(new Outbox(fd, static_cast<char*>(base), bytes));
}

Outbox::Outbox(int fd, char* base, size_t bytes) : fd_(fd), base_(base), bytes_(bytes) {
  const absl::MutexLock lock(&mutex_);
  free_[0] = bytes;
}

Outbox::~Outbox() { munmap(base_, bytes_); }

c10::DataPtr Outbox::AllocateHere(size_t bytes) {
  if (bytes > bytes_) return c10::DataPtr(nullptr, c10::kCPU);
  const size_t wanted = (bytes + sizeof(Header) + kPageBytes - 1) / kPageBytes * kPageBytes;
  size_t offset = 0;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(free_.begin(), free_.end(),
                                    [&](const auto& block) { return block.second >= wanted; });
    if (found == free_.end()) return c10::DataPtr(nullptr, c10::kCPU);
    offset = found->first;
    const size_t rest = found->second - wanted;
    free_.erase(found);
    if (rest > 0) free_[offset + wanted] = rest;
    used_[offset] = wanted;
    touched_ = std::max(touched_, offset + wanted);
  }
  Header* const header = new (base_ + offset) Header{this, offset};
  return {header + 1, header + 1, &Delete, c10::kCPU};
}

c10::DataPtr Outbox::allocate(size_t bytes) {
  if (bytes == 0) return {nullptr, nullptr, &Delete, c10::kCPU};
  if (bytes >= kLeastBytes) {
    c10::DataPtr here = AllocateHere(bytes);
    if (here.get() != nullptr) return here;
  }
  if (bytes > SIZE_MAX - sizeof(Header)) throw std::bad_alloc();
  Header* const header = new (c10::alloc_cpu(bytes + sizeof(Header))) Header{nullptr, 0};
  return {header + 1, header + 1, &Delete, c10::kCPU};
}

void Outbox::copy_data(void* to, const void* from, size_t bytes) const {
  default_copy_data(to, from, bytes);
}

void Outbox::Delete(void* data) {
  if (data == nullptr) return;
  Header* const header = HeaderOf(data);
  if (header->outbox != nullptr) {
    header->outbox->Free(header->offset);
  } else {
    c10::free_cpu(header);
  }
}

void Outbox::Free(size_t offset) {
  const absl::MutexLock lock(&mutex_);
  const auto used = used_.find(offset);
  size_t bytes = used->second;
  used_.erase(used);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_[offset] = bytes;
}

bool Outbox::Contains(const void* data, size_t bytes, uint64_t* offset) const {
  const char* const begin = static_cast<const char*>(data);
  if (begin < base_ || begin >= base_ + bytes_) return false;
  *offset = static_cast<uint64_t>(begin - base_);
  return bytes <= bytes_ - *offset;
}

void Outbox::Trim() {
  const absl::MutexLock lock(&mutex_);
  if (touched_ <= kMostKept) return;
  for (const auto& [offset, bytes] : free_) {
    const size_t end = std::min(offset + bytes, touched_);
    if (end > offset) {
      (void)fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                      static_cast<off_t>(end - offset));
    }
  }
  touched_ = used_.empty() ? 0 : used_.rbegin()->first + used_.rbegin()->second;
}

absl::StatusOr<Contents> OutboxPlacer::Place(const at::Tensor& tensor, size_t bytes) {
  Contents contents;
  uint64_t offset = 0;
  if (window_ != nullptr && window_->Contains(tensor.const_data_ptr())) {
    contents.set_region(1);
    contents.set_offset(
        static_cast<uint64_t>(static_cast<const char*>(tensor.const_data_ptr()) - window_->base()));
    return contents;
  }
  if (!outbox_.Contains(tensor.const_data_ptr(), bytes, &offset)) {
    c10::DataPtr copy = outbox_.AllocateHere(bytes);
    if (copy.get() == nullptr) {
      return absl::ResourceExhaustedError("there is no room for the result");
    }
    memcpy(copy.get(), tensor.const_data_ptr(), bytes);
    outbox_.Contains(copy.get(), bytes, &offset);
    copies_.push_back(std::move(copy));
  }
  contents.set_offset(offset);
  return contents;
}

}  // namespace tritonrl::executor
