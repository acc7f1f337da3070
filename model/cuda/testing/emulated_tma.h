// Emulates the TMA and mbarrier functions of ptx.cuh on a CPU, for kernels in an EmulatedBlock.

#ifndef TRITONRL_MODEL_CUDA_TESTING_EMULATED_TMA_H_
#define TRITONRL_MODEL_CUDA_TESTING_EMULATED_TMA_H_

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "model/cuda/common/tensor_map_desc.h"
#include "model/cuda/testing/emulated_mma.h"

// Replaces common/ptx.cuh: its include guard is now defined.
#define TRITONRL_MODEL_CUDA_COMMON_PTX_CUH_

// ForEachPack applies the swizzle, which depends only on addresses in shared memory.
struct CUtensorMap : tritonrl::TensorMapDesc {};

namespace tritonrl {

using SharedBarrier = uint64_t;

struct EmulatedBarrier {
  struct Copy {
    void* to;
    CUtensorMap map;
    std::array<int64_t, 3> at;
  };
  int count = 0, arrived = 0;
  int64_t expected = 0, copied = 0;
  int64_t phase = 0;         // in progress
  std::vector<Copy> copies;  // in flight
};
inline std::map<const SharedBarrier*, EmulatedBarrier> emulated_barriers;
inline int64_t emulated_box_bytes = 0;
// Errors of the kernel: a box that is not within the tensor; a phase in which more bytes arrived
// than expected.
inline bool emulated_box_outside = false, emulated_wrong_bytes = false;
// Sources of the boxes whose copies started before GridDependencySync.
inline std::vector<const void*> emulated_early_boxes;

inline void PublishBarriers() {}
inline uint64_t EvictFirstPolicy() { return 0; }
inline void InitBarrier(SharedBarrier* barrier, int count) {
  emulated_barriers[barrier] = {.count = count};
}

// Resets the state; called before a launch.
inline void ForgetEmulatedBoxes() {
  emulated_barriers.clear();
  emulated_box_bytes = 0;
  emulated_box_outside = emulated_wrong_bytes = false;
  emulated_early_boxes.clear();
}
// After a launch: whether there are copies for which no thread has waited.
inline bool EmulatedBoxesAreLeft() {
  for (const auto& [barrier, state] : emulated_barriers) {
    if (!state.copies.empty()) return true;
  }
  return false;
}

inline void EndPhaseIfDone(EmulatedBarrier* state) {
  if (state->arrived < state->count || state->copied < state->expected) return;
  emulated_wrong_bytes |= state->copied > state->expected;
  *state = {.count = state->count, .phase = state->phase + 1};
}
inline void Arrive(SharedBarrier* barrier) {
  EmulatedBarrier& state = emulated_barriers.at(barrier);
  ++state.arrived;
  EndPhaseIfDone(&state);
}
inline void ArriveAndExpect(SharedBarrier* barrier, int bytes) {
  emulated_barriers.at(barrier).expected += bytes;
  Arrive(barrier);
}

// Calls visit(destination in shared memory, source in the tensor) for each 16-byte pack of a box.
// The source is null if it is outside the tensor.
template <typename Visit>
void ForEachPack(const EmulatedBarrier::Copy& copy, Visit visit) {
  const CUtensorMap& map = copy.map;
  const int64_t line_bytes = map.box[0] * map.element_bytes;
  for (int64_t line = 0; line < map.box[1] * map.box[2]; ++line) {
    const std::array<int64_t, 2> index = {copy.at[1] + line % map.box[1],
                                          copy.at[2] + line / map.box[1]};
    const bool inside = copy.at[0] >= 0 && copy.at[0] + map.box[0] <= map.sizes[0] &&
                        copy.at[1] >= 0 && index[0] < map.sizes[1] && copy.at[2] >= 0 &&
                        index[1] < map.sizes[2];
    auto* const to = static_cast<uint8_t*>(copy.to) + line * line_bytes;
    for (int64_t pack = 0; pack < line_bytes / 16; ++pack) {
      const uint32_t address = SharedAddress(to) + static_cast<uint32_t>(16 * pack);
      const uint32_t turn = address >> 7 & (line_bytes == 128 ? 7 : 3);
      visit(DynamicSharedMemory() + (address ^ turn << 4),
            !inside ? nullptr
                    : static_cast<const uint8_t*>(map.base) + index[0] * map.strides[0] +
                          index[1] * map.strides[1] + copy.at[0] * map.element_bytes + 16 * pack);
    }
  }
}

// Fills `to` with NaN at once. The copied values arrive as late as the hardware allows, in
// WaitForPhase.
inline void TmaCopy(void* to, const CUtensorMap* map, int x, int y, int z, SharedBarrier* barrier,
                    uint64_t /*policy*/) {
  const EmulatedBarrier::Copy copy = {to, *map, {x, y, z}};
  ForEachPack(copy, [](uint8_t* pack, const uint8_t* from) {
    std::memset(pack, 0xff, 16);  // NaN in bf16 and FP8
    emulated_box_bytes += 16;
    if (from == nullptr) {
      emulated_box_outside = true;
    } else if (!emulated_waited[EmulatedBlock::Current().fiber()]) {
      emulated_early_boxes.push_back(from);
    }
  });
  emulated_barriers.at(barrier).copies.push_back(copy);
}

inline void Deliver(EmulatedBarrier* state) {
  for (const EmulatedBarrier::Copy& copy : std::exchange(state->copies, {})) {
    ForEachPack(copy, [state](uint8_t* pack, const uint8_t* from) {
      if (from != nullptr) std::memcpy(pack, from, 16);
      state->copied += 16;
    });
  }
}
inline void WaitForPhase(SharedBarrier* barrier, uint32_t parity) {
  constexpr int kMaxYields = 1 << 22;
  EmulatedBarrier& state = emulated_barriers.at(barrier);
  for (int i = 0; state.phase % 2 == parity; ++i) {
    if (i > 0) EmulatedBlock::Current().Yield();
    if (i > kMaxYields) {
      std::fprintf(stderr, "a thread waits for a phase of a barrier that never ends\n");
      std::abort();
    }
    Deliver(&state);
    EndPhaseIfDone(&state);
  }
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_TESTING_EMULATED_TMA_H_
