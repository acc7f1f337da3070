#include "rollout/cuda/attention/paged_attention.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/util/Exception.h>

#include "rollout/cuda/attention/decode_attention.h"
#include "rollout/cuda/attention/flashinfer_kernels.h"

namespace tritonrl {
namespace {

// Maximum number of query heads per key head in FlashInfer's tiles.
constexpr int kMaxGroup = 16;

void CheckShape(const CacheHeads& shape) {
  TORCH_CHECK(shape.head_dim == 64 || shape.head_dim == 128,
              "paged attention takes heads of 64 or ", "128 elements, not ", shape.head_dim);
  TORCH_CHECK(shape.key_heads > 0 && shape.query_heads % shape.key_heads == 0 &&
                  shape.query_heads <= kMaxGroup * shape.key_heads,
              "paged attention takes 1 to ", kMaxGroup, " query heads for each key head, not ",
              shape.query_heads, " for ", shape.key_heads);
}

void LaunchFa2(Fa2Tile tile, const Fa2Call& call) {
  const bool fp8 = call.shape.type == CacheType::kE4M3;
  if (call.shape.head_dim == 64) {
    (fp8 ? LaunchFa2Fp8Dim64 : LaunchFa2Dim64)(tile, call);
  } else {
    (fp8 ? LaunchFa2Fp8Dim128 : LaunchFa2Dim128)(tile, call);
  }
}

void LaunchFa2Chunks(Fa2Tile tile, const CacheHeads& shape, const PagedKeysValues& cache,
                     const Fa2Chunks& chunks, const int32_t* words, const AttentionRows& rows,
                     void* stream) {
  if (chunks.chunks == 0) return;
  LaunchFa2(tile, {.shape = shape,
                   .cache = cache,
                   .rows = rows,
                   .sequences = chunks.chunks,
                   .tiles = chunks.tiles,
                   .first_rows = words + chunks.first_rows,
                   .row_counts = words + chunks.rows,
                   .lengths = words + chunks.lengths,
                   .page_begins = words + chunks.page_begins,
                   .requests = words + chunks.requests,
                   .query_tiles = words + chunks.query_tiles,
                   .key_tiles = words + chunks.key_tiles,
                   .tile_tokens = words + chunks.tile_tokens,
                   .stream = stream});
}

}  // namespace

void LaunchDecodeAttention(const CacheHeads& shape, const PagedKeysValues& cache,
                           const DecodePlan& plan, const DecodeArrays& arrays,
                           const AttentionRows& rows, const DecodeScratch& scratch, void* stream) {
  CheckShape(shape);
  TORCH_CHECK(rows.rows == plan.rows(), rows.rows, " rows by a plan for ", plan.rows());
  const int tile_rows = plan.tile_rows();
  TORCH_CHECK(
      tile_rows <=
          DecodeSharingFor(shape.query_heads, shape.key_heads, /*batch_invariant=*/false).tile_rows,
      tile_rows, " rows read together, of ", shape.query_heads, " heads");
  TORCH_CHECK(rows.scale > 0, "scores scaled by ", rows.scale);
  auto* const parts = static_cast<uint16_t*>(scratch.partial);
  const int64_t part_elements = int64_t{plan.tiles()} * shape.query_heads * shape.head_dim;
  LaunchDecodeTiles({.shape = shape,
                     .queries = rows.queries,
                     .keys = cache.keys,
                     .values = cache.values,
                     .page_table = cache.page_table,
                     .tiles = arrays.tiles,
                     .rows = arrays.rows,
                     .used_tiles = arrays.used_tiles,
                     .max_tiles = plan.tiles(),
                     .out = rows.out,
                     .parts = parts,
                     .lses = reinterpret_cast<float*>(parts + part_elements),
                     .arrived = scratch.arrived,
                     .scale = rows.scale,
                     .overlap = rows.overlap,
                     .threads_copy = rows.threads_copy,
                     .stream = stream});
}

void LaunchPrefillAttention(const CacheHeads& shape, const PagedKeysValues& cache,
                            const PrefillPlan& plan, const int32_t* words,
                            const AttentionRows& rows, void* stream) {
  CheckShape(shape);
  LaunchFa2Chunks(Fa2Tile::kShort, shape, cache, plan.short_chunks, words, rows, stream);
  LaunchFa2Chunks(Fa2Tile::kLong, shape, cache, plan.long_chunks, words, rows, stream);
  if (plan.hopper_chunks.pieces > 0) {
    LaunchFa3Dim128(shape, cache, plan.hopper_chunks, words, rows, stream);
  }
}

PrefillDevice CurrentPrefillDevice() {
  const cudaDeviceProp& gpu = *at::cuda::getCurrentDeviceProperties();
  return {.hopper = gpu.major == 9 && gpu.minor == 0, .multiprocessors = gpu.multiProcessorCount};
}

}  // namespace tritonrl
