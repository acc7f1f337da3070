// Emulates the functions of common/ptx.cuh (mma, asynchronous copies, programmatic dependent
// launch) on a CPU, for kernels in an EmulatedBlock. Fragments follow the tables of the PTX ISA.
#ifndef TRITONRL_MODEL_CUDA_TESTING_EMULATED_MMA_H_
#define TRITONRL_MODEL_CUDA_TESTING_EMULATED_MMA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "model/cuda/testing/emulated_block.h"

// Replaces common/ptx.cuh: its include guard is now defined.
#define TRITONRL_MODEL_CUDA_COMMON_PTX_CUH_

namespace tritonrl {

// Per thread: whether it has called GridDependencySync, so that earlier kernels have ended.
inline std::array<bool, EmulatedBlock::kFibers> emulated_waited;

inline void TriggerDependentLaunch() { emulated_waited[EmulatedBlock::Current().fiber()] = false; }
inline void GridDependencySync() { emulated_waited[EmulatedBlock::Current().fiber()] = true; }

inline constexpr size_t kEmulatedSharedBytes = 228 << 10;

inline uint8_t* DynamicSharedMemory() {
  static std::array<std::vector<uint4>, EmulatedBlock::kCluster> memory;
  std::vector<uint4>& of_block = memory[EmulatedBlock::Current().rank()];
  of_block.resize(kEmulatedSharedBytes / sizeof(uint4));
  return reinterpret_cast<uint8_t*>(of_block.data());
}

// Addresses are offsets from the beginning of the block's shared memory.
inline uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(static_cast<const uint8_t*>(shared) - DynamicSharedMemory());
}
inline uint32_t KeepInRegister(uint32_t x) { return x; }
inline float PowerOfTwo(float x) { return std::exp2(x); }

// Returns the values that the threads of the warp pass, indexed by lane. All of them make the call.
template <typename T>
std::array<T, 32> OfWarp(const T& value) {
  static std::array<T, EmulatedBlock::kFibers> all;
  EmulatedBlock& block = EmulatedBlock::Current();
  all[block.fiber()] = value;
  block.WaitForWarp();
  std::array<T, 32> values;
  std::copy_n(&all[block.fiber() / 32 * 32], 32, values.begin());
  block.WaitForWarp();
  return values;
}

inline uint16_t HalfBits(uint32_t pair, int64_t which) {
  return static_cast<uint16_t>(which == 0 ? pair & 0xffff : pair >> 16);
}

// Emulates mma.m16n8k16; to_float converts an element's bits.
template <typename ToFloat>
void EmulatedMultiplyAdd(float (&d)[4], const std::array<uint32_t, 6>& mine, ToFloat to_float) {
  const auto lanes = OfWarp(mine);
  const int lane = EmulatedBlock::Current().thread() % 32;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) {
      const uint32_t a = lanes[row % 8 * 4 + k % 8 / 2][row / 8 + 2 * (k / 8)];
      const uint32_t b = lanes[column * 4 + k % 8 / 2][4 + k / 8];
      d[i] += to_float(HalfBits(a, k % 2)) * to_float(HalfBits(b, k % 2));
    }
  }
}
inline void MmaBf16(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                    uint32_t b1) {
  EmulatedMultiplyAdd(d, {a0, a1, a2, a3, b0, b1}, [](uint16_t bits) {
    return __bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{bits}));
  });
}
inline void MmaFp16(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                    uint32_t b1) {
  EmulatedMultiplyAdd(d, {a0, a1, a2, a3, b0, b1},
                      [](uint16_t bits) { return __half2float(__half(__half_raw{bits})); });
}

