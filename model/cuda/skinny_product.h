// Matrix products of few rows (generation steps of few sequences), which are bound by reading the
// weights once. Not yet run on a GPU.
#ifndef TRITONRL_MODEL_CUDA_SKINNY_PRODUCT_H_
#define TRITONRL_MODEL_CUDA_SKINNY_PRODUCT_H_

#include <cstdint>

#include "model/cuda/kernels.h"

namespace tritonrl {

// Most rows of x.
inline constexpr int64_t kMostSkinnyRows = 16;

// out = x W^T (+ add), summed in fp32, by the current GPU's tensor cores. All pointers are the
// GPU's memory and, but for `out` and `add`, multiples of 16 bytes.
struct SkinnyProduct {
  int64_t rows = 0;              // M, at most kMostSkinnyRows
  int64_t inner = 0;             // K, a multiple of 8
  int64_t columns = 0;           // N
  const void* x = nullptr;       // [M, K] bf16
  const void* weight = nullptr;  // [N, K] bf16
  // RMSNorm of x first, with the bits of LaunchRmsNorm: its weight [K] bf16; null: x as it is.
  const void* norm_weight = nullptr;
  float eps = 0;
  const void* add = nullptr;  // [M, N] bf16, may be `out`; null: none. Only with `out` in bf16.
  // W's first half are gates: out [M, N / 2] = silu(x gates^T) * (x ups^T), with the bits of
  // LaunchSwiglu. Without `add`, and `out` in bf16.
  bool swiglu = false;
  CudaType out_type = CudaType::kBFloat16;
  void* out = nullptr;
  // The launch may begin to read `weight` while the stream's earlier kernels still run (Hopper's
  // programmatic dependent launch); all else it reads and writes when they have ended. Not where
  // one of them writes `weight`.
  bool overlap = false;
  int blocks_each = 1;     // on a multiprocessor, 1 or 2
  void* stream = nullptr;  // a cudaStream_t
};

// Whether the current GPU can: Ampere or later, with 112 KB of shared memory for a block (A100,
// Hopper; not an L40S). Throws c10::Error if it does not answer.
bool TakesSkinnyProducts();

// A row of `out` has the same bits whatever M and the other rows are, with and without `overlap`
// and for any `blocks_each`; each call gives the same bits. Launches can be captured. Throws
// c10::Error for sizes and mixes that are not taken, or if the launch is refused.
void LaunchSkinnyProduct(const SkinnyProduct& at);

// How W's rows are divided: a pass is `tiles` times 16 of them, of which blocks take the next one
// in turn.
struct SkinnyTiling {
  int tiles = 1;
  int64_t passes = 0;
};
// For `rooms` blocks side by side: the division that gives the busiest block the fewest tiles, of
// such the one with the most tiles in a pass, which read x less often. Each pass of a swiglu is one
// tile of gates and one of the others.
SkinnyTiling TileSkinnyProduct(int64_t columns, bool swiglu, int rooms);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_SKINNY_PRODUCT_H_
