#include "model/layers/rms_norm.h"

#include <ATen/TensorOperators.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>

namespace tritonrl {
namespace {

constexpr int64_t kRows = 64;  // rows of one task, and of one partial sum of d_weight

bool UseCuda(const LayerContext& context, const at::Tensor& x) {
  return context.UseCuda(x) && x.size(1) <= 8192;
}

// Returns y. Computes *rstd first unless `rstd_known`.
at::Tensor Normalize(const LayerContext& context, const at::Tensor& x, const at::Tensor& weight,
                     double eps, bool rstd_known, at::Tensor* rstd, at::Tensor* amax) {
  if (!UseCuda(context, x) && !context.UseCpuKernels(x)) {
    const at::Tensor wide = ToComputeType(x);
    if (!rstd_known) *rstd = wide.square().mean(-1).add_(eps).rsqrt_();
    // Hugging Face's modules also round to x's type before they apply the weight.
    return (wide * rstd->unsqueeze(-1)).to(x.scalar_type()).mul_(weight);
  }
  const int64_t rows = x.size(0), cols = x.size(1);
  at::Tensor y = context.Empty({rows, cols}, x);
  if (!rstd_known) *rstd = context.Empty({rows}, x, at::kFloat);
  float* inverse = rstd->data_ptr<float>();
  if (x.is_cuda()) {
    const c10::cuda::CUDAGuard guard(x.device());
    LaunchRmsNorm(CudaRowsOf(x), x.const_data_ptr(), weight.const_data_ptr(),
                  static_cast<float>(eps), y.data_ptr(), inverse, NewAmax(x, amax), rstd_known);
    return y;
  }
  const float* from = x.data_ptr<float>();
  const float* w = weight.data_ptr<float>();
  float* to = y.data_ptr<float>();
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    if (rstd_known) {
      context.kernels().rms_norm_apply(end - begin, cols, from + begin * cols, w, inverse + begin,
                                       to + begin * cols);
    } else {
      context.kernels().rms_norm(end - begin, cols, from + begin * cols, w, static_cast<float>(eps),
                                 to + begin * cols, inverse + begin);
    }
  });
  return y;
}

}  // namespace

at::Tensor RmsNormForward(const LayerContext& context, const at::Tensor& x,
                          const at::Tensor& weight, double eps, at::Tensor* rstd,
                          at::Tensor* amax) {
  return Normalize(context, x, weight, eps, /*rstd_known=*/false, rstd, amax);
}

at::Tensor RecomputeRmsNorm(const LayerContext& context, const at::Tensor& x,
                            const at::Tensor& weight, at::Tensor rstd, at::Tensor* amax) {
  return Normalize(context, x, weight, 0, /*rstd_known=*/true, &rstd, amax);
}

void RmsNormBackward(const LayerContext& context, const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& rstd, const at::Tensor& d_y, at::Tensor d_x,
                     at::Tensor d_weight, at::Tensor* amax) {
  if (UseCuda(context, x) && UseCuda(context, d_x)) {
    const c10::cuda::CUDAGuard guard(x.device());
    const CudaRows at = CudaRowsOf(x);
    at::Tensor partials = context.Empty({RmsNormPartials(at), x.size(1)}, x, at::kFloat);
    LaunchRmsNormBackward(at, x.const_data_ptr(), weight.const_data_ptr(),
                          rstd.const_data_ptr<float>(), d_y.const_data_ptr(), d_x.data_ptr(),
                          partials.data_ptr<float>(), d_weight.data_ptr<float>(), NewAmax(x, amax));
    return;
  }
  if (!context.UseCpuKernels(x)) {
    const at::Tensor inverse = rstd.unsqueeze(-1);
    const at::Tensor xhat = ToComputeType(x) * inverse;
    const at::Tensor wide = ToComputeType(d_y);
    d_weight.add_((wide * xhat).sum(0));
    const at::Tensor g = wide * weight;
    d_x.add_((g - xhat * (g * xhat).mean(-1, /*keepdim=*/true)).mul_(inverse));
    return;
  }
  const int64_t rows = x.size(0), cols = x.size(1);
  const int64_t blocks = (rows + kRows - 1) / kRows;
  at::Tensor partial = context.Empty({blocks, cols}, x);
  const float* from = x.data_ptr<float>();
  const float* w = weight.data_ptr<float>();
  const float* inverse = rstd.data_ptr<float>();
  const float* d = d_y.data_ptr<float>();
  float* to = d_x.data_ptr<float>();
  float* sums = partial.data_ptr<float>();
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    float* sum = sums + begin / kRows * cols;
    std::fill(sum, sum + cols, 0.0f);
    context.kernels().rms_norm_backward(end - begin, cols, from + begin * cols, w, inverse + begin,
                                        d + begin * cols, to + begin * cols, sum);
  });
  // Adds the blocks in order, so that the sum does not depend on the threads.
  for (int64_t i = 0; i < blocks; ++i) {
    context.kernels().add(cols, sums + i * cols, d_weight.data_ptr<float>());
  }
}

}  // namespace tritonrl
