// Finds accesses of different programs to one location that nothing orders, at least one of which
// writes. Programs run one after the other here; on a GPU they run in any order and at once.
//
// Each program has a clock. An atomic operation with release semantics publishes the program's
// clock at its location, one with acquire semantics joins what the location holds; relaxed ones and
// those of scope cta order nothing. Two accesses are ordered if the later program's clock holds the
// time of the earlier one's access.
//
// Of each location the last write, the last atomic operation and two reads are kept, those that the
// others do not follow. So a race with the third of several reads or with an older atomic operation
// may be missed; what is reported is one.
#ifndef TRITONRL_EXEC_TTIR_RUN_RACE_DETECTOR_H_
#define TRITONRL_EXEC_TTIR_RUN_RACE_DETECTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "exec/ttir/enums.h"
#include "exec/ttir/run/access_cells.h"
#include "exec/ttir/run/program_clock.h"

namespace tritonrl::ttir {

// Programs have numbers below this.
inline constexpr int64_t kMaxCheckedPrograms = (int64_t{1} << 32) - 2;

// The other access of a race.
struct RacingAccess {
  enum class Kind : uint8_t { kRead, kWrite, kAtomic };
  Kind kind = Kind::kRead;
  uint32_t program = 0;
  uint16_t site = 0;
};

class RaceDetector {
 public:
  void BeginProgram(uint32_t program);

  // Each access is of `bytes` bytes (a power of two, to which the address is a multiple), and
  // `site` is a number of its place. Returns an access that races with it.
  std::optional<RacingAccess> Read(int64_t address, int bytes, uint16_t site);
  std::optional<RacingAccess> Write(int64_t address, int bytes, uint16_t site);
  // An atomic operation; `writes` is false for a compare-and-swap that found another value. To be
  // called after Acquire for the same elements.
  std::optional<RacingAccess> Modify(int64_t address, int bytes, bool writes, uint16_t site);

  // What an atomic operation with acquire semantics does to the program's clock, and one with
  // release semantics to the clocks of the locations that it wrote.
  void Acquire(const std::vector<int64_t>& addresses);
  void Release(const std::vector<int64_t>& published);

  // False: the memory for locations did not suffice, and some are not watched; or that for clocks,
  // and none is.
  bool complete() const { return is_watching_ && cells_.complete(); }

 private:
  struct Epoch {
    uint32_t program = 0;  // one more than its number; 0: none
    uint16_t time = 0;
    uint16_t site = 0;
  };
  struct Cell {
    Epoch write;
    Epoch atomic;
    std::array<Epoch, 2> reads;
  };
  using Snapshot = std::shared_ptr<const ProgramClock>;

  // The cells of the access; empty if it is not watched.
  absl::Span<Cell> Find(int64_t address, int bytes) {
    return is_watching_ ? cells_.Find(address, bytes) : absl::Span<Cell>();
  }
  // Null where the memory does not suffice; nothing is watched then.
  Snapshot Keep(ProgramClock clock);
  bool IsOrdered(const Epoch& epoch) const;
  Epoch Now(uint16_t site) const;

  uint32_t program_ = 0;
  uint32_t time_ = 1;  // one more with each release
  ProgramClock clock_;
  AccessCells<Cell> cells_{int64_t{1} << 25};  // 1 GiB
  bool is_watching_ = true;
  size_t kept_runs_ = 0;  // of the snapshots, which tell it of their end
  absl::flat_hash_map<int64_t, Snapshot> published_;  // by address
  absl::flat_hash_set<Snapshot> joined_;              // by this program
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_RACE_DETECTOR_H_
