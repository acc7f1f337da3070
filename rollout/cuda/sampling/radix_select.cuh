// Draws for rows in which a few largest logits are not enough: nearly uniform rows, many equal
// logits, a large top_k. Histograms find places in the order of weights; each histogram covers a
// 2,048th of the interval of the one before, so any row takes a fixed number of passes.
#ifndef TRITONRL_ROLLOUT_CUDA_SAMPLING_RADIX_SELECT_CUH_
#define TRITONRL_ROLLOUT_CUDA_SAMPLING_RADIX_SELECT_CUH_

#include <cstdint>

#include "rollout/cuda/sampling/sampling_primitives.cuh"

namespace tritonrl {

inline constexpr int kCandidates = 2048;  // tokens that are sorted in shared memory
inline constexpr int kBins = 2048;

// A token's key is its distance from the most likely token: the natural logarithm of the ratio of
// their weights, in units of 2^-27. Tokens that are e^32 times less likely have the largest key.
// The cuts keep tokens in the order of ascending keys, then ascending ids.
inline constexpr uint32_t kLastKey = UINT32_MAX;
inline constexpr float kKeysOfOne = 0x1p27f;

__device__ inline uint32_t KeyOf(const LogitsRow& row, float logit) {
  const float distance = (row.max - logit) * row.scale;
  return distance < 32.0f ? __float2uint_rz(distance * kKeysOfOne) : kLastKey;
}

// A token's mass is its weight in units of 2^-44. It is an integer, so that sums are the same in
// any order; over a vocabulary of fewer than 2^20 tokens they are below 2^64.
__device__ inline uint64_t MassOf(uint32_t key) {
  static_assert(kMaxVocab <= UINT64_MAX >> 44);
  if (key == kLastKey) return 0;
  return __float2ull_rn(expf(static_cast<float>(key) * (-1.0f / kKeysOfOne)) * 0x1p44f);
}

// A token's place in the order: its key in the high word, its id in the low word.
__device__ inline uint64_t PlaceOf(uint32_t key, int id) {
  return static_cast<uint64_t>(key) << 32 | static_cast<uint32_t>(id);
}
inline constexpr uint64_t kLastPlace = UINT64_MAX;

struct SelectMemory {
  union {
    struct {
      uint32_t counts[kBins], low[kBins], high[kBins];  // mass of a bin: high 2^32 + low
      uint64_t sums[kBins / 2];
    } bins;
    struct {
      uint64_t places[kCandidates], sums[kCandidates];
    } sorted;
  };
  int count;
};

// The measure of the tokens up to a place: their number or their mass.
enum class Measure { kTokens, kMass };

__device__ inline uint64_t MeasureOf(Measure measure, uint32_t key) {
  return measure == Measure::kTokens ? 1 : MassOf(key);
}

// The mass of all tokens up to `last`.
__device__ inline uint64_t MassUpTo(const LogitsRow& row, uint64_t last) {
  uint64_t sum = 0, total;
  row.ForEach([&](int id, float logit) {
    const uint32_t key = KeyOf(row, logit);
    if (PlaceOf(key, id) <= last) sum += MassOf(key);
  });
  BlockScan(sum, &total);
  return total;
}

struct KeyInterval {
  uint32_t low, high;  // keys, both included
  uint64_t before;     // measure of the tokens with smaller keys
  uint32_t tokens;     // number of tokens in the interval
};

// Divides `in` into bins of 2^shift keys and returns the bin in which the measure of the tokens up
// to `last` reaches `wanted`. It must reach `wanted` within `in`.
__device__ inline KeyInterval ReachingBin(const LogitsRow& row, Measure measure, uint64_t wanted,
                                          uint64_t last, const KeyInterval& in, int shift,
                                          SelectMemory* memory) {
  auto& bins = memory->bins;
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += kDrawThreads) {
    bins.counts[i] = bins.low[i] = bins.high[i] = 0;
  }
  __syncthreads();
  row.ForEach([&](int id, float logit) {
    const uint32_t key = KeyOf(row, logit);
    if (key < in.low || key > in.high || PlaceOf(key, id) > last) return;
    const uint32_t bin = (key - in.low) >> shift;
    atomicAdd(&bins.counts[bin], 1u);
    if (measure == Measure::kTokens) return;
    // Shared memory has 32-bit atomic additions: two make a 64-bit sum, with the carry passed on.
    const uint64_t mass = MassOf(key);
    const uint32_t low = static_cast<uint32_t>(mass);
    const uint32_t old = atomicAdd(&bins.low[bin], low);
    const uint32_t high = static_cast<uint32_t>(mass >> 32) + (old + low < old ? 1u : 0u);
    if (high != 0) atomicAdd(&bins.high[bin], high);
  });
  __syncthreads();
  const auto measured = [&](int bin) -> uint64_t {
    if (measure == Measure::kTokens) return bins.counts[bin];
    return (static_cast<uint64_t>(bins.high[bin]) << 32) + bins.low[bin];
  };
  // Finds the pair of bins, then the bin of the pair.
  BlockPrefix(kBins / 2, bins.sums, [&](int i) { return measured(2 * i) + measured(2 * i + 1); });
  const int pair =
      BlockFirst(kBins / 2 - 1, [&](int i) { return in.before + bins.sums[i] >= wanted; });
  const uint64_t before = in.before + (pair > 0 ? bins.sums[pair - 1] : 0);
  const bool second = before + measured(2 * pair) < wanted;
  const uint32_t bin = 2 * pair + (second ? 1 : 0);
  const uint32_t low = in.low + (bin << shift);
  return {low, low + ((1u << shift) - 1), before + (second ? measured(bin - 1) : 0),
          bins.counts[bin]};
}

