#include <c10/util/Exception.h>
#include <float.h>

#include "model/cuda/fused/dispatch.cuh"
#include "rollout/cuda/sampling/gpu_sampler.h"
#include "rollout/cuda/sampling/radix_select.cuh"
#include "rollout/cuda/sampling/sampling_primitives.cuh"

namespace tritonrl {
namespace {

constexpr int kTileWarps = 8;
constexpr int kTilePacks = kTileLogits / 4 / 32;  // of 16 bytes, for each lane
constexpr int kMaxDraws = 65535;                  // a launch's limit
// Without top_k, DrawFromLargest tries the logits from the kTriedTiles-th largest tile maximum on.
constexpr int kTriedTiles = 128;

// Maximum and sum of a tile: kTileLogits adjacent logits.
struct TileSum {
  float max;
  float sum;  // of exp((logit - max) / temperature); NaN if a logit is not finite
};

int TilesOf(int64_t vocab) { return static_cast<int>((vocab + kTileLogits - 1) / kTileLogits); }

// One warp for each tile of each draw's row. Most draws need no other pass over all logits.
__global__ void __launch_bounds__(kTileWarps * 32)
    TileSumsKernel(SamplingBatch batch, int tiles, TileSum* sums) {
  const int tile = blockIdx.x * kTileWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  const SamplingRow& draw = batch.draws[blockIdx.y];
  if (tile >= tiles || draw.logits_row < 0) return;
  const LogitsRow row(batch, draw);
  Pack<float> z[kTilePacks];
#pragma unroll
  for (int i = 0; i < kTilePacks; ++i) {
    const int pack = tile * (kTileLogits / 4) + i * 32 + lane;
    z[i] = pack < row.vocab / 4 ? Load(row.logits, pack)
                                : Pack<float>{-FLT_MAX, -FLT_MAX, -FLT_MAX, -FLT_MAX};
  }
  float max = -FLT_MAX, sum = 0;
  bool finite = true;
#pragma unroll
  for (int i = 0; i < kTilePacks; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      max = fmaxf(max, z[i].values[k]);
      finite = finite && fabsf(z[i].values[k]) <= FLT_MAX;
    }
  }
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(~0u, max, step));
#pragma unroll
  for (int i = 0; i < kTilePacks; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += expf((z[i].values[k] - max) * row.scale);
  }
  sum = WarpSum(sum);
  finite = __all_sync(~0u, finite);
  if (lane == 0) {
    sums[static_cast<int64_t>(blockIdx.y) * tiles + tile] = {max, finite ? sum : NAN};
  }
}

// The lowest token of a tile for which holds(sum, own, logit), else -1. `own` is the token's weight
// and `sum` the running sum of weights in the tile up to it: the total of all earlier lanes, then
// this lane's tokens one by one. Must be called by a whole warp.
template <typename Weight, typename Holds>
__device__ int FirstInTile(const LogitsRow& row, int tile, Weight weight, Holds holds) {
  const int lane = threadIdx.x % 32, begin = tile * kTileLogits + lane * (kTileLogits / 32);
  double sum = 0;
  for (int i = 0; i < kTileLogits / 32 && begin + i < row.vocab; ++i) {
    sum += weight(row.logits[begin + i]);
  }
  double before = WarpScan(sum) - sum;
  int found = INT_MAX;
  for (int i = 0; i < kTileLogits / 32 && begin + i < row.vocab; ++i) {
    const float logit = row.logits[begin + i];
    const double own = weight(logit);
    before += own;
    if (holds(before, own, logit)) {
      found = begin + i;
      break;
    }
  }
  found = __reduce_min_sync(~0u, found);
  return found == INT_MAX ? -1 : found;
}

// The last token of a tile whose weight is not 0.
template <typename Weight>
__device__ int LastInTile(const LogitsRow& row, int tile, Weight weight) {
  int last = -1;
  for (int i = threadIdx.x % 32; i < kTileLogits; i += 32) {
    const int id = tile * kTileLogits + i;
    if (id < row.vocab && weight(row.logits[id]) > 0) last = id;
  }
  return __reduce_max_sync(~0u, last);
}

// For temperature 0: the lowest token with the largest logit.
__device__ int LargestToken(const LogitsRow& row, const TileSum* sums, int tiles) {
  const int tile = BlockFirst(tiles, [&](int i) { return sums[i].max == row.max; });
  return FirstInTile(
      row, tile, [](float) { return 0.0; },
      [&](double, double, float logit) { return logit == row.max; });
}

