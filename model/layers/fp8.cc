#include "model/layers/fp8.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "model/layers/linear.h"

namespace tritonrl {

namespace {

constexpr int64_t kRows = 64;  // rows of one task

bool InHardware(const LayerContext& context, const at::Tensor& x) {
  return context.UseCuda(x) && x.scalar_type() == at::kBFloat16 && context.gemm(x).has_fp8();
}

// Rounds x, |x| at most the format's largest number, to the nearest number, ties to even. Adding
// and subtracting `large` keeps exactly the mantissa bits that the format has at x's exponent, or
// at the format's smallest exponent if x is subnormal.
float RoundToFormat(float x, Fp8Format format) {
  const uint32_t least = PowerOfTwoBits(Fp8MinExponent(format));
  const uint32_t exponent = std::max(std::bit_cast<uint32_t>(x) & 0x7f800000, least);
  const uint32_t lost_bits = 23 - Fp8MantissaBits(format);
  const float large = std::bit_cast<float>(exponent + (lost_bits << 23) + 0x400000);
  return (x + large) - large;
}

// Does the same as RoundToFp8ByAten on the context's threads.
at::Tensor RoundOnCpu(const LayerContext& context, const at::Tensor& x, Fp8Format format) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.const_data_ptr<float>();
  std::vector<uint32_t> largest((rows + kRows - 1) / kRows, 0);
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    uint32_t most = 0;
    for (int64_t i = begin * cols; i < end * cols; ++i) {
      most = std::max(most, std::bit_cast<uint32_t>(from[i]) & kFp32AbsBits);
    }
    largest[begin / kRows] = most;
  });
  const uint32_t amax = rows == 0 ? 0 : *std::max_element(largest.begin(), largest.end());
  at::Tensor rounded = context.Empty(x.sizes(), x);
  if (!IsFiniteAmax(amax)) return rounded.fill_(std::numeric_limits<float>::quiet_NaN());
  const int e = Fp8Exponent(amax, format);
  const float scale = std::bit_cast<float>(PowerOfTwoBits(e));
  const float inverse = std::bit_cast<float>(PowerOfTwoBits(-e));
  float* to = rounded.data_ptr<float>();
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * cols; i < end * cols; ++i) {
      to[i] = RoundToFormat(from[i] * inverse, format) * scale;
    }
  });
  return rounded;
}

// Without amax, reads x once more to compute it. Does not synchronise with the GPU.
Fp8Matrix QuantizeOnGpu(const LayerContext& context, const at::Tensor& x, Fp8Format format,
                        Fp8Layouts copies, at::Tensor amax) {
  TORCH_CHECK(x.scalar_type() == at::kBFloat16 && x.is_contiguous() && x.size(1) % 16 == 0,
              "fp8 copies are made of whole bf16 matrices with rows of a multiple of 16");
  const c10::cuda::CUDAGuard guard(x.device());
  const CudaRows at = CudaRowsOf(x);
  if (!amax.defined()) LaunchAmax(at, x.const_data_ptr(), NewAmax(x, &amax));
  const at::ScalarType type = format == Fp8Format::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
  const int64_t padded = (at.rows + 15) / 16 * 16;
  Fp8Matrix result;
  if (copies != Fp8Layouts::kColumns) result.rows = context.Empty({at.rows, at.cols}, x, type);
  if (copies != Fp8Layouts::kRows) result.columns = context.Empty({at.cols, padded}, x, type);
  result.scale = context.Empty({1}, x, at::kFloat);
  LaunchQuantize(at, format, x.const_data_ptr(),
                 reinterpret_cast<const uint32_t*>(amax.const_data_ptr<int32_t>()),
                 {.rows = result.rows.defined() ? result.rows.data_ptr() : nullptr,
                  .columns = result.columns.defined() ? result.columns.data_ptr() : nullptr,
                  .padded_rows = padded,
                  .scale = result.scale.data_ptr<float>()});
  return result;
}

}  // namespace

absl::Status CheckFp8(at::Device device, at::ScalarType dtype) {
  if (device.is_cpu()) return absl::OkStatus();
  if (!CudaHasFp8(device)) {
    return absl::FailedPreconditionError(
        absl::StrCat(device.str(),
                     " has no FP8 tensor cores: FP8 needs compute capability 8.9 or later "
                     "(L40S, H100, H200); train without"));
  }
  if (dtype != at::kBFloat16) {
    return absl::FailedPreconditionError(
        "on a GPU fp8 needs weights in bfloat16; change their type or train without");
  }
  return absl::OkStatus();
}

at::Tensor RoundToFp8ByAten(const at::Tensor& x, Fp8Format format) {
  if (x.numel() == 0) return x.clone();
  const at::Tensor wide = x.to(at::kFloat);
  const uint32_t amax = std::bit_cast<uint32_t>(wide.abs().max().item<float>());
  if (!IsFiniteAmax(amax)) return at::full_like(x, std::numeric_limits<double>::quiet_NaN());
  const int e = Fp8Exponent(amax, format);
  const at::ScalarType type = format == Fp8Format::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
  return wide.mul(std::ldexp(1.0, -e))
      .to(type)
      .to(at::kFloat)
      .mul_(std::ldexp(1.0, e))
      .to(x.scalar_type());
}

