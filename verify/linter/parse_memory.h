// Memory for tree-sitter, which takes a fifth of its time to allocate and free small blocks.
#ifndef TRITONRL_VERIFY_LINTER_PARSE_MEMORY_H_
#define TRITONRL_VERIFY_LINTER_PARSE_MEMORY_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace tritonrl::lint {

// While it exists, tree-sitter's small blocks of this thread come from it, and freed ones are used
// again. The parser, trees and cursors that are made in its lifetime must end before it. One at a
// time in a thread. Other threads, and other users of tree-sitter, are not concerned.
class ParseMemory {
 public:
  ParseMemory();
  ~ParseMemory();
  ParseMemory(const ParseMemory&) = delete;
  ParseMemory& operator=(const ParseMemory&) = delete;

  void* Allocate(size_t bytes);
  void Free(void* block);
  void* Resize(void* block, size_t bytes);

 private:
  static constexpr size_t kClasses = 64;  // of blocks, by their size in units; larger: malloc

  void AddChunk();

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* next_ = nullptr;  // free part of the last chunk
  char* end_ = nullptr;
  std::array<void*, kClasses> freed_ = {};  // lists of free blocks, each the link to the next
};

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_PARSE_MEMORY_H_
