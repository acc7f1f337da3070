// What a launch reports besides its results: counts of bytes, sectors and operations, and shadows
// of the bytes that it stores. Launches without either have no observer.
#ifndef TRITONRL_EXEC_TTIR_RUN_OBSERVER_H_
#define TRITONRL_EXEC_TTIR_RUN_OBSERVER_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "exec/ttir/run/executor.h"
#include "exec/ttir/run/launch_state.h"
#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

// One bit for each sector of a launch's memory (MemoryMap numbers them). Thread-safe.
class SectorSet {
 public:
  // False: no memory for so many. Memory that is never touched costs nothing.
  bool Allocate(int64_t sectors);
  // Adds sectors [first, last]; returns how many are new.
  int64_t Add(int64_t first, int64_t last);
  // Adds the sectors 64 * word + i of the bits i; returns how many are new.
  int64_t AddWord(int64_t word, uint64_t bits);

 private:
  struct Free {
    void operator()(uint64_t* words) const { std::free(words); }
  };
  std::unique_ptr<uint64_t, Free> words_;
};

// The sectors that all threads of a launch touched.
struct TouchedSectors {
  SectorSet loaded;
  SectorSet stored;  // by stores and atomic operations
};

enum class AccessKind : uint8_t { kLoad, kStore, kAtomic };

// One for each thread. An access is Begin, then its rows and elements, then End.
class Observer {
 public:
  // `touched` is null where the launch does not count.
  Observer(const LaunchState* launch, TouchedSectors* touched)
      : launch_(*launch), touched_(touched), tag_(launch->options->shadow_tag) {}

  void Begin(AccessKind kind) {
    kind_ = kind;
    active_bytes_ = 0;
    intervals_.clear();
    sorted_ = true;
  }
  // `bytes` neighbouring bytes of one region; the pointer was checked.
  void AddRow(int64_t pointer, int64_t bytes);
  // The active ones of elements with `bytes` bytes each; the pointers were checked.
  void AddElements(const int64_t* pointers, const uint8_t* mask, int64_t count, int bytes);
  // `repeat`: the number of elements that each of the access stands for.
  void End(int64_t repeat);

  void AddWork(const Work& work) {
    counts_.flops += static_cast<double>(work.flops);
    counts_.dot_flops += static_cast<double>(work.dot_flops);
    counts_.tensor_flops += static_cast<double>(work.tensor_flops);
  }
  const LaunchCounts& counts() const { return counts_; }

 private:
  struct Interval {  // of sectors, with both ends
    int64_t first = 0;
    int64_t last = 0;
  };
  const MemoryRegion& RegionOf(int64_t pointer);
  void AddSectors(int64_t first, int64_t last);
  int64_t CountSorted(SectorSet& touched);
  // Of intervals within `words` words of sectors from word `first_word` on.
  int64_t CountNear(SectorSet& touched, int64_t first_word, int64_t words);

  const LaunchState& launch_;
  TouchedSectors* touched_;
  uint8_t tag_;
  LaunchCounts counts_;
  AccessKind kind_ = AccessKind::kLoad;
  int64_t active_bytes_ = 0;
  std::vector<Interval> intervals_;
  bool sorted_ = true;                    // each interval begins behind the one before it
  std::vector<uint64_t> bits_;            // zeros between accesses
  const MemoryRegion* region_ = nullptr;  // of the pointer before
  int64_t region_argument_ = 0;
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_OBSERVER_H_