Fp8Matrix Quantize(const LayerContext& context, const at::Tensor& x, Fp8Format format,
                   Fp8Layouts copies, const at::Tensor& amax) {
  if (InHardware(context, x)) return QuantizeOnGpu(context, x, format, copies, amax);
  const at::Tensor rounded =
      context.UseCpuKernels(x) ? RoundOnCpu(context, x, format) : RoundToFp8ByAten(x, format);
  Fp8Matrix result;
  if (copies != Fp8Layouts::kColumns) result.rows = rounded;
  if (copies != Fp8Layouts::kRows) result.columns = rounded.t();
  return result;
}

namespace {

void CheckSameRepresentation(const Fp8Matrix& a, const Fp8Matrix& b) {
  TORCH_CHECK(a.in_hardware() == b.in_hardware(),
              "operands of an FP8 GEMM are on different devices or have different types");
}

Fp8Scales ScalesOf(const Fp8Matrix& a, const Fp8Matrix& b, bool fast) {
  return {.a = a.scale.const_data_ptr<float>(), .b = b.scale.const_data_ptr<float>(), .fast = fast};
}

// out = x W^T, plus *add unless null.
void Fp8Gemm(const LayerContext& context, const Fp8Matrix& x, const at::Tensor& weight,
             const at::Tensor* add, at::Tensor out) {
  const Fp8Matrix w = Quantize(context, weight, Fp8Format::kE4M3, Fp8Layouts::kRows);
  CheckSameRepresentation(x, w);
  if (x.in_hardware()) {
    const Fp8Scales scales = ScalesOf(x, w, /*fast=*/true);
    context.gemm(weight).Multiply(x.rows, w.rows.t(), add, out, &scales);
    return;
  }
  if (add != nullptr) out.copy_(*add);
  LinearForward(context, x.rows, w.rows, add != nullptr, out);
}

}  // namespace

bool SupportsFp8(const FusedWeights& weights) {
  for (const at::Tensor& weight : weights.parts) {
    if (weight.size(0) % 16 != 0 || weight.size(1) % 16 != 0) return false;
  }
  return true;
}

void Fp8Forward(const LayerContext& context, const at::Tensor& x, const at::Tensor& amax,
                const FusedWeights& weights, const at::Tensor& out) {
  const Fp8Matrix in = Quantize(context, x, Fp8Format::kE4M3, Fp8Layouts::kRows, amax);
  int64_t column = 0;
  for (const at::Tensor& weight : FusedOrParts(context, weights)) {
    Fp8Gemm(context, in, weight, nullptr, out.narrow(1, column, weight.size(0)));
    column += weight.size(0);
  }
}

at::Tensor Fp8ResidualAdd(const LayerContext& context, const at::Tensor& residual,
                          const at::Tensor& x, const at::Tensor& amax, const at::Tensor& weight) {
  const Fp8Matrix in = Quantize(context, x, Fp8Format::kE4M3, Fp8Layouts::kRows, amax);
  at::Tensor out = context.Empty(residual.sizes(), residual);
  Fp8Gemm(context, in, weight, &residual, out);
  return out;
}

Fp8Matrix Fp8Gradient(const LayerContext& context, const at::Tensor& d_out,
                      const at::Tensor& amax) {
  return Quantize(context, d_out, context.gpu().fp8_gradients, Fp8Layouts::kBoth, amax);
}

void Fp8BackwardInput(const LayerContext& context, Fp8Matrix* d_out, const FusedWeights& weights,
                      at::Tensor d_x) {
  int64_t column = 0;
  for (const at::Tensor& weight : FusedOrParts(context, weights)) {
    const at::Tensor d = d_out->rows.narrow(1, column, weight.size(0));
    const bool add = column > 0;
    if (d_out->in_hardware()) {
      const Fp8Matrix w = Quantize(context, weight, Fp8Format::kE4M3, Fp8Layouts::kColumns);
      CheckSameRepresentation(*d_out, w);
      const Fp8Scales scales = ScalesOf(*d_out, w, context.gpu().fp8_fast_gradients);
      context.gemm(weight).Multiply(d, w.columns.t(), add ? &d_x : nullptr, d_x, &scales);
    } else {
      const Fp8Matrix w = Quantize(context, weight, Fp8Format::kE4M3, Fp8Layouts::kRows);
      LinearBackwardInput(context, d, w.rows, add, d_x);
    }
    column += weight.size(0);
  }
  d_out->rows.reset();
}

void Fp8BackwardWeight(const LayerContext& context, Fp8Matrix* d_out, const at::Tensor& x,
                       const at::Tensor& amax, bool accumulate, const FusedWeights& gradients) {
  const Fp8Matrix in = Quantize(context, x, Fp8Format::kE4M3, Fp8Layouts::kColumns, amax);
  CheckSameRepresentation(*d_out, in);
  int64_t row = 0;
  for (at::Tensor gradient : FusedOrParts(context, gradients)) {
    const at::Tensor d = d_out->columns.narrow(0, row, gradient.size(0));
    if (d_out->in_hardware()) {
      const Fp8Scales scales = ScalesOf(*d_out, in, context.gpu().fp8_fast_gradients);
      context.gemm(gradient).Multiply(d, in.columns.t(), accumulate ? &gradient : nullptr, gradient,
                                      &scales);
    } else {
      LinearBackwardWeight(context, d.t(), in.columns.t(), accumulate, gradient);
    }
    row += gradient.size(0);
  }
  d_out->columns.reset();
}

}  // namespace tritonrl
