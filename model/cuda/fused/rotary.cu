#include <c10/util/Exception.h>

#include "model/cuda/fused/dispatch.cuh"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/fused/rotary.cuh"
#include "model/cuda/fused/row_ops.cuh"

namespace tritonrl {
namespace {

constexpr int kWarps = 8;
constexpr int64_t kBlocks = 1024;

// One block per row; warp w handles heads w, w + 8, ...
template <typename T, int kEach>
__global__ void __launch_bounds__(kWarps * 32)
    HeadNormRotaryKernel(CudaHeads at, const T* qkv, float eps, T* qk, float* rstd) {
  constexpr int kDim = kEach * 32;
  const int heads = at.query_heads + at.key_heads;
  const int64_t row = blockIdx.x;
  const RotaryFactors<kEach> turn(at.cos, at.sin, at.positions[row]);
  for (int head = threadIdx.x / 32; head < heads; head += kWarps) {
    const T* weight = static_cast<const T*>(head < at.query_heads ? at.q_weight : at.k_weight);
    float x[kEach];
    LoadLane<T, kEach>(qkv + row * at.stride + head * kDim, x);
    if (weight != nullptr) {
      const float inverse = NormLane<T, kEach>(weight, eps, x);
      if (threadIdx.x % 32 == 0) rstd[row * heads + head] = inverse;
    }
    turn.Apply(1.0f, x);
    StoreLane<T, kEach>(x, qk + (row * heads + head) * kDim);
  }
}

// A block handles `rows_each` consecutive rows. Warp w handles heads w, w + 8, ... of each row and
// sums the gradients of both weights in registers. partials: [blocks, 2, D].
template <typename T, int kEach>
__global__ void __launch_bounds__(kWarps * 32)
    HeadNormRotaryBackwardKernel(CudaHeads at, int64_t rows_each, const T* qkv, const float* rstd,
                                 T* d_qkv, float* partials) {
  constexpr int kDim = kEach * 32;
  __shared__ float room[kWarps][2][kDim];
  const int heads = at.query_heads + at.key_heads, warp = threadIdx.x / 32;
  const bool normed = at.q_weight != nullptr;
  float weights[2][kEach], sums[2][kEach] = {};
  if (normed) {
    LoadLane<T, kEach>(static_cast<const T*>(at.q_weight), weights[0]);
    LoadLane<T, kEach>(static_cast<const T*>(at.k_weight), weights[1]);
  }
  const int64_t begin = blockIdx.x * rows_each, end = min(at.rows, begin + rows_each);
  for (int64_t row = begin; row < end; ++row) {
    const RotaryFactors<kEach> turn(at.cos, at.sin, at.positions[row]);
    for (int head = warp; head < heads; head += kWarps) {
      T* to = d_qkv + row * at.stride + head * kDim;
      float d[kEach];
      LoadLane<T, kEach>(to, d);
      turn.Apply(-1.0f, d);
      if (normed) {
        const bool key = head >= at.query_heads;
        const float inverse = rstd[row * heads + head];
        float x[kEach], dot = 0;
        LoadLane<T, kEach>(qkv + row * at.stride + head * kDim, x);
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
          x[k] *= inverse;
          const float product = d[k] * x[k];
          sums[0][k] += key ? 0.0f : product;
          sums[1][k] += key ? product : 0.0f;
          d[k] *= key ? weights[1][k] : weights[0][k];
          dot += d[k] * x[k];
        }
        const float mean = WarpSum(dot) / kDim;
#pragma unroll
        for (int k = 0; k < kEach; ++k) d[k] = (d[k] - x[k] * mean) * inverse;
      }
      StoreLane<T, kEach>(d, to);
    }
  }
  if (!normed) return;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    room[warp][0][threadIdx.x % 32 * kEach + k] = sums[0][k];
    room[warp][1][threadIdx.x % 32 * kEach + k] = sums[1][k];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * kDim; i += kWarps * 32) {
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += room[w][i / kDim][i % kDim];
    partials[blockIdx.x * 2 * kDim + i] = sum;
  }
}

// Calls function.operator()<T, elements per lane>().
template <typename Function>
void ForHeads(const CudaHeads& at, Function function) {
  TORCH_CHECK(at.dim == 64 || at.dim == 128 || at.dim == 256, "heads of ", at.dim, " elements");
  ForType(at.type, [&]<typename T>() {
    if (at.dim == 64) {
      function.template operator()<T, 2>();
    } else if (at.dim == 128) {
      function.template operator()<T, 4>();
    } else {
      function.template operator()<T, 8>();
    }
  });
}

}  // namespace

void LaunchHeadNormRotary(const CudaHeads& at, const void* qkv, float eps, void* qk, float* rstd) {
  if (at.rows == 0) return;
  ForHeads(at, [&]<typename T, int kEach>() {
    HeadNormRotaryKernel<T, kEach><<<at.rows, kWarps * 32, 0, StreamOf(at.stream)>>>(
        at, static_cast<const T*>(qkv), eps, static_cast<T*>(qk), rstd);
  });
  CheckLaunch("norm and rotation of heads");
}

int64_t HeadPartials(const CudaHeads& at) { return std::min(kBlocks, at.rows); }

void LaunchHeadNormRotaryBackward(const CudaHeads& at, const void* qkv, const float* rstd,
                                  void* d_qkv, float* partials, float* d_q_weight,
                                  float* d_k_weight) {
  if (at.rows == 0) return;
  const int64_t blocks = HeadPartials(at);
  ForHeads(at, [&]<typename T, int kEach>() {
    HeadNormRotaryBackwardKernel<T, kEach><<<blocks, kWarps * 32, 0, StreamOf(at.stream)>>>(
        at, (at.rows + blocks - 1) / blocks, static_cast<const T*>(qkv), rstd,
        static_cast<T*>(d_qkv), partials);
  });
  CheckLaunch("backward of norm and rotation of heads");
  if (at.q_weight == nullptr) return;
  LaunchColumnSums(blocks, at.dim, 2 * at.dim, partials, d_q_weight, at.stream);
  LaunchColumnSums(blocks, at.dim, 2 * at.dim, partials + at.dim, d_k_weight, at.stream);
}

}  // namespace tritonrl
