// FlashInfer's FA2 kernel for paged caches with the tables of flash_kernels.h; included by one file
// for each head size and type of cache.
#ifndef TRITONRL_ROLLOUT_CUDA_FA2_CUH_
#define TRITONRL_ROLLOUT_CUDA_FA2_CUH_

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/variants.cuh>

#include "model/cuda/programmatic.cuh"
#include "rollout/cuda/flash_kernels.h"

namespace tritonrl::fa2 {

using Element = nv_bfloat16;

template <typename Cached>
Cached* Pool(const void* data) {
  return static_cast<Cached*>(const_cast<void*>(data));
}

// Cached: the type of keys and values. FlashInfer takes a sequence's length from the distance
// between the beginnings of its and the next one's pages. Here lengths lie beside, so that
// sequences may lie in the page table in any order, with room to grow.
template <typename Cached>
struct Params : flashinfer::BatchPrefillPagedParams<Element, Cached, Element, int32_t> {
  using flashinfer::BatchPrefillPagedParams<Element, Cached, Element,
                                            int32_t>::BatchPrefillPagedParams;
  const int32_t* row_counts = nullptr;
  const int32_t* lengths = nullptr;

  __host__ __device__ uint32_t get_qo_len(uint32_t i) const {
    return row_counts == nullptr ? 1 : row_counts[i];
  }
  __host__ __device__ uint32_t get_kv_len(uint32_t i) const { return lengths[i]; }
};

// The tables are only read, but the parameter struct has them as pointers to what may be written.
inline int32_t* Mutable(const int32_t* words) { return const_cast<int32_t*>(words); }
inline Element* Elements(const void* data) {
  return static_cast<Element*>(const_cast<void*>(data));
}

template <typename Cached>
Params<Cached> MakeParams(const Fa2Call& call) {
  const CacheHeads& shape = call.shape;
  // The kernel takes the last positions from lengths, not from the last pages' sizes.
  const flashinfer::paged_kv_t<Cached, int32_t> cache(
      shape.key_heads, kPageTokens, shape.head_dim, call.sequences, flashinfer::QKVLayout::kNHD,
      Pool<Cached>(call.cache.keys), Pool<Cached>(call.cache.values),
      Mutable(call.cache.page_table), Mutable(call.page_begins), /*last_page_len=*/nullptr);
  Params<Cached> params(
      Elements(call.rows.queries), cache, /*maybe_custom_mask=*/nullptr, Mutable(call.first_rows),
      /*maybe_mask_indptr=*/nullptr,
      /*maybe_q_rope_offset=*/nullptr, Elements(call.rows.out), /*lse=*/nullptr,
      /*maybe_alibi_slopes=*/nullptr, shape.query_heads,
      /*q_stride_n=*/shape.query_heads * shape.head_dim, /*q_stride_h=*/shape.head_dim,
      /*window_left=*/-1, /*logits_soft_cap=*/0.0f, call.rows.scale, /*rope_scale=*/1.0f,
      /*rope_theta=*/1e4f);
  params.row_counts = call.row_counts;
  params.lengths = call.lengths;
  params.request_indices = Mutable(call.requests);
  params.qo_tile_indices = Mutable(call.query_tiles);
  params.kv_tile_indices = Mutable(call.key_tiles);
  params.kv_chunk_size_ptr = Mutable(call.tile_tokens);
  params.o_indptr = Mutable(call.part_begins == nullptr ? call.first_rows : call.part_begins);
  params.merge_indptr = Mutable(call.part_begins);
  params.padded_batch_size = call.tiles;
  params.max_total_num_rows = call.sequences;
  return params;
}

using Variant = flashinfer::DefaultAttention</*use_custom_mask=*/false,
                                             /*use_sliding_window=*/false,
                                             /*use_logits_soft_cap=*/false, /*use_alibi=*/false>;

inline cudaStream_t StreamOf(const Fa2Call& call) { return static_cast<cudaStream_t>(call.stream); }

template <typename Cached, int kTile, int kDim, flashinfer::MaskMode kMask>
cudaError_t Run(const Fa2Call& call) {
  return flashinfer::BatchPrefillWithPagedKVCacheDispatched<
      /*SAME_KV_STRIDES=*/true, kTile, kDim, kDim, flashinfer::PosEncodingMode::kNone,
      /*USE_FP16_QK_REDUCTION=*/false, kMask, Variant, Params<Cached>>(
      MakeParams<Cached>(call), /*tmp_v=*/nullptr, /*tmp_s=*/nullptr, /*enable_pdl=*/false,
      StreamOf(call));
}

// Parts of split sequences. FlashInfer's own launch has a block for each tile of the plan, used or
// not, and for the longest lengths there are thousands. Here as many blocks as the GPU holds at a
// time take the tiles that are used in turn.
template <typename Traits, typename Cached>
__global__ void __launch_bounds__(Traits::NUM_THREADS)
    SplitKernel(const __grid_constant__ Params<Cached> params, const int32_t* used_tiles) {
  extern __shared__ uint8_t memory[];
  LetNextKernelBegin();  // FlashInfer's code waits for the kernels before, behind its tables
  auto& storage = reinterpret_cast<typename Traits::SharedStoragePaged&>(memory);
  const uint32_t used = *used_tiles;
  for (uint32_t tile = blockIdx.x; tile < used; tile += gridDim.x) {
    flashinfer::BatchPrefillWithPagedKVCacheDevice<Traits, /*SAME_KV_STRIDES=*/true>(
        params, storage, threadIdx, tile, blockIdx.z, gridDim.z);
  }
}

constexpr int kSplitWarps = 4;   // each takes its share of a step's keys
constexpr int kBlocksEach = 2;   // at least, on a multiprocessor at a time
constexpr int kDecodeTile = 16;  // query heads
constexpr int kKeysOfStep = 16;  // of a warp, times kSteps

template <typename Cached, int kDim, int kSteps>
cudaError_t RunSplit(const Fa2Call& call, int multiprocessors) {
  using Traits = flashinfer::KernelTraits<flashinfer::MaskMode::kNone, kDecodeTile, /*NUM_MMA_Q=*/1,
                                          kSteps, kDim / 16, kDim / 16, /*NUM_WARPS_Q=*/1,
                                          kSplitWarps, flashinfer::PosEncodingMode::kNone, Element,
                                          Cached, Element, float, int32_t, Variant>;
  const auto kernel = SplitKernel<Traits, Cached>;
  const int bytes = sizeof(typename Traits::SharedStoragePaged);
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  int blocks_each = 0;
  error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, kernel, Traits::NUM_THREADS,
                                                        bytes);
  if (error != cudaSuccess) return error;
  Params<Cached> params = MakeParams<Cached>(call);
  params.o = Elements(call.part_outs);
  params.lse = call.part_lses;
  params.partition_kv = true;
  const int heads = call.shape.key_heads;
  const int blocks = (blocks_each * multiprocessors + heads - 1) / heads;
  return LaunchProgrammatic(call.rows.overlap, kernel, dim3(std::min(blocks, call.tiles), 1, heads),
                            dim3(32, 1, kSplitWarps), bytes, StreamOf(call), params,
                            call.part_begins + call.sequences);
}

