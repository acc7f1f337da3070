#include "model/layers/swiglu.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <c10/cuda/CUDAGuard.h>

namespace tritonrl {
namespace {

constexpr int64_t kRows = 64;  // rows of one task

// Whether the GPU kernel supports the size: it reads each half of a row in packs of 8.
bool UseCuda(const LayerContext& context, const at::Tensor& gate_up) {
  return context.UseCuda(gate_up) && gate_up.size(1) % 16 == 0;
}

at::Tensor ForwardByAten(const at::Tensor& gate_up) {
  const int64_t size = gate_up.size(1) / 2;
  return at::silu(gate_up.narrow(1, 0, size)).mul_(gate_up.narrow(1, size, size));
}

}  // namespace

at::Tensor SwigluForward(const LayerContext& context, const at::Tensor& gate_up, at::Tensor* amax) {
  const bool cuda = UseCuda(context, gate_up);
  if (!cuda && !context.UseCpuKernels(gate_up)) return ForwardByAten(gate_up);
  const int64_t rows = gate_up.size(0), size = gate_up.size(1) / 2;
  at::Tensor out = context.Empty({rows, size}, gate_up);
  if (cuda) {
    const c10::cuda::CUDAGuard guard(gate_up.device());
    LaunchSwiglu(CudaRowsOf(gate_up, size), gate_up.const_data_ptr(), out.data_ptr(),
                 NewAmax(gate_up, amax));
    return out;
  }
  const float* from = gate_up.data_ptr<float>();
  float* to = out.data_ptr<float>();
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    context.kernels().swiglu(end - begin, size, from + begin * 2 * size, to + begin * size);
  });
  return out;
}

at::Tensor SwigluBackward(const LayerContext& context, const at::Tensor& gate_up, bool in_place,
                          at::Tensor d_out, at::Tensor* out, at::Tensor* d_amax, at::Tensor* amax) {
  const int64_t rows = gate_up.size(0), size = gate_up.size(1) / 2;
  at::Tensor d_gate_up = in_place ? gate_up : context.Empty({rows, 2 * size}, gate_up);
  if (UseCuda(context, gate_up) && context.UseCuda(d_out)) {
    const c10::cuda::CUDAGuard guard(gate_up.device());
    LaunchSwigluBackward(CudaRowsOf(gate_up, size), gate_up.const_data_ptr(),
                         d_out.const_data_ptr(), d_gate_up.data_ptr(),
                         out == nullptr ? nullptr : d_out.data_ptr(), NewAmax(gate_up, d_amax),
                         NewAmax(gate_up, amax));
    if (out != nullptr) *out = d_out;
    return d_gate_up;
  }
  if (!context.UseCpuKernels(gate_up)) {
    const at::Tensor gate = ToComputeType(gate_up.narrow(1, 0, size));
    const at::Tensor up = ToComputeType(gate_up.narrow(1, size, size));
    const at::Tensor d = ToComputeType(d_out);
    const at::Tensor s = at::sigmoid(gate);
    const at::Tensor silu = gate * s;
    if (out != nullptr) *out = ForwardByAten(gate_up);
    // silu' = s + silu (1 - s). In place, the first line reads `up` before the second overwrites
    // it.
    d_gate_up.narrow(1, 0, size).copy_((silu * (1.0 - s)).add_(s).mul_(d).mul_(up));
    d_gate_up.narrow(1, size, size).copy_(d * silu);
    return d_gate_up;
  }
  const float* from = gate_up.data_ptr<float>();
  float* d = d_out.data_ptr<float>();
  float* to = d_gate_up.data_ptr<float>();
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    context.kernels().swiglu_backward(end - begin, size, from + begin * 2 * size, d + begin * size,
                                      to + begin * 2 * size, d + begin * size);
  });
  if (out != nullptr) *out = d_out;
  return d_gate_up;
}

}  // namespace tritonrl
