#include "model/layers/bias.h"

#include <ATen/ops/sum.h>

#include <algorithm>
#include <cstdint>

namespace tritonrl {
namespace {

constexpr int64_t kRowBlock = 96;       // rows of one task
constexpr int64_t kColumnBlock = 1024;  // columns of one task of the sum over rows

void AddToRows(const LayerContext& context, const at::Tensor& bias, at::Tensor out) {
  if (!context.UseCpuKernels(out)) {
    out.add_(bias);
    return;
  }
  const float* from = bias.const_data_ptr<float>();
  float* to = out.data_ptr<float>();
  const int64_t stride = out.stride(0), n = bias.size(0);
  context.ForRowBlocks(out.size(0), kRowBlock, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) context.kernels().add(n, from, to + row * stride);
  });
}

void AddRows(const LayerContext& context, const at::Tensor& d_out, at::Tensor gradient) {
  if (!context.UseCpuKernels(d_out)) {
    gradient.add_(at::sum(d_out, {0}, /*keepdim=*/false, at::kFloat));
    return;
  }
  const float* from = d_out.const_data_ptr<float>();
  float* to = gradient.data_ptr<float>();
  const int64_t rows = d_out.size(0), stride = d_out.stride(0);
  context.ForRowBlocks(gradient.size(0), kColumnBlock, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < rows; ++row) {
      context.kernels().add(end - begin, from + row * stride + begin, to + begin);
    }
  });
}

}  // namespace

void BiasForward(const LayerContext& context, absl::Span<const at::Tensor> biases, at::Tensor out) {
  int64_t column = 0;
  for (const at::Tensor& bias : biases) {
    if (!bias.defined()) return;
    AddToRows(context, bias, out.narrow(1, column, bias.size(0)));
    column += bias.size(0);
  }
}

void BiasBackward(const LayerContext& context, const at::Tensor& d_out,
                  absl::Span<const at::Tensor> gradients) {
  int64_t column = 0;
  for (const at::Tensor& gradient : gradients) {
    if (!gradient.defined()) return;
    AddRows(context, d_out.narrow(1, column, gradient.size(0)), gradient);
    column += gradient.size(0);
  }
}

}  // namespace tritonrl
