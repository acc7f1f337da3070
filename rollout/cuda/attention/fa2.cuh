// FlashInfer's FA2 kernel for paged caches with the tables of flashinfer_kernels.h. One source file
// for each cache type includes this header.
#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_FA2_CUH_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_FA2_CUH_

#include <c10/util/Exception.h>

#include <exception>
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/variants.cuh>

#include "rollout/cuda/attention/flashinfer_kernels.h"

namespace tritonrl::fa2 {

using Element = nv_bfloat16;

template <typename Cached>
Cached* Pool(const void* data) {
  return static_cast<Cached*>(const_cast<void*>(data));
}

// Cached: the element type of keys and values. FlashInfer derives a sequence's length from the
// distance between its first page and the next sequence's. Here the lengths are an array of their
// own, so that sequences can be in the page table in any order, with room to grow.
template <typename Cached>
struct Params : flashinfer::BatchPrefillPagedParams<Element, Cached, Element, int32_t> {
  using flashinfer::BatchPrefillPagedParams<Element, Cached, Element,
                                            int32_t>::BatchPrefillPagedParams;
  const int32_t* row_counts = nullptr;
  const int32_t* lengths = nullptr;

  __host__ __device__ uint32_t get_qo_len(uint32_t i) const { return row_counts[i]; }
  __host__ __device__ uint32_t get_kv_len(uint32_t i) const { return lengths[i]; }
};

// The kernel only reads the tables, but its parameter struct has non-const pointers.
inline int32_t* Mutable(const int32_t* words) { return const_cast<int32_t*>(words); }
inline Element* Elements(const void* data) {
  return static_cast<Element*>(const_cast<void*>(data));
}

template <typename Cached>
Params<Cached> MakeParams(const Fa2Call& call) {
  const CacheHeads& shape = call.shape;
  // The kernel uses Params::lengths in place of last_page_len.
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
  params.o_indptr = Mutable(call.first_rows);
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

template <typename Cached, int kDim>
cudaError_t RunTile(Fa2Tile tile, const Fa2Call& call) {
  using flashinfer::MaskMode;
  switch (tile) {
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

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_FA2_CUH_
