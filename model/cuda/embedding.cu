#include "model/cuda/dispatch.cuh"
#include "model/cuda/element.cuh"
#include "model/cuda/kernels.h"

namespace tritonrl {
namespace {

constexpr int kThreads = 128;

// A block for each place in the sorted order; those where a token begins add up all its rows.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    EmbeddingBackwardKernel(int64_t rows, int64_t cols, const int64_t* sorted, const int64_t* order,
                            const T* d_out, float* d_table) {
  constexpr int kSize = Pack<T>::kSize;
  const int64_t begin = blockIdx.x, token = sorted[begin];
  if (begin > 0 && sorted[begin - 1] == token) return;
  for (int64_t i = threadIdx.x; i < cols / kSize; i += kThreads) {
    float sums[kSize] = {};
    for (int64_t at = begin; at < rows && sorted[at] == token; ++at) {
      const Pack<T> d = Load(d_out + order[at] * cols, i);
#pragma unroll
      for (int k = 0; k < kSize; ++k) sums[k] += ToFloat(d.values[k]);
    }
#pragma unroll
    for (int k = 0; k < kSize; ++k) d_table[token * cols + i * kSize + k] += sums[k];
  }
}

}  // namespace

void LaunchEmbeddingBackward(const CudaRows& at, const int64_t* sorted, const int64_t* order,
                             const void* d_out, float* d_table) {
  if (at.rows == 0) return;
  ForType(at.type, [&]<typename T>() {
    EmbeddingBackwardKernel<T><<<at.rows, kThreads, 0, StreamOf(at.stream)>>>(
        at.rows, at.cols, sorted, order, static_cast<const T*>(d_out), d_table);
  });
  CheckLaunch("backward of the embedding");
}

}  // namespace tritonrl
