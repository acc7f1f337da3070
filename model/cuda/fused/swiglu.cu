#include "model/cuda/fused/dispatch.cuh"
#include "model/cuda/fused/fp8.cuh"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/fused/row_ops.cuh"

namespace tritonrl {
namespace {

constexpr int kThreads = 256;

// Along x, thread i of the grid handles pack i of a row; along y, the grid strides over the rows.
template <typename T, bool kAmax>
__global__ void __launch_bounds__(kThreads)
    SwigluKernel(int64_t rows, int64_t packs, const T* gate_up, T* out, uint32_t* amax) {
  __shared__ uint32_t room[32];
  Amax<T> most;
  const int64_t i = blockIdx.x * kThreads + threadIdx.x;
  for (int64_t row = i < packs ? blockIdx.y : rows; row < rows; row += gridDim.y) {
    Pack<T> gate = Load(gate_up, row * 2 * packs + i);
    const Pack<T> up = Load(gate_up, (row * 2 + 1) * packs + i);
#pragma unroll
    for (int k = 0; k < Pack<T>::kSize; ++k) {
      gate.values[k] = SiluMul(gate.values[k], up.values[k]);
    }
    Store(gate, out, row * packs + i);
    if constexpr (kAmax) UpdateAmax(gate, &most);
  }
  if constexpr (kAmax) BlockAtomicMax(most, room, amax);
}

// silu'(g) = s + silu (1 - s) with s = 1 / (1 + exp(-g)). A thread reads its elements before it
// writes them, so d_gate_up may be gate_up and out may be d_out. `out` gets the bits of the
// forward; `out` and `amax` may be null.
template <typename T, bool kAmax>
__global__ void __launch_bounds__(kThreads)
    SwigluBackwardKernel(int64_t rows, int64_t packs, const T* gate_up, const T* d_out,
                         T* d_gate_up, T* out, uint32_t* d_amax, uint32_t* amax) {
  __shared__ uint32_t room[2][32];
  Amax<T> d_most, most;
  const int64_t i = blockIdx.x * kThreads + threadIdx.x;
  for (int64_t row = i < packs ? blockIdx.y : rows; row < rows; row += gridDim.y) {
    Pack<T> gate = Load(gate_up, row * 2 * packs + i);
    Pack<T> up = Load(gate_up, (row * 2 + 1) * packs + i);
    Pack<T> d = Load(d_out, row * packs + i);
#pragma unroll
    for (int k = 0; k < Pack<T>::kSize; ++k) {
      const float g = ToFloat(gate.values[k]), u = ToFloat(up.values[k]), dk = ToFloat(d.values[k]);
      const float s = 1.0f / (1.0f + __expf(-g)), silu = g * s;
      if (out != nullptr) d.values[k] = SiluMul(gate.values[k], up.values[k]);
      gate.values[k] = RoundTo<T>(dk * u * (s + silu * (1.0f - s)));
      up.values[k] = RoundTo<T>(dk * silu);
    }
    Store(gate, d_gate_up, row * 2 * packs + i);
    Store(up, d_gate_up, (row * 2 + 1) * packs + i);
    if (out != nullptr) Store(d, out, row * packs + i);
    if constexpr (kAmax) {
      UpdateAmax(gate, &d_most);
      UpdateAmax(up, &d_most);
      if (amax != nullptr) UpdateAmax(d, &most);
    }
  }
  if constexpr (kAmax) {
    BlockAtomicMax(d_most, room[0], d_amax);
    if (amax != nullptr) BlockAtomicMax(most, room[1], amax);
  }
}

template <typename T>
dim3 Grid(const CudaRows& at) {
  const int64_t across = (at.cols / Pack<T>::kSize + kThreads - 1) / kThreads;
  return dim3(across, std::min<int64_t>(at.rows, 16384));
}

}  // namespace

void LaunchSwiglu(const CudaRows& at, const void* gate_up, void* out, uint32_t* amax) {
  if (at.rows == 0) return;
  ForType(at.type, [&]<typename T>() {
    const auto kernel = amax == nullptr ? SwigluKernel<T, false> : SwigluKernel<T, true>;
    kernel<<<Grid<T>(at), kThreads, 0, StreamOf(at.stream)>>>(at.rows, at.cols / Pack<T>::kSize,
                                                              static_cast<const T*>(gate_up),
                                                              static_cast<T*>(out), amax);
  });
  CheckLaunch("SwiGLU");
}

void LaunchSwigluBackward(const CudaRows& at, const void* gate_up, const void* d_out,
                          void* d_gate_up, void* out, uint32_t* d_amax, uint32_t* amax) {
  if (at.rows == 0) return;
  ForType(at.type, [&]<typename T>() {
    const auto kernel =
        d_amax == nullptr ? SwigluBackwardKernel<T, false> : SwigluBackwardKernel<T, true>;
    kernel<<<Grid<T>(at), kThreads, 0, StreamOf(at.stream)>>>(
        at.rows, at.cols / Pack<T>::kSize, static_cast<const T*>(gate_up),
        static_cast<const T*>(d_out), static_cast<T*>(d_gate_up), static_cast<T*>(out), d_amax,
        amax);
  });
  CheckLaunch("backward of SwiGLU");
}

}  // namespace tritonrl
