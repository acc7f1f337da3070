#include "model/fp8.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/cuda/quantize.h"

namespace tritonrl {
namespace {

constexpr int64_t kRows = 64;  // rows of one task

bool InHardware(const LayerContext& context, const at::Tensor& x) {
  return context.UseCuda(x) && x.scalar_type() == at::kBFloat16 && context.gemm(x).has_fp8();
}

// |x| at most the format's largest number: to the nearest one, half-way to the even. What is added
// and taken away again leaves the bits that the format has at x's exponent, or at its least one.
float RoundToFormat(float x, Fp8Format format) {
  const uint32_t least = PowerOfTwoBits(Fp8MinExponent(format));
  const uint32_t exponent = std::max(std::bit_cast<uint32_t>(x) & 0x7f800000, least);
  const uint32_t lost_bits = 23 - Fp8MantissaBits(format);
  const float large = std::bit_cast<float>(exponent + (lost_bits << 23) + 0x400000);
  return (x + large) - large;
}

// On the context's threads, as the kernels of the CPU run.
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

}  // namespace

absl::Status CheckFp8(at::Device device, at::ScalarType dtype) {
  if (device.is_cpu()) return absl::OkStatus();
  if (!CudaHasFp8(device)) {
    return absl::FailedPreconditionError(
        absl::StrCat(device.str(),
                     " does not multiply 8-bit numbers: fp8 needs compute capability 8.9 or later "
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
                   Fp8Copies copies, const at::Tensor& amax) {
  Fp8Matrix result;
  if (InHardware(context, x)) {
    const CudaFp8Matrix made =
        CudaQuantize(x, format, copies != Fp8Copies::kColumns, copies != Fp8Copies::kRows, amax);
    return {made.rows, made.columns, made.scale};
  }
  const at::Tensor rounded =
      context.UseKernels(x) ? RoundOnCpu(context, x, format) : RoundToFp8ByAten(x, format);
  if (copies != Fp8Copies::kColumns) result.rows = rounded;
  if (copies != Fp8Copies::kRows) result.columns = rounded.t();
  return result;
}

}  // namespace tritonrl
