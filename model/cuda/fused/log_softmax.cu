#include "model/cuda/fused/dispatch.cuh"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/fused/row_ops.cuh"

namespace tritonrl {
namespace {

constexpr int kThreads = 1024;

// Running statistics of a set of numbers z: max = max z, sum = sum exp(z - max), weighted = sum
// exp(z - max) (z - max).
struct Softmax {
  float max = -INFINITY, sum = 0, weighted = 0;

  __device__ void Add(float z) {
    if (z > max) Rescale(z);
    const float e = __expf(z - max);
    sum += e;
    weighted += e * (z - max);
  }
  // Rescales the sums to the maximum `to`, which is at least `max`.
  __device__ void Rescale(float to) {
    if (max > -INFINITY) {
      const float factor = __expf(max - to);
      weighted = factor * (weighted + sum * (max - to));
      sum *= factor;
    }
    max = to;
  }
  __device__ void Merge(Softmax other) {
    if (other.sum == 0) return;
    const float to = fmaxf(max, other.max);
    Rescale(to);
    other.Rescale(to);
    sum += other.sum;
    weighted += other.weighted;
  }
  __device__ void MergeLanes() {
    for (int step = 16; step > 0; step /= 2) {
      Softmax other;
      other.max = __shfl_down_sync(~0u, max, step);
      other.sum = __shfl_down_sync(~0u, sum, step);
      other.weighted = __shfl_down_sync(~0u, weighted, step);
      Merge(other);
    }
  }
};

__global__ void __launch_bounds__(kThreads)
    LogSoftmaxKernel(int64_t cols, const float* logits, float inverse_temperature,
                     const int64_t* targets, float* log_prob, float* entropy, float* lse) {
  __shared__ Softmax room[32];
  const int64_t row = blockIdx.x;
  logits += row * cols;
  Softmax own;
  const int64_t packs = cols / Pack<float>::kSize;
  for (int64_t i = threadIdx.x; i < packs; i += kThreads) {
    const Pack<float> z = Load(logits, i);
#pragma unroll
    for (int k = 0; k < Pack<float>::kSize; ++k) own.Add(z.values[k] * inverse_temperature);
  }
  own.MergeLanes();
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  own = room[threadIdx.x];
  own.MergeLanes();
  if (threadIdx.x != 0) return;
  const float log_sum = logf(own.sum);
  lse[row] = own.max + log_sum;
  log_prob[row] = logits[targets[row]] * inverse_temperature - own.max - log_sum;
  entropy[row] = log_sum - own.weighted / own.sum;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    LogSoftmaxBackwardKernel(int64_t cols, const float* logits, float inverse_temperature,
                             const int64_t* targets, const float* lse, const float* d_log_prob,
                             T* d_logits) {
  constexpr int kSize = Pack<T>::kSize;
  const int64_t row = blockIdx.x, target = targets[row];
  const float scale = d_log_prob[row] * inverse_temperature, minus = lse[row];
  logits += row * cols;
  d_logits += row * cols;
  for (int64_t i = threadIdx.x; i < cols / kSize; i += kThreads) {
    Pack<T> d;
#pragma unroll
    for (int half = 0; half < kSize / 4; ++half) {
      const Pack<float> z = Load(logits, i * (kSize / 4) + half);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float p = __expf(z.values[k] * inverse_temperature - minus);
        const float hit = i * kSize + half * 4 + k == target ? 1.0f : 0.0f;
        d.values[half * 4 + k] = RoundTo<T>(scale * (hit - p));
      }
    }
    Store(d, d_logits, i);
  }
}

}  // namespace

void LaunchLogSoftmax(const CudaRows& at, const float* logits, float temperature,
                      const int64_t* targets, float* log_prob, float* entropy, float* lse) {
  if (at.rows == 0) return;
  LogSoftmaxKernel<<<at.rows, kThreads, 0, StreamOf(at.stream)>>>(
      at.cols, logits, 1.0f / temperature, targets, log_prob, entropy, lse);
  CheckLaunch("log softmax");
}

void LaunchLogSoftmaxBackward(const CudaRows& at, const float* logits, float temperature,
                              const int64_t* targets, const float* lse, const float* d_log_prob,
                              void* d_logits) {
  if (at.rows == 0) return;
  ForType(at.type, [&]<typename T>() {
    LogSoftmaxBackwardKernel<T><<<at.rows, kThreads, 0, StreamOf(at.stream)>>>(
        at.cols, logits, 1.0f / temperature, targets, lse, d_log_prob, static_cast<T*>(d_logits));
  });
  CheckLaunch("backward of log softmax");
}

}  // namespace tritonrl
