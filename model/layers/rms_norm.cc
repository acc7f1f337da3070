#include "model/layers/rms_norm.h"

#include <ATen/TensorOperators.h>

#include <algorithm>

namespace tritonrl {
namespace {

constexpr int64_t kRows = 64;  // rows of one task, and of one partial sum of d_weight

bool UseCuda(const LayerContext& context, const at::Tensor& x) {
  return context.UseCuda(x) && CudaSupportsNorm(x);
}

}  // namespace

at::Tensor RmsNormForward(const LayerContext& context, const at::Tensor& x,
                          const at::Tensor& weight, double eps, at::Tensor* rstd,
                          at::Tensor* amax) {
  if (UseCuda(context, x)) return CudaRmsNormForward(x, weight, eps, rstd, amax);
  if (!context.UseCpuKernels(x)) {
    const at::Tensor wide = ToComputeType(x);
    *rstd = wide.square().mean(-1).add_(eps).rsqrt_();
    return RecomputeRmsNorm(context, x, weight, *rstd);
  }
  const int64_t rows = x.size(0), cols = x.size(1);
  at::Tensor y = context.Empty({rows, cols}, x);
  *rstd = context.Empty({rows}, x);
  const float* from = x.data_ptr<float>();
  const float* w = weight.data_ptr<float>();
  float* to = y.data_ptr<float>();
  float* inverse = rstd->data_ptr<float>();
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    context.kernels().rms_norm(end - begin, cols, from + begin * cols, w, static_cast<float>(eps),
                               to + begin * cols, inverse + begin);
  });
  return y;
}

at::Tensor RecomputeRmsNorm(const LayerContext& context, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& rstd, at::Tensor* amax) {
  if (UseCuda(context, x)) return CudaRecomputeRmsNorm(x, weight, rstd, amax);
  if (!context.UseCpuKernels(x)) {
    // As in Hugging Face's modules: rounded to x's type before the weight is applied.
    return (ToComputeType(x) * rstd.unsqueeze(-1)).to(x.scalar_type()).mul_(weight);
  }
  const int64_t rows = x.size(0), cols = x.size(1);
  at::Tensor y = context.Empty({rows, cols}, x);
  const float* from = x.data_ptr<float>();
  const float* w = weight.data_ptr<float>();
  const float* inverse = rstd.data_ptr<float>();
  float* to = y.data_ptr<float>();
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    context.kernels().rms_norm_apply(end - begin, cols, from + begin * cols, w, inverse + begin,
                                     to + begin * cols);
  });
  return y;
}

void RmsNormBackward(const LayerContext& context, const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& rstd, const at::Tensor& d_y, at::Tensor d_x,
                     at::Tensor d_weight, at::Tensor* amax) {
  if (UseCuda(context, x) && UseCuda(context, d_x)) {
    return CudaRmsNormBackward(x, weight, rstd, d_y, d_x, d_weight, amax);
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
  // In the order of the blocks, whatever thread made them.
  for (int64_t i = 0; i < blocks; ++i) {
    context.kernels().add(cols, sums + i * cols, d_weight.data_ptr<float>());
  }
}

}  // namespace tritonrl