inline uint16_t ElementAt(uint32_t row, int element) {
  uint16_t bits;
  std::memcpy(&bits, DynamicSharedMemory() + row + 2 * element, 2);
  return bits;
}
inline void LoadMatrices(uint32_t row, uint32_t (&to)[4]) {
  const auto rows = OfWarp(row);
  const int lane = EmulatedBlock::Current().thread() % 32;
  for (int m = 0; m < 4; ++m) {
    const uint32_t from = rows[8 * m + lane / 4];
    to[m] = ElementAt(from, lane % 4 * 2) | ElementAt(from, lane % 4 * 2 + 1) << 16;
  }
}
inline void LoadTransposed(uint32_t row, uint32_t (&to)[4]) {
  const auto rows = OfWarp(row);
  const int lane = EmulatedBlock::Current().thread() % 32;
  for (int m = 0; m < 4; ++m) {
    to[m] = ElementAt(rows[8 * m + lane % 4 * 2], lane / 4) |
            ElementAt(rows[8 * m + lane % 4 * 2 + 1], lane / 4) << 16;
  }
}
inline uint32_t Transposed(uint32_t pair) {
  const auto pairs = OfWarp(pair);
  const int lane = EmulatedBlock::Current().thread() % 32;
  const auto element = [&](int row) {
    return static_cast<uint32_t>(HalfBits(pairs[row * 4 + lane / 4 / 2], lane / 4 % 2));
  };
  return element(lane % 4 * 2) | element(lane % 4 * 2 + 1) << 16;
}

// The copies of a thread. They take effect as late as the hardware allows: in WaitForCopies.
struct EmulatedCopies {
  struct Copy {
    void* to;
    const void* from;
    int bytes;
  };
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> groups;

  static EmulatedCopies& OfThread() {
    static std::array<EmulatedCopies, EmulatedBlock::kFibers> all;
    return all[EmulatedBlock::Current().fiber()];
  }
};
inline int64_t emulated_bytes_copied = 0;
// Sources of the copies that started before GridDependencySync.
inline std::vector<const void*> emulated_early_copies;

inline void CopyAsync(void* to, const void* from, int bytes) {
  if (!emulated_waited[EmulatedBlock::Current().fiber()] && bytes > 0) {
    emulated_early_copies.push_back(from);
  }
  EmulatedCopies::OfThread().open.push_back({to, from, bytes});
}
inline void EndCopies() {
  EmulatedCopies& copies = EmulatedCopies::OfThread();
  copies.groups.push_back(std::move(copies.open));
  copies.open.clear();
}
template <int kPending>
void WaitForCopies() {
  EmulatedCopies& copies = EmulatedCopies::OfThread();
  for (; copies.groups.size() > kPending; copies.groups.pop_front()) {
    for (const auto& copy : copies.groups.front()) {
      std::memset(copy.to, 0, 16);
      std::memcpy(copy.to, copy.from, copy.bytes);
      emulated_bytes_copied += copy.bytes;
    }
  }
}

inline int32_t EmulatedShuffle(unsigned /*mask*/, int32_t value, int lane) {
  return OfWarp(value)[lane];
}
inline bool EmulatedAny(unsigned /*mask*/, bool value) {
  bool any = false;
  for (const bool of_lane : OfWarp(value)) any |= of_lane;
  return any;
}
inline uint32_t EmulatedBallot(unsigned /*mask*/, bool value) {
  const std::array<bool, 32> of_lanes = OfWarp(value);
  uint32_t bits = 0;
  for (int lane = 0; lane < 32; ++lane) bits |= static_cast<uint32_t>(of_lanes[lane]) << lane;
  return bits;
}
inline uint32_t EmulatedBytePerm(uint32_t x, uint32_t y, uint32_t selector) {
  const uint64_t both = uint64_t{y} << 32 | x;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(both >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
  }
  return result;
}

// Needs no atomic operation, because fibers run one at a time.
inline int32_t AddOrdered(int32_t* to, int32_t by) {
  *to += by;
  return *to - by;
}

}  // namespace tritonrl

#define __ldcg(from) (*(from))

#define __shfl_sync ::tritonrl::EmulatedShuffle
#define __any_sync ::tritonrl::EmulatedAny
#define __ballot_sync ::tritonrl::EmulatedBallot
#define __byte_perm ::tritonrl::EmulatedBytePerm

#endif  // TRITONRL_MODEL_CUDA_TESTING_EMULATED_MMA_H_
