// What all threads of a launch share, and the memory that its kernel may touch.
#ifndef TRITONRL_EXEC_TTIR_RUN_LAUNCH_STATE_H_
#define TRITONRL_EXEC_TTIR_RUN_LAUNCH_STATE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "exec/ttir/run/executor.h"
#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

struct CompiledKernel {
  struct Argument {
    std::string name;
    Type type;
    int32_t offset = 0;
    int64_t divisibility = 1;  // as it is declared
    std::string place;
  };
  std::string name;
  std::vector<Argument> arguments;
  std::vector<std::string> places;  // "line 12 of kernel.py"
  Code prologue;                    // once per thread and launch
  Code body;                        // once per program
  int64_t arena_bytes = 0;
};

// What the L2 cache of an NVIDIA GPU moves at once.
inline constexpr int64_t kSectorBytes = 32;

struct MemoryRegion {
  std::string name;  // "argument x_ptr"
  int64_t begin = 0;
  int64_t bytes = 0;
  uint8_t* shadow = nullptr;  // one byte for each byte, or none
  // Sectors are counted from `origin` on, where the region or one that overlaps it begins.
  int64_t origin = 0;
  int64_t first_sector = 0;
  // What the argument's tensor spans; no end: all of the region.
  int64_t view_begin = 0;
  int64_t view_end = 0;

  int64_t SectorOf(int64_t address) const {
    return first_sector + (address - origin) / kSectorBytes;
  }
  bool Holds(int64_t address, int64_t size) const {
    return address >= begin && size <= bytes && address - begin <= bytes - size;
  }
};

// Memory by pointers (kernels.h says how they name their argument).
class MemoryMap {
 public:
  // The region of argument `index`; those of arguments without memory stay empty.
  void SetArgument(size_t index, MemoryRegion region);
  void AddReachable(MemoryRegion region);
  void Sort();  // before Find
  // Numbers the sectors of all regions, after Sort; regions that overlap share them. Returns how
  // many there are.
  int64_t NumberSectors();

  // The region that the pointer belongs to, or nullptr.
  const MemoryRegion* Find(int64_t pointer) const;
  // Whether one region holds all bytes from pointer `first` to `size` bytes behind pointer `last`,
  // which is not less.
  bool Holds(int64_t first, int64_t last, int64_t size) const {
    const MemoryRegion* region = Find(first);
    return region != nullptr && (first >> kAddressBits) == (last >> kAddressBits) &&
           region->Holds(first & kAddressMask,
                         (last & kAddressMask) - (first & kAddressMask) + size);
  }

 private:
  std::vector<MemoryRegion> arguments_;
  std::vector<MemoryRegion> by_address_;  // all of them
};

struct LaunchState {
  const CompiledKernel* kernel = nullptr;
  const LaunchOptions* options = nullptr;
  std::array<int32_t, 3> grid = {};
  MemoryMap memory;
  mutable absl::Mutex print_mutex;
};

// "program (1, 0, 0), line 12 of kernel.py", which ends the messages of failed steps.
std::string PlaceOf(const Step& step, const Program& program);

// Each ends the program with its error and returns false.
bool Fail(Program& program, absl::Status error);
// Counts an iteration of a loop; false where a limit is reached.
bool MayContinue(const Step& step, Program& program);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_LAUNCH_STATE_H_
