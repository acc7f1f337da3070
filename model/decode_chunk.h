// Decoding on the CPU with hand-written kernels: one thread computes a chunk of a step's rows.

#ifndef TRITONRL_MODEL_DECODE_CHUNK_H_
#define TRITONRL_MODEL_DECODE_CHUNK_H_

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "model/cpu/kernels.h"
#include "model/decode.h"
#include "model/layers/decoder_layer.h"
#include "model/paged_cache.h"

namespace tritonrl {

// Number of layers whose keys and values a chunk has written to the cache.
using ChunkProgress = std::atomic<int64_t>;

// The rows of a step are split into chunks, and each chunk passes through the whole model on one
// thread. A chunk waits for the previous chunk only if a sequence continues from one to the other:
// in each layer the previous chunk must have written its keys and values before this chunk attends.
// So the chunks of a long prompt pass through the layers as a pipeline on all threads.
//
// A GEMM of few rows is computed transposed, out^T [N, rows] = W [N, C] x^T [C, rows]: the weights
// are read in place, in the order in which they are stored, and only the small x is transposed.
//
// Shapes: B rows, padded to R with rows whose results are dropped.
class DecodeChunk {
 public:
  static constexpr int64_t kLanes = kKvPageSize;  // R is a multiple of the kernels' width
  static constexpr int64_t kMaxRows = 32;

  // Computes rows [begin, end) of `rows`. before: progress of the previous chunk if the first row's
  // sequence began in it, else null.
  DecodeChunk(const DecodeModel& model, const DecodeBatch& rows, int64_t begin, int64_t end,
              PagedKvCache* cache, const ChunkProgress* before, ChunkProgress* progress);

  // Writes this chunk's rows of `logits`, which is [L, V] for the whole step.
  void Run(float* logits);

 private:
  void SetCount(int64_t count);
  // Keeps only the rows whose logits are needed. The other rows end with the last layer's keys and
  // values.
  void SelectLogitRows();
  void Embed();
  void Norm(const at::Tensor& weight);
  // [R, cols] -> transposed_in_ [cols, R]
  void TransposeIn(const float* x, int64_t cols);
  // out [N, R] = weight [N, C] in [C, R]
  void Gemm(const at::Tensor& weight, const float* in, float* out);
  // x += (transposed_out_ [C, R])^T
  // Adds `bias`, if it is defined, to the features `out` [bias.size(0), padded_].
  void AddBias(const at::Tensor& bias, float* out);
  void AddTransposedOut();
  // Writes queries, keys and values [R, (H + 2K) D] of this layer, after norm and RoPE, to qkv_.
  void Project(const DecoderLayerParameters& w);
  // Applies norm and RoPE to `heads` heads from `first` on, in place in qkv_.
  void RotateHeads(int64_t first, int64_t heads, const at::Tensor& weight);
  // Writes keys and values of all rows to their pages.
  void Store(int64_t layer);
  void AttentionBlock(int64_t layer);
  // Attention of rows [r, r + count), which are consecutive tokens of one sequence.
  void Attend(int64_t layer, int64_t r, int64_t count);
  void MlpBlock(const DecoderLayerParameters& w);

  const DecodeModel& model_;
  const ModelConfig& config_;
  const CpuKernels& kernels_;
  const DecodeBatch& rows_;
  PagedKvCache* const cache_;
  const ChunkProgress* const before_;
  ChunkProgress* const progress_;
  const int64_t begin_;
  const int64_t qkv_size_;    // (H + 2K) D
  std::vector<int64_t> row_;  // [B] row numbers in the step
  int64_t count_, padded_;    // B, R
  // Scratch memory of the thread.
  float* x_;               // [R, C] residual stream
  float* normed_;          // [R, C]
  float* transposed_in_;   // [C or F or H D, R]
  float* transposed_out_;  // [N, R]
  float* qkv_;             // [R, (H + 2K) D]
  float* attention_;       // [R, H D]
  float* logits_;          // [V, R]
  float* scores_;          // [max(2, B), longest sequence + kLanes]
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_DECODE_CHUNK_H_
