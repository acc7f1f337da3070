// FlashInfer's FA2 kernel for paged caches with the tables of flash_kernels.h; included by one file
// for each head size.
#ifndef TRITONRL_ROLLOUT_CUDA_FA2_CUH_
#define TRITONRL_ROLLOUT_CUDA_FA2_CUH_

#include <c10/util/Exception.h>

#include <exception>
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/variants.cuh>

#include "rollout/cuda/flash_kernels.h"

namespace tritonrl::fa2 {

using Element = nv_bfloat16;

// FlashInfer takes a sequence's length from the distance between the beginnings of its and the next
// one's pages. Here lengths lie beside, so that sequences may lie in the page table in any order,
// with room to grow.
struct Params : flashinfer::BatchPrefillPagedParams<Element, Element, Element, int32_t> {
  using BatchPrefillPagedParams::BatchPrefillPagedParams;
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

inline Params MakeParams(const Fa2Call& call) {
  const AttentionShape& shape = call.shape;
  // The kernel takes the last positions from lengths, not from the last pages' sizes.
  const flashinfer::paged_kv_t<Element, int32_t> cache(
      shape.key_heads, kPageTokens, shape.head_dim, call.sequences, flashinfer::QKVLayout::kNHD,
      Elements(call.cache.keys), Elements(call.cache.values), Mutable(call.cache.page_table),
      Mutable(call.page_begins), /*last_page_len=*/nullptr);
  Params params(Elements(call.rows.queries), cache, /*maybe_custom_mask=*/nullptr,
                Mutable(call.first_rows), /*maybe_mask_indptr=*/nullptr,
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
  params.block_valid_mask = const_cast<bool*>(call.valid);
  params.padded_batch_size = call.tiles;
  params.max_total_num_rows = call.sequences;
  return params;
}

template <int kTile, int kDim, flashinfer::MaskMode kMask>
void Launch(const Fa2Call& call) {
  using Variant = flashinfer::DefaultAttention</*use_custom_mask=*/false,
                                               /*use_sliding_window=*/false,
                                               /*use_logits_soft_cap=*/false, /*use_alibi=*/false>;
  cudaError_t error = cudaSuccess;
  try {
    error = flashinfer::BatchPrefillWithPagedKVCacheDispatched<
        /*SAME_KV_STRIDES=*/true, kTile, kDim, kDim, flashinfer::PosEncodingMode::kNone,
        /*USE_FP16_QK_REDUCTION=*/false, kMask, Variant, Params>(
        MakeParams(call), Elements(call.part_outs), call.part_lses, /*enable_pdl=*/false,
        static_cast<cudaStream_t>(call.stream));
  } catch (const std::exception& refused) {
    TORCH_CHECK(false, "paged attention: ", refused.what());
  }
  TORCH_CHECK(error == cudaSuccess, "paged attention: ", cudaGetErrorString(error));
}

template <int kDim>
void LaunchTile(Fa2Tile tile, const Fa2Call& call) {
  using flashinfer::MaskMode;
  switch (tile) {
    case Fa2Tile::kDecode:
      return Launch<16, kDim, MaskMode::kNone>(call);
    case Fa2Tile::kShort:
      return Launch<64, kDim, MaskMode::kCausal>(call);
    case Fa2Tile::kLong:
      return Launch<128, kDim, MaskMode::kCausal>(call);
  }
}

}  // namespace tritonrl::fa2

#endif  // TRITONRL_ROLLOUT_CUDA_FA2_CUH_
