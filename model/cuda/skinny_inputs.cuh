// What skinny_kernel.cuh is told, and x as its warps read and norm it.
#ifndef TRITONRL_MODEL_CUDA_SKINNY_INPUTS_CUH_
#define TRITONRL_MODEL_CUDA_SKINNY_INPUTS_CUH_

#include "model/cuda/element.cuh"
#include "model/cuda/rms.cuh"

namespace tritonrl {

inline constexpr int kSkinnyWarps = 8;
inline constexpr int kSkinnyThreads = 32 * kSkinnyWarps;
inline constexpr int kSkinnySpan = 64;      // elements of K in a piece
inline constexpr int kPiecePacks = 4 * 32;  // of 16 bytes
static_assert(kSkinnyThreads == kRmsThreads);

struct SkinnyArguments {
  int rows;         // M
  int64_t inner;    // K
  int64_t columns;  // of out: N, or N / 2 with swiglu
  const __nv_bfloat16* x;
  const __nv_bfloat16* weight;
  const __nv_bfloat16* norm_weight;  // null: x as it is
  float eps;
  const __nv_bfloat16* add;  // null: none
  void* out;
  bool wide;    // out is fp32
  bool swiglu;  // a pass is 16 rows of gates and the same of W's second half
  int passes;
  int spans;  // that a warp takes in a pass, also where K has ended
};

// The first k of the thread's share of a piece; the second is 32 further on.
__device__ inline int64_t InnerOf(int span) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  return (int64_t{span} * kSkinnyWarps + warp) * kSkinnySpan + 8 * (lane % 4);
}

// A thread's share of x in a span: row m = 8 group + lane / 4, its k as in InnerOf.
template <int kGroups, bool kNorm>
struct SkinnyInputs {
  uint4 values[kGroups][2];
  uint4 norm[kNorm ? 2 : 1];

  __device__ void Load(const SkinnyArguments& at, int span) {
    const int64_t k = InnerOf(span);
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      const bool inside = k + 32 * step < at.inner;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int m = 8 * group + threadIdx.x % 32 / 4;
        values[group][step] = Pack16(at.x + m * at.inner + k + 32 * step, inside && m < at.rows);
      }
      if constexpr (kNorm) norm[step] = Pack16(at.norm_weight + k + 32 * step, inside);
    }
  }

  // inverse: by rows of x, 0 behind the last.
  __device__ void Norm(const float* inverse) {
#pragma unroll
    for (int step = 0; step < (kNorm ? 2 : 0); ++step) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int m = 8 * group + threadIdx.x % 32 / 4;
        const auto normed = Normed(As(values[group][step]), As(norm[step]), inverse[m]);
        values[group][step] = *reinterpret_cast<const uint4*>(&normed);
      }
    }
  }

 private:
  __device__ static uint4 Pack16(const __nv_bfloat16* from, bool there) {
    return there ? *reinterpret_cast<const uint4*>(from) : uint4{0, 0, 0, 0};
  }
  __device__ static Pack<__nv_bfloat16> As(const uint4& x) {
    return *reinterpret_cast<const Pack<__nv_bfloat16>*>(&x);
  }
};

// inverse [8 kGroups] of rows of x, with the bits of LaunchRmsNorm; 0 behind the last row.
template <int kGroups>
__device__ void InverseOfRows(const SkinnyArguments& at, float* inverse) {
  __shared__ float room[8 * kGroups][kSkinnyWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int packs = static_cast<int>(at.inner / 8);
#pragma unroll 1
  for (int first = 0; first < at.rows; first += 8) {
    float sums[8] = {};
    for (int i = threadIdx.x; i < packs; i += kRmsThreads) {
      Pack<__nv_bfloat16> a[8];  // of 8 rows, asked for at once
#pragma unroll
      for (int m = 0; m < 8; ++m) {
        if (first + m < at.rows) a[m] = Load(at.x + (first + m) * at.inner, i);
      }
#pragma unroll
      for (int m = 0; m < 8; ++m) {
        if (first + m < at.rows) AddSquares(a[m], &sums[m]);
      }
    }
#pragma unroll
    for (int m = 0; m < 8; ++m) {
      const float sum = WarpSum(sums[m]);
      if (lane == 0) room[first + m][warp] = sum;
    }
  }
  __syncthreads();
  for (int m = warp; m < 8 * kGroups; m += kSkinnyWarps) {
    const float sum = WarpSum(m < at.rows && lane < kSkinnyWarps ? room[m][lane] : 0.0f);
    if (lane == 0) inverse[m] = m < at.rows ? InverseRms(sum, at.inner, at.eps) : 0.0f;
  }
  __syncthreads();
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_SKINNY_INPUTS_CUH_
