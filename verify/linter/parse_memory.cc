#include "verify/linter/parse_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "tree_sitter/api.h"

namespace tritonrl::lint {
namespace {

constexpr size_t kUnit = 16;  // of sizes, and the alignment
constexpr size_t kChunkBytes = 256 << 10;

// In front of each block.
struct alignas(kUnit) Header {
  size_t units;
};

Header* HeaderOf(void* block) { return static_cast<Header*>(block) - 1; }

thread_local ParseMemory* current = nullptr;
// A chunk of the thread's last parse: so a program of usual size takes none.
thread_local std::unique_ptr<char[]> kept_chunk;

void* OrAbort(void* block) {
  if (block == nullptr) std::abort();
  return block;
}

void* Allocate(size_t bytes) {
  return current != nullptr ? current->Allocate(bytes) : OrAbort(std::malloc(bytes));
}

void* AllocateZeros(size_t count, size_t bytes) {
  if (current == nullptr) return OrAbort(std::calloc(count, bytes));
  return std::memset(current->Allocate(count * bytes), 0, count * bytes);
}

void* Resize(void* block, size_t bytes) {
  return current != nullptr ? current->Resize(block, bytes) : OrAbort(std::realloc(block, bytes));
}

void Free(void* block) { current != nullptr ? current->Free(block) : std::free(block); }

#if !defined(__SANITIZE_ADDRESS__)  // which must see each block
// Before main: tree-sitter reads the functions without synchronization.
[[maybe_unused]] const bool installed = [] {
  ts_set_allocator(Allocate, AllocateZeros, Resize, Free);
  return true;
}();
#endif

}  // namespace

ParseMemory::ParseMemory() {
  if (kept_chunk != nullptr) {
    chunks_.push_back(std::move(kept_chunk));
    next_ = chunks_.back().get();
    end_ = next_ + kChunkBytes;
  }
  current = this;
}

ParseMemory::~ParseMemory() {
  current = nullptr;
  if (!chunks_.empty()) kept_chunk = std::move(chunks_.front());
}

void ParseMemory::AddChunk() {
  chunks_.push_back(std::make_unique_for_overwrite<char[]>(kChunkBytes));
  next_ = chunks_.back().get();
  end_ = next_ + kChunkBytes;
}

void* ParseMemory::Allocate(size_t bytes) {
  const size_t units = (bytes + kUnit - 1) / kUnit;
  if (units >= kClasses) {
    void* memory = OrAbort(std::malloc(sizeof(Header) + units * kUnit));
    return new (memory) Header{units} + 1;
  }
  if (void* block = freed_[units]; block != nullptr) {
    std::memcpy(&freed_[units], block, sizeof(void*));
    return block;
  }
  // A block of no bytes has room for the link too.
  const size_t taken = sizeof(Header) + (units == 0 ? kUnit : units * kUnit);
  if (static_cast<size_t>(end_ - next_) < taken) AddChunk();
  Header* header = new (next_) Header{units};
  next_ += taken;
  return header + 1;
}

void ParseMemory::Free(void* block) {
  if (block == nullptr) return;
  const size_t units = HeaderOf(block)->units;
  if (units >= kClasses) {
    std::free(HeaderOf(block));
    return;
  }
  std::memcpy(block, &freed_[units], sizeof(void*));
  freed_[units] = block;
}

void* ParseMemory::Resize(void* block, size_t bytes) {
  if (block == nullptr) return Allocate(bytes);
  const size_t room = HeaderOf(block)->units * kUnit;
  if (bytes <= room) return block;
  void* larger = std::memcpy(Allocate(bytes), block, room);
  Free(block);
  return larger;
}

}  // namespace tritonrl::lint
