#include "model/cuda/fused/tensor_kernels.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "model/cuda/fused/kernels.h"
#include "model/cuda/fused/tensor_kernels.h"

namespace tritonrl {

namespace {

void* StreamFor(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

CudaType TypeOf(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat ? CudaType::kFloat : CudaType::kBFloat16;
}

CudaRows RowsOf(const at::Tensor& x, int64_t cols) {
  return {x.size(0), cols, TypeOf(x), StreamFor(x)};
}
CudaRows RowsOf(const at::Tensor& x) { return RowsOf(x, x.size(1)); }

at::Tensor Floats(at::IntArrayRef shape, const at::Tensor& like) {
  return at::empty(shape, like.options().dtype(at::kFloat));
}

uint32_t* NewAmax(const at::Tensor& like, at::Tensor* amax) {
  if (amax == nullptr) return nullptr;
  *amax = NewCudaAmax(like);
  return reinterpret_cast<uint32_t*>(amax->data_ptr<int32_t>());
}

CudaHeads HeadsOf(const at::Tensor& qkv, const CudaHeadNorm& heads) {
  return {.rows = qkv.size(0),
          .query_heads = static_cast<int>(heads.query_heads),
          .key_heads = static_cast<int>(heads.key_heads),
          .dim = static_cast<int>(heads.dim),
          .stride = qkv.stride(0),
          .type = TypeOf(qkv),
          .q_weight = heads.q_weight.defined() ? heads.q_weight.const_data_ptr() : nullptr,
          .k_weight = heads.k_weight.defined() ? heads.k_weight.const_data_ptr() : nullptr,
          .cos = heads.cos.const_data_ptr<float>(),
          .sin = heads.sin.const_data_ptr<float>(),
          .positions = heads.positions.const_data_ptr<int64_t>(),
          .stream = StreamFor(qkv)};
}

}  // namespace

bool CudaSupports(const at::Tensor& x) {
  if (!x.is_cuda() || x.dim() != 2) return false;
  const at::ScalarType type = x.scalar_type();
  return (type == at::kFloat || type == at::kBFloat16) && x.is_contiguous() && x.size(1) % 8 == 0 &&
         reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

bool CudaSupportsNorm(const at::Tensor& x) { return CudaSupports(x) && x.size(1) <= 8192; }

at::Tensor CudaRmsNormForward(const at::Tensor& x, const at::Tensor& weight, double eps,
                              at::Tensor* rstd, at::Tensor* amax) {
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor y = at::empty(x.sizes(), x.options());
  *rstd = Floats({x.size(0)}, x);
  LaunchRmsNorm(RowsOf(x), x.const_data_ptr(), weight.const_data_ptr(), static_cast<float>(eps),
                y.data_ptr(), rstd->data_ptr<float>(), NewAmax(x, amax));
  return y;
}

at::Tensor CudaRecomputeRmsNorm(const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& rstd, at::Tensor* amax) {
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor y = at::empty(x.sizes(), x.options());
  LaunchRecomputeRmsNorm(RowsOf(x), x.const_data_ptr(), weight.const_data_ptr(),
                         rstd.const_data_ptr<float>(), y.data_ptr(), NewAmax(x, amax));
  return y;
}

void CudaRmsNormBackward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                         const at::Tensor& d_y, at::Tensor d_x, at::Tensor d_weight,
                         at::Tensor* amax) {
  const c10::cuda::CUDAGuard guard(x.device());
  const CudaRows rows = RowsOf(x);
  at::Tensor partials = Floats({RmsNormPartials(rows), x.size(1)}, x);
  LaunchRmsNormBackward(rows, x.const_data_ptr(), weight.const_data_ptr(),
                        rstd.const_data_ptr<float>(), d_y.const_data_ptr(), d_x.data_ptr(),
                        partials.data_ptr<float>(), d_weight.data_ptr<float>(), NewAmax(x, amax));
}

at::Tensor CudaSwigluForward(const at::Tensor& gate_up, at::Tensor* amax) {
  const c10::cuda::CUDAGuard guard(gate_up.device());
  const int64_t size = gate_up.size(1) / 2;
  at::Tensor out = at::empty({gate_up.size(0), size}, gate_up.options());
  LaunchSwiglu(RowsOf(gate_up, size), gate_up.const_data_ptr(), out.data_ptr(),
               NewAmax(gate_up, amax));
  return out;
}

void CudaSwigluBackward(const at::Tensor& gate_up, at::Tensor d_out, at::Tensor d_gate_up,
                        bool recompute_out, at::Tensor* d_amax, at::Tensor* amax) {
  const c10::cuda::CUDAGuard guard(gate_up.device());
  LaunchSwigluBackward(RowsOf(gate_up, d_out.size(1)), gate_up.const_data_ptr(),
                       d_out.const_data_ptr(), d_gate_up.data_ptr(),
                       recompute_out ? d_out.data_ptr() : nullptr, NewAmax(gate_up, d_amax),
                       NewAmax(gate_up, amax));
}

bool CudaSupportsHeads(const at::Tensor& qkv, const CudaHeadNorm& heads) {
  const bool known = heads.dim == 64 || heads.dim == 128 || heads.dim == 256;
  return known && CudaSupports(qkv) && heads.cos.scalar_type() == at::kFloat;
}

at::Tensor CudaHeadNormRotaryForward(const at::Tensor& qkv, const CudaHeadNorm& heads, double eps,
                                     at::Tensor* rstd) {
  const c10::cuda::CUDAGuard guard(qkv.device());
  const int64_t rows = qkv.size(0), count = heads.query_heads + heads.key_heads;
  at::Tensor qk = at::empty({rows, count * heads.dim}, qkv.options());
  float* inverse = nullptr;
  if (heads.q_weight.defined()) {
    *rstd = Floats({rows, count}, qkv);
    inverse = rstd->data_ptr<float>();
  }
  LaunchHeadNormRotary(HeadsOf(qkv, heads), qkv.const_data_ptr(), static_cast<float>(eps),
                       qk.data_ptr(), inverse);
  return qk;
}

void CudaHeadNormRotaryBackward(const at::Tensor& qkv, const at::Tensor& rstd,
                                const CudaHeadNorm& heads, at::Tensor d_qkv, at::Tensor d_q_weight,
                                at::Tensor d_k_weight) {
  const c10::cuda::CUDAGuard guard(qkv.device());
  const CudaHeads at = HeadsOf(qkv, heads);
  at::Tensor partials = Floats({HeadPartials(at), 2 * heads.dim}, qkv);
  const bool normed = heads.q_weight.defined();
  LaunchHeadNormRotaryBackward(
      at, qkv.const_data_ptr(), normed ? rstd.const_data_ptr<float>() : nullptr, d_qkv.data_ptr(),
      partials.data_ptr<float>(), normed ? d_q_weight.data_ptr<float>() : nullptr,
      normed ? d_k_weight.data_ptr<float>() : nullptr);
}

void CudaLogSoftmaxForward(const at::Tensor& logits, double temperature, const at::Tensor& targets,
                           at::Tensor log_probs, at::Tensor entropy, at::Tensor lse) {
  const c10::cuda::CUDAGuard guard(logits.device());
  LaunchLogSoftmax(RowsOf(logits), logits.const_data_ptr<float>(), static_cast<float>(temperature),
                   targets.const_data_ptr<int64_t>(), log_probs.data_ptr<float>(),
                   entropy.data_ptr<float>(), lse.data_ptr<float>());
}

void CudaLogSoftmaxBackward(const at::Tensor& logits, double temperature, const at::Tensor& targets,
                            const at::Tensor& lse, const at::Tensor& d_log_probs,
                            at::Tensor d_logits) {
  const c10::cuda::CUDAGuard guard(logits.device());
  LaunchLogSoftmaxBackward(RowsOf(d_logits), logits.const_data_ptr<float>(),
                           static_cast<float>(temperature), targets.const_data_ptr<int64_t>(),
                           lse.const_data_ptr<float>(), d_log_probs.const_data_ptr<float>(),
                           d_logits.data_ptr());
}

void CudaEmbeddingBackward(const at::Tensor& tokens, const at::Tensor& d_out, at::Tensor d_table) {
  const c10::cuda::CUDAGuard guard(d_out.device());
  const auto [sorted, order] = at::sort(tokens, /*stable=*/std::optional<bool>(true), /*dim=*/0,
                                        /*descending=*/false);
  LaunchEmbeddingBackward(RowsOf(d_out), sorted.const_data_ptr<int64_t>(),
                          order.const_data_ptr<int64_t>(), d_out.const_data_ptr(),
                          d_table.data_ptr<float>());
}

bool CudaHasFp8(at::Device device) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index());
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index());
  return major * 10 + minor >= 89;
}

at::Tensor NewCudaAmax(const at::Tensor& like) {
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
    amax = NewCudaAmax(x);
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
