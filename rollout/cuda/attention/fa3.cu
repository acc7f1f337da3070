#include <c10/util/Exception.h>

#include <exception>
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>

#include "rollout/cuda/attention/flashinfer_kernels.h"

namespace tritonrl {
namespace {

using Element = cutlass::bfloat16_t;
using Params = flashinfer::BatchPrefillPagedParams<Element, Element, Element, int32_t>;

constexpr int kDim = 128;

Element* Elements(const void* data) { return static_cast<Element*>(const_cast<void*>(data)); }

Params MakeParams(const CacheHeads& shape, const PagedKeysValues& cache, const Fa3Chunks& chunks,
                  const int32_t* words, const AttentionRows& rows) {
  int32_t* at = const_cast<int32_t*>(words);  // only read
  Params params = {};
  params.q_ptr = Elements(rows.queries);
  params.k_ptr = Elements(cache.keys);
  params.v_ptr = Elements(cache.values);
  params.o_ptr = Elements(rows.out);
  params.qo_tile_indices = at + chunks.query_tiles;
  params.qo_indptr = at + chunks.first_rows;
  params.kv_indptr = at + chunks.page_begins;
  params.kv_indices = const_cast<int32_t*>(cache.page_table);
  params.qo_lens = at + chunks.rows;
  params.kv_lens = at + chunks.lengths;
  params.head_indices = at + chunks.heads;
  params.work_indptr = at + chunks.begins;
  params.batch_indices = at + chunks.requests;
  params.additional_params.sm_scale = rows.scale;
  params.q_stride_n = params.o_stride_n = shape.query_heads * kDim;
  params.q_stride_h = params.o_stride_h = kDim;
  params.k_stride_n = params.v_stride_n = shape.key_heads * kDim;
  params.k_stride_h = params.v_stride_h = kDim;
  params.k_page_stride = params.v_page_stride = shape.PageElements();
  params.nnz_qo = rows.rows;
  params.num_qo_heads = shape.query_heads;
  params.num_kv_heads = shape.key_heads;
  params.group_size = shape.query_heads / shape.key_heads;
  params.page_size = kPageTokens;
  params.window_left = -1;
  params.causal = true;
  return params;
}

}  // namespace

void LaunchFa3Dim128(const CacheHeads& shape, const PagedKeysValues& cache, const Fa3Chunks& chunks,
                     const int32_t* words, const AttentionRows& rows, void* stream) {
  Params params = MakeParams(shape, cache, chunks, words, rows);
  cudaError_t error = cudaSuccess;
  try {
    error = flashinfer::BatchPrefillWithPagedKVCacheDispatched<
        kDim, kDim, flashinfer::MaskMode::kCausal, /*LEFT_SLIDING_WINDOW=*/false,
        /*SAME_SCHEDULE_FOR_ALL_HEADS=*/false, flashinfer::StandardAttention, Params>(
        params, /*enable_pdl=*/false, static_cast<cudaStream_t>(stream));
  } catch (const std::exception& refused) {
    TORCH_CHECK(false, "paged attention of a chunk: ", refused.what());
  }
  TORCH_CHECK(error == cudaSuccess, "paged attention of a chunk: ", cudaGetErrorString(error));
}

}  // namespace tritonrl