// Returns the lowest place in `in` (at most kCandidates tokens), up to `last`, at which the measure
// reaches `wanted`. *reached: the measure there.
__device__ inline uint64_t ReachingPlace(const LogitsRow& row, Measure measure, uint64_t wanted,
                                         uint64_t last, const KeyInterval& in, SelectMemory* memory,
                                         uint64_t* reached) {
  auto& sorted = memory->sorted;
  __syncthreads();
  if (threadIdx.x == 0) memory->count = 0;
  __syncthreads();
  row.ForEach([&](int id, float logit) {
    const uint32_t key = KeyOf(row, logit);
    const uint64_t place = PlaceOf(key, id);
    if (key < in.low || key > in.high || place > last) return;
    sorted.places[atomicAdd(&memory->count, 1)] = place;
  });
  __syncthreads();
  const int count = memory->count;
  BlockSort(count, sorted.places);
  BlockPrefix(count, sorted.sums, [&](int i) {
    return MeasureOf(measure, static_cast<uint32_t>(sorted.places[i] >> 32));
  });
  const int at = BlockFirst(count - 1, [&](int i) { return in.before + sorted.sums[i] >= wanted; });
  *reached = in.before + sorted.sums[at];
  return sorted.places[at];
}

// The place of the `rank`-th token (from 1) with this key, in the order of ids.
__device__ inline uint64_t PlaceOfRank(const LogitsRow& row, uint32_t key, uint64_t rank) {
  __shared__ int found;
  uint64_t before = 0;
  for (int begin = 0; begin < row.vocab; begin += kDrawThreads) {
    const int id = begin + threadIdx.x;
    const bool hit = id < row.vocab && KeyOf(row, row.logits[id]) == key;
    uint64_t total;
    const uint64_t sum = before + BlockScan<uint64_t>(hit ? 1 : 0, &total);
    if (hit && sum == rank) found = id;
    before += total;
    if (before >= rank) break;
  }
  __syncthreads();
  return PlaceOf(key, found);
}

// Returns the lowest place at which the measure of all tokens up to it reaches `wanted`. *reached:
// the measure there. `wanted` is at least 1, and the tokens up to `last` must reach it.
__device__ inline uint64_t Reach(const LogitsRow& row, Measure measure, uint64_t wanted,
                                 uint64_t last, SelectMemory* memory, uint64_t* reached) {
  KeyInterval in = {0, kLastKey, 0, 0};
  for (const int shift : {21, 10, 0}) {
    in = ReachingBin(row, measure, wanted, last, in, shift, memory);
    if (in.tokens <= kCandidates) {
      return ReachingPlace(row, measure, wanted, last, in, memory, reached);
    }
  }
  const uint64_t each = MeasureOf(measure, in.low);  // not 0: the measure reaches `wanted` here
  const uint64_t rank = (wanted - in.before + each - 1) / each;
  *reached = in.before + rank * each;
  return PlaceOfRank(row, in.low, rank);
}

// The token that sampler.h's cuts and inversion select.
__device__ inline int DrawBySelecting(const LogitsRow& row, const SamplingRow& draw, double uniform,
                                      SelectMemory* memory) {
  uint64_t last = kLastPlace, reached;
  if (draw.top_k > 0 && draw.top_k < row.vocab) {
    last = Reach(row, Measure::kTokens, draw.top_k, last, memory, &reached);
  }
  uint64_t mass = MassUpTo(row, last);
  if (draw.top_p < 1) {
    const double wanted = draw.top_p * static_cast<double>(mass);
    const uint64_t units = __double2ull_ru(wanted);
    // Rounding may take `units` out of [1, mass].
    const uint64_t asked = min(mass, max(units, uint64_t{1}));
    last = Reach(row, Measure::kMass, asked, last, memory, &mass);
  }
  const uint64_t below = __double2ull_rz(uniform * static_cast<double>(mass));
  last = Reach(row, Measure::kMass, min(mass, below + 1), last, memory, &reached);
  return static_cast<int>(last & UINT32_MAX);
}

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_SAMPLING_RADIX_SELECT_CUH_
