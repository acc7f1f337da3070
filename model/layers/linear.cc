#include "model/layers/linear.h"

#include <ATen/ops/mm.h>

#include <algorithm>
#include <cstdint>

namespace tritonrl {

namespace {

constexpr int64_t kRowBlock = 96;  // rows of one task; also the kernel's block size
// Tile of d_weight that one task computes by a sum over all rows.
constexpr int64_t kWeightRows = 48;
constexpr int64_t kWeightColumns = 64;

// c = a[rows, k] b[k, n], or += if accumulate; one task per block of rows.
void RowParallelGemm(const LayerContext& context, const at::Tensor& a, const float* b, int64_t n,
                     bool accumulate, at::Tensor* c) {
  const float* from = a.data_ptr<float>();
  float* to = c->data_ptr<float>();
  const int64_t k = a.size(1), a_row = a.stride(0), c_row = c->stride(0);
  context.ForRowBlocks(a.size(0), kRowBlock, [&](int64_t begin, int64_t end) {
    context.kernels().gemm(end - begin, n, k, from + begin * a_row, a_row, 1, b, n,
                           to + begin * c_row, c_row, accumulate);
  });
}

bool RunsFused(const LayerContext& context, const FusedWeights& weights) {
  return weights.fused.defined() && context.UseCuda(weights.fused);
}

}  // namespace

void LinearForward(const LayerContext& context, const at::Tensor& x, const at::Tensor& weight,
                   bool accumulate, at::Tensor out) {
  if (context.UseCuda(weight)) {
    context.gemm(x).Multiply(x, weight.t(), accumulate ? &out : nullptr, out);
    return;
  }
  if (!context.UseCpuKernels(x)) {
    if (accumulate) {
      out.addmm_(x, weight.t());
    } else {
      at::mm_out(out, x, weight.t());
    }
    return;
  }
  // The kernel needs contiguous rows of its right operand: [K, N].
  const int64_t n = weight.size(0), k = weight.size(1);
  at::Tensor transposed = context.Empty({k, n}, weight);
  const float* from = weight.data_ptr<float>();
  float* to = transposed.data_ptr<float>();
  context.ForRowBlocks(n, 256, [&](int64_t begin, int64_t end) {
    context.kernels().transpose(end - begin, k, from + begin * k, k, to + begin, n);
  });
  RowParallelGemm(context, x, to, n, accumulate, &out);
}

at::Tensor LinearResidualAdd(const LayerContext& context, const at::Tensor& residual,
                             const at::Tensor& x, const at::Tensor& weight) {
  if (context.UseCuda(weight)) {
    at::Tensor out = context.Empty(residual.sizes(), residual);
    context.gemm(x).Multiply(x, weight.t(), &residual, out);
    return out;
  }
  at::Tensor out = CopyOf(context, residual);
  LinearForward(context, x, weight, true, out);
  return out;
}

void LinearBackwardInput(const LayerContext& context, const at::Tensor& d_out,
                         const at::Tensor& weight, bool accumulate, at::Tensor d_x) {
  if (context.UseCuda(weight)) {
    context.gemm(weight).Multiply(d_out, weight, accumulate ? &d_x : nullptr, d_x);
    return;
  }
  if (!context.UseCpuKernels(d_out)) {
    if (accumulate) {
      d_x.addmm_(d_out, weight);
    } else {
      at::mm_out(d_x, d_out, weight);
    }
    return;
  }
  RowParallelGemm(context, d_out, weight.data_ptr<float>(), weight.size(1), accumulate, &d_x);
}

void LinearBackwardWeight(const LayerContext& context, const at::Tensor& d_out, const at::Tensor& x,
                          bool accumulate, at::Tensor d_weight) {
  if (context.UseCuda(d_weight)) {
    context.gemm(x).Multiply(d_out.t(), x, accumulate ? &d_weight : nullptr, d_weight);
    return;
  }
  if (!context.UseCpuKernels(x)) {
    if (!accumulate) d_weight.zero_();
    if (x.scalar_type() == d_weight.scalar_type()) {
      d_weight.addmm_(d_out.t(), x);
    } else {
      d_weight.add_(at::mm(d_out.t(), x));
    }
    return;
  }
  const int64_t rows = x.size(0), n = d_weight.size(0), k = d_weight.size(1);
  const int64_t tiles_across = (k + kWeightColumns - 1) / kWeightColumns;
  const int64_t tiles_down = (n + kWeightRows - 1) / kWeightRows;
  const float* d = d_out.data_ptr<float>();
  const float* from = x.data_ptr<float>();
  float* to = d_weight.data_ptr<float>();
  const int64_t d_row = d_out.stride(0), x_row = x.stride(0);
  context.threads().ParallelFor(tiles_across * tiles_down, [&](int64_t tile) {
    const int64_t i = tile / tiles_across * kWeightRows;
    const int64_t j = tile % tiles_across * kWeightColumns;
    context.kernels().gemm(std::min(kWeightRows, n - i), std::min(kWeightColumns, k - j), rows,
                           d + i, 1, d_row, from + j, x_row, to + i * k + j, k, accumulate);
  });
}

at::Tensor Stacked(const at::Tensor& flat, absl::Span<const at::Tensor> parts) {
  int64_t rows = 0, next = parts[0].storage_offset();
  const int64_t first = next;
  for (const at::Tensor& part : parts) {
    if (part.storage_offset() != next) return {};
    rows += part.size(0);
    next += part.numel();
  }
  return flat.narrow(0, first, next - first).view({rows, parts[0].size(1)});
}

absl::Span<const at::Tensor> FusedOrParts(const LayerContext& context,
                                          const FusedWeights& weights) {
  if (RunsFused(context, weights)) return absl::MakeConstSpan(&weights.fused, 1);
  return weights.parts;
}

void FusedLinearForward(const LayerContext& context, const at::Tensor& x,
                        const FusedWeights& weights, const at::Tensor& out) {
  int64_t column = 0;
  for (const at::Tensor& weight : FusedOrParts(context, weights)) {
    LinearForward(context, x, weight, false, out.narrow(1, column, weight.size(0)));
    column += weight.size(0);
  }
}

at::Tensor FusedLinearBackward(const LayerContext& context, const at::Tensor& d_out,
                               const at::Tensor& x, const FusedWeights& weights, bool accumulate,
                               const FusedWeights& gradients) {
  at::Tensor d_x = context.Empty(x.sizes(), x);
  const bool fused = RunsFused(context, weights) && gradients.fused.defined();
  const auto matrices = fused ? absl::MakeConstSpan(&weights.fused, 1) : weights.parts;
  const auto sums = fused ? absl::MakeConstSpan(&gradients.fused, 1) : gradients.parts;
  int64_t column = 0;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const at::Tensor d = d_out.narrow(1, column, matrices[i].size(0));
    LinearBackwardWeight(context, d, x, accumulate, sums[i]);
    LinearBackwardInput(context, d, matrices[i], i > 0, d_x);
    column += matrices[i].size(0);
  }
  return d_x;
}

}  // namespace tritonrl