// As many keys a step as leave room for kBlocksEach blocks.
template <typename Cached, int kDim>
cudaError_t RunSplit(const Fa2Call& call) {
  int device = 0, memory = 0, multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&memory, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  constexpr int kQueryBytes = kDecodeTile * kDim * sizeof(Element);
  constexpr int kRowBytes = kDim * sizeof(Cached);
  constexpr int kStepBytes = 2 * kKeysOfStep * kSplitWarps * kRowBytes;  // of keys and values
  const int steps = (memory / kBlocksEach - kQueryBytes) / kStepBytes;
  if constexpr (kRowBytes <= 128) {
    if (steps >= 4) return RunSplit<Cached, kDim, 4>(call, multiprocessors);
  }
  if (steps >= 2) return RunSplit<Cached, kDim, 2>(call, multiprocessors);
  return RunSplit<Cached, kDim, 1>(call, multiprocessors);
}

template <typename Cached, int kDim>
cudaError_t RunTile(Fa2Tile tile, const Fa2Call& call) {
  using flashinfer::MaskMode;
  switch (tile) {
    case Fa2Tile::kDecode:
      return call.part_begins == nullptr ? Run<Cached, kDecodeTile, kDim, MaskMode::kNone>(call)
                                         : RunSplit<Cached, kDim>(call);
    case Fa2Tile::kShort:
      return Run<Cached, 64, kDim, MaskMode::kCausal>(call);
    case Fa2Tile::kLong:
      return Run<Cached, 128, kDim, MaskMode::kCausal>(call);
  }
  return cudaErrorInvalidValue;
}

template <typename Cached, int kDim>
void Launch(Fa2Tile tile, const Fa2Call& call) {
  cudaError_t error = cudaSuccess;
  try {
    error = RunTile<Cached, kDim>(tile, call);
  } catch (const std::exception& refused) {
    TORCH_CHECK(false, "paged attention: ", refused.what());
  }
  TORCH_CHECK(error == cudaSuccess, "paged attention: ", cudaGetErrorString(error));
}

}  // namespace tritonrl::fa2

#endif  // TRITONRL_ROLLOUT_CUDA_FA2_CUH_