// The token at which the running sum of weights, in the order of ids, exceeds uniform * total.
// prefix: running sums of the tiles' weights.
__device__ int DrawFromAll(const LogitsRow& row, const TileSum* sums, const double* prefix,
                           int tiles, double uniform) {
  const double target = uniform * prefix[tiles - 1];
  int tile = BlockFirst(tiles, [&](int i) { return prefix[i] > target; });
  if (tile == tiles) {  // uniform * total was rounded up: take the last tile with a weight
    tile = tiles - 1;
    while (tile > 0 && prefix[tile] == prefix[tile - 1]) --tile;
  }
  // Weights are relative to the tile's own maximum, as in the tile's sum.
  const float max = sums[tile].max;
  const double part = exp((static_cast<double>(max) - row.max) * row.scale);
  const double rest = (target - (tile > 0 ? prefix[tile - 1] : 0.0)) / part;
  const auto weight = [&](float logit) -> double { return expf((logit - max) * row.scale); };
  const int token = FirstInTile(
      row, tile, weight, [&](double sum, double own, float) { return own > 0 && sum > rest; });
  return token >= 0 ? token : LastInTile(row, tile, weight);
}

// The `rank`-th largest (from 1) of the tiles' maxima: at least `rank` logits are that large.
__device__ float RankedMax(const TileSum* sums, int tiles, int rank) {
  __shared__ float found;
  for (int i = threadIdx.x; i < tiles; i += kDrawThreads) {
    int above = 0;
    for (int j = 0; j < tiles; ++j) {
      above += sums[j].max > sums[i].max || (sums[j].max == sums[i].max && j < i);
    }
    if (above == rank - 1) found = sums[i].max;
  }
  __syncthreads();
  return found;
}

// Sorts all logits that are at least `least`. Returns their number, or -1 if there are more than
// kCandidates. Places are as in PlaceOf, but the key is the logit itself.
__device__ int SortLargest(const LogitsRow& row, const TileSum* sums, int tiles, float least,
                           SelectMemory* memory) {
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) memory->count = 0;
  __syncthreads();
  for (int tile = threadIdx.x / 32; tile < tiles; tile += kDrawWarps) {
    if (sums[tile].max < least) continue;
#pragma unroll
    for (int i = 0; i < kTilePacks; ++i) {
      const int pack = tile * (kTileLogits / 4) + i * 32 + lane;
      if (pack >= row.vocab / 4) continue;
      const Pack<float> z = Load(row.logits, pack);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (z.values[k] < least) continue;
        const int place = atomicAdd(&memory->count, 1);
        if (place < kCandidates) {
          memory->sorted.places[place] = PlaceOf(~Ordered(z.values[k]), pack * 4 + k);
        }
      }
    }
  }
  __syncthreads();
  const int count = memory->count;
  if (count > kCandidates) return -1;
  BlockSort(count, memory->sorted.places);
  return count;
}

// The token that sampler.h's cuts and the inversion in the order of weights select, if the few
// largest logits are enough for it; else -1. total: sum of all weights.
__device__ int DrawFromLargest(const LogitsRow& row, const SamplingRow& draw, const TileSum* sums,
                               int tiles, double total, double uniform, SelectMemory* memory) {
  const bool all = row.vocab <= kCandidates;
  const int rank = draw.top_k > 0 ? draw.top_k : kTriedTiles;
  if (!all && rank > tiles) return -1;
  const float least = all ? -FLT_MAX : RankedMax(sums, tiles, rank);
  int kept = SortLargest(row, sums, tiles, least, memory);
  if (kept < 0) return -1;
  double* prefix = reinterpret_cast<double*>(memory->sorted.sums);
  const uint64_t* places = memory->sorted.places;
  BlockPrefix(kept, prefix, [&](int i) -> double {
    return row.Weight(FromOrdered(~static_cast<uint32_t>(places[i] >> 32)));
  });
  double mass = total;
  if (draw.top_k > 0) {
    kept = min(kept, draw.top_k);
    mass = prefix[kept - 1];
  }
  if (draw.top_p < 1) {
    const double wanted = draw.top_p * mass;
    if (!all && draw.top_k == 0 && prefix[kept - 1] < wanted) return -1;
    kept = min(kept, 1 + BlockFirst(kept, [&](int i) { return prefix[i] >= wanted; }));
    mass = prefix[kept - 1];
  }
  const double target = uniform * mass;
  const int at = BlockFirst(kept - 1, [&](int i) { return prefix[i] > target; });
  return static_cast<int>(places[at] & UINT32_MAX);
}

