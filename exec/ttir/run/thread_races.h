// Finds accesses of one program's threads to one location that nothing orders, at least one of
// which writes. An operation on a tensor runs element by element here; on a GPU the threads of a
// program share its elements, and a thread does not wait for another one before it comes to the
// next operation.
//
// Which thread has an element, the layouts decide, which Triton chooses later. The assumption here:
// accesses of tensors with the same shape (not counting dimensions of size 1) have equal layouts,
// so that an element at one place of both belongs to one thread, whose accesses are in order.
// Elements at different places belong to different threads. A scalar is a tensor with one element.
//
// Barriers order all accesses before them and all behind. So do reductions, scans, gathers,
// histograms and dots, as their threads exchange elements through shared memory, and atomic
// operations that acquire or release. Layouts that are converted on the way order too, by chance;
// this is not counted on.
//
// Of each location the last write and two reads are kept: a race with another read may be missed.
#ifndef TRITONRL_EXEC_TTIR_RUN_THREAD_RACES_H_
#define TRITONRL_EXEC_TTIR_RUN_THREAD_RACES_H_

#include <array>
#include <cstdint>
#include <optional>

#include "exec/ttir/run/access_cells.h"

namespace tritonrl::ttir {

// An access of another thread.
struct ThreadAccess {
  bool writes = false;
  bool is_atomic = false;
  uint16_t site = 0;
  bool of_same_shape = false;
  int32_t element = 0;  // or one of these
};
inline constexpr int32_t kAllElements = -1;
inline constexpr int32_t kSeveralElements = -2;

class ThreadRaces {
 public:
  // Nothing before it races with what comes: a new program, or a barrier.
  void Order() { ordered_ = ++turn_; }
  // All accesses until the next one are of one operation, on a tensor with this shape.
  void BeginOperation(uint16_t site, int shape) {
    ++turn_;
    site_ = site;
    shape_ = static_cast<uint16_t>(shape);
  }
  // Each is of `bytes` bytes (a power of two, to which the address is a multiple). Returns an
  // access of another thread that nothing orders.
  std::optional<ThreadAccess> Read(int64_t address, int bytes, int32_t element);
  // `changes`: the location gets another value than it has.
  std::optional<ThreadAccess> Write(int64_t address, int bytes, int32_t element, bool changes);
  // Two of them do not race.
  std::optional<ThreadAccess> Modify(int64_t address, int bytes, int32_t element);

  // False: some locations are not watched.
  bool complete() const { return cells_.complete(); }

 private:
  struct Access {
    uint32_t turn = 0;
    int32_t element = 0;
    uint16_t site = 0;
    uint16_t shape = 0;
    bool is_atomic = false;
  };
  struct Cell {
    Access write;
    Access before;  // the last one of an earlier operation
    std::array<Access, 2> reads;
  };

  // Whether it is of another thread, and not in order with the access of the operation that runs.
  bool Races(const Access& access, int32_t element) const;
  ThreadAccess Found(const Access& access, bool writes) const {
    return {writes, access.is_atomic, access.site, access.shape == shape_, access.element};
  }
  std::optional<ThreadAccess> RaceOf(const Cell& cell, int32_t element, bool changes) const;
  void Put(int32_t element, bool is_atomic, Cell* cell) const;

  AccessCells<Cell> cells_{int64_t{1} << 24};
  uint32_t turn_ = 1;
  uint32_t ordered_ = 1;  // turns before it are in order with all that come
  uint16_t site_ = 0;
  uint16_t shape_ = 0;
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_THREAD_RACES_H_
