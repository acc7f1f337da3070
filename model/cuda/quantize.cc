#include "model/cuda/quantize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>

#include "model/cuda/kernels.h"

namespace tritonrl {

bool CudaHasFp8(at::Device device) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index());
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index());
  return major * 10 + minor >= 89;
}

at::Tensor CudaNewAmax(const at::Tensor& like) {
  return at::zeros({1}, like.options().dtype(at::kInt));
}

CudaFp8Matrix CudaQuantize(const at::Tensor& x, Fp8Format format, bool rows, bool columns,
                           at::Tensor amax) {
  TORCH_CHECK(x.scalar_type() == at::kBFloat16 && x.is_contiguous() && x.size(1) % 16 == 0,
              "fp8 copies are made of whole bf16 matrices with rows of a multiple of 16");
  const c10::cuda::CUDAGuard guard(x.device());
  const CudaRows at = {.rows = x.size(0),
                       .cols = x.size(1),
                       .type = CudaType::kBFloat16,
                       .stream = c10::cuda::getCurrentCUDAStream(x.device().index()).stream()};
  const auto bits = [](const at::Tensor& tensor) {
    return reinterpret_cast<uint32_t*>(tensor.data_ptr<int32_t>());
  };
  if (!amax.defined()) {
    amax = CudaNewAmax(x);
    LaunchAmax(at, x.const_data_ptr(), bits(amax));
  }
  const at::TensorOptions options =
      x.options().dtype(format == Fp8Format::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2);
  const int64_t padded = (at.rows + 15) / 16 * 16;
  CudaFp8Matrix result;
  if (rows) result.rows = at::empty({at.rows, at.cols}, options);
  if (columns) result.columns = at::empty({at.cols, padded}, options);
  result.scale = at::empty({1}, x.options().dtype(at::kFloat));
  LaunchQuantize(at, format, x.const_data_ptr(), bits(amax),
                 {.rows = rows ? result.rows.data_ptr() : nullptr,
                  .columns = columns ? result.columns.data_ptr() : nullptr,
                  .padded_rows = padded,
                  .scale = result.scale.data_ptr<float>()});
  return result;
}

}  // namespace tritonrl