union DrawMemory {
  double prefix[(kMaxVocab + kTileLogits - 1) / kTileLogits];
  SelectMemory select;
};

// Sets the row's largest logit and the running sums of its tiles' weights. Returns false if a logit
// is not finite.
__device__ bool SumTiles(const TileSum* sums, int tiles, LogitsRow* row, double* prefix) {
  float max = -FLT_MAX;
  int broken = INT_MAX;
  for (int i = threadIdx.x; i < tiles; i += kDrawThreads) {
    max = fmaxf(max, sums[i].max);
    if (isnan(sums[i].sum)) broken = i;
  }
  row->max = BlockMax(max);
  if (BlockMin(broken) != INT_MAX) return false;
  BlockPrefix(tiles, prefix, [&](int i) {
    return sums[i].sum * exp((static_cast<double>(sums[i].max) - row->max) * row->scale);
  });
  return true;
}

// One block for each draw.
__global__ void __launch_bounds__(kDrawThreads)
    DrawKernel(SamplingBatch batch, int tiles, const TileSum* all_sums) {
  __shared__ __align__(16) unsigned char memory_bytes[sizeof(DrawMemory)];
  DrawMemory* memory = reinterpret_cast<DrawMemory*>(memory_bytes);
  const SamplingRow& draw = batch.draws[blockIdx.x];
  if (draw.logits_row < 0) return;
  const TileSum* sums = all_sums + static_cast<int64_t>(blockIdx.x) * tiles;
  LogitsRow row(batch, draw);
  DrawnToken drawn = {-1, NAN};
  if (SumTiles(sums, tiles, &row, memory->prefix)) {
    const double total = memory->prefix[tiles - 1];
    const double uniform = PhiloxUniform(draw.key, static_cast<uint64_t>(draw.position));
    if (draw.temperature == 0) {
      drawn.token = LargestToken(row, sums, tiles);
    } else if (draw.top_p >= 1 && draw.top_k == 0) {
      drawn.token = DrawFromAll(row, sums, memory->prefix, tiles, uniform);
    } else {
      __syncthreads();  // `select` reuses the memory of `prefix`
      drawn.token = DrawFromLargest(row, draw, sums, tiles, total, uniform, &memory->select);
      if (drawn.token < 0) drawn.token = DrawBySelecting(row, draw, uniform, &memory->select);
    }
    const double scale = draw.temperature == 0 ? 1.0 : 1.0 / draw.temperature;
    const double difference = static_cast<double>(row.logits[drawn.token]) - row.max;
    drawn.log_prob = static_cast<float>(difference * scale - log(total));
  }
  if (threadIdx.x != 0) return;
  batch.drawn[blockIdx.x] = drawn;
  if (batch.last_tokens != nullptr && draw.slot >= 0) {
    batch.last_tokens[draw.slot] = max(drawn.token, 0);
  }
}

}  // namespace

int64_t SamplingWorkspaceBytes(int count, int64_t vocab) {
  return int64_t{count} * TilesOf(vocab) * static_cast<int64_t>(sizeof(TileSum));
}

void LaunchSampling(const SamplingBatch& batch) {
  TORCH_CHECK(batch.vocab > 0 && batch.vocab % 4 == 0 && batch.vocab <= kMaxVocab, "sampling from ",
              batch.vocab, " logits: a multiple of 4 up to ", kMaxVocab, " is taken");
  TORCH_CHECK(batch.count <= kMaxDraws, batch.count, " draws in a launch: at most ", kMaxDraws);
  if (batch.count == 0) return;
  const int tiles = TilesOf(batch.vocab);
  TileSum* sums = static_cast<TileSum*>(batch.workspace);
  const dim3 grid((tiles + kTileWarps - 1) / kTileWarps, batch.count);
  TileSumsKernel<<<grid, kTileWarps * 32, 0, StreamOf(batch.stream)>>>(batch, tiles, sums);
  CheckLaunch("sums of logits");
  DrawKernel<<<batch.count, kDrawThreads, 0, StreamOf(batch.stream)>>>(batch, tiles, sums);
  CheckLaunch("drawing of tokens");
}

}  // namespace tritonrl
