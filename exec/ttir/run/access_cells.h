// A record for each location of memory that checked accesses touch.
#ifndef TRITONRL_EXEC_TTIR_RUN_ACCESS_CELLS_H_
#define TRITONRL_EXEC_TTIR_RUN_ACCESS_CELLS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace tritonrl::ttir {

// Cells are as small as the smallest access to their page.
template <typename Cell>
class AccessCells {
 public:
  explicit AccessCells(int64_t max_cells) : max_cells_(max_cells) {}

  // The cells of `bytes` bytes (a power of two, to which the address is a multiple). Empty where
  // the memory for cells does not suffice.
  absl::Span<Cell> Find(int64_t address, int bytes) {
    const int64_t number = address >> kPageShift;
    const int shift = std::countr_zero(static_cast<uint32_t>(bytes));
    if (number != last_number_) {
      auto found = pages_.find(number);
      if (found == pages_.end()) {
        if (cells_ >= max_cells_) return Miss();
        found = pages_.try_emplace(number).first;
        found->second.shift = shift;
        found->second.cells.resize(size_t{1} << (kPageShift - shift));
        cells_ += int64_t{1} << (kPageShift - shift);
      }
      last_page_ = &found->second;
      last_number_ = number;
    }
    Page& page = *last_page_;
    if (page.shift > shift && !Split(page, shift)) return Miss();
    const int64_t within = address & ((int64_t{1} << kPageShift) - 1);
    return {&page.cells[static_cast<size_t>(within >> page.shift)],
            static_cast<size_t>(bytes >> page.shift)};
  }

  // False: some cells were not found.
  bool complete() const { return complete_; }

 private:
  static constexpr int kPageShift = 12;

  struct Page {
    int shift = 0;
    std::vector<Cell> cells;
  };

  absl::Span<Cell> Miss() {
    complete_ = false;
    return {};
  }

  // False: no memory for it.
  bool Split(Page& page, int shift) {
    const size_t parts = size_t{1} << (page.shift - shift);
    if (static_cast<int64_t>(page.cells.size() * parts) > max_cells_ - cells_) return false;
    std::vector<Cell> cells;
    cells.reserve(page.cells.size() * parts);
    for (const Cell& cell : page.cells) cells.insert(cells.end(), parts, cell);
    cells_ += static_cast<int64_t>(cells.size() - page.cells.size());
    page.cells = std::move(cells);
    page.shift = shift;
    return true;
  }

  int64_t max_cells_;
  int64_t cells_ = 0;
  absl::flat_hash_map<int64_t, Page> pages_;
  Page* last_page_ = nullptr;
  int64_t last_number_ = -1;
  bool complete_ = true;
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_ACCESS_CELLS_H_
