// RMSNorm and rotary embedding of a query or key head that a warp holds in registers, for training
// and generation.

#ifndef TRITONRL_MODEL_CUDA_FUSED_ROTARY_CUH_
#define TRITONRL_MODEL_CUDA_FUSED_ROTARY_CUH_

#include <cstdint>

#include "model/cuda/fused/row_ops.cuh"

namespace tritonrl {

// The kEach neighboring elements of a head that one lane holds. Lanes 0 to 15 hold the first half
// of the head; lane ^ 16 holds each element's partner in the rotation.
template <typename T, int kEach>
struct alignas(sizeof(T) * kEach) Lane {
  T values[kEach];
};

template <typename T, int kEach>
__device__ void LoadLane(const T* head, float* to) {
  const auto lane = reinterpret_cast<const Lane<T, kEach>*>(head)[threadIdx.x % 32];
#pragma unroll
  for (int k = 0; k < kEach; ++k) to[k] = ToFloat(lane.values[k]);
}

template <typename T, int kEach>
__device__ void StoreLane(const float* from, T* head) {
  Lane<T, kEach> lane;
#pragma unroll
  for (int k = 0; k < kEach; ++k) lane.values[k] = RoundTo<T>(from[k]);
  reinterpret_cast<Lane<T, kEach>*>(head)[threadIdx.x % 32] = lane;
}

// Replaces x, the lane's elements of a head, by x rstd weight, rounded to T after each factor.
// Returns rstd.
template <typename T, int kEach>
__device__ float NormLane(const T* weight, float eps, float* x) {
  float w[kEach], sum = 0;
  LoadLane<T, kEach>(weight, w);
#pragma unroll
  for (int k = 0; k < kEach; ++k) sum += x[k] * x[k];
  const float inverse = rsqrtf(WarpSum(sum) / (kEach * 32) + eps);
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    x[k] = ToFloat(RoundTo<T>(ToFloat(RoundTo<T>(x[k] * inverse)) * w[k]));
  }
  return inverse;
}

// The cosines and sines of one position for the lane's elements. The rotation is (a, b) -> (a cos -
// b sin, b cos + a sin); `sin` includes the sign for the lane's half.
template <int kEach>
struct RotaryFactors {
  float cos[kEach], sin[kEach];

  // cosines, sines: [positions, D / 2].
  __device__ RotaryFactors(const float* cosines, const float* sines, int64_t position) {
    const int lane = threadIdx.x % 32;
    const int64_t first = position * (kEach * 16) + (lane % 16) * kEach;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      cos[k] = cosines[first + k];
      sin[k] = lane < 16 ? -sines[first + k] : sines[first + k];
    }
  }

  // Rotates the lane's elements by sign = 1; sign = -1 applies the inverse rotation.
  __device__ void Apply(float sign, float* x) const {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const float partner = __shfl_xor_sync(~0u, x[k], 16);
      x[k] = x[k] * cos[k] + sign * partner * sin[k];
    }
  }
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_FUSED_ROTARY_CUH_
