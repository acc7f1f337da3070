#include "model/layers/layer_context.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>

#include <cstring>

namespace tritonrl {
namespace {

constexpr int64_t kRows = 256;  // rows of one task

}  // namespace

bool AttentionPerSequence(at::Device device, const GpuOptions& options) {
  return device.is_cuda() && CudnnAttention::PerSequence(device, options.attention);
}

bool LayerContext::UseCuda(const at::Tensor& x) const {
  if (force_aten_ || !x.is_cuda() || x.dim() != 2) return false;
  const at::ScalarType type = x.scalar_type();
  return (type == at::kFloat || type == at::kBFloat16) && x.is_contiguous() && x.size(1) % 8 == 0 &&
         reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

at::Tensor LayerContext::Empty(at::IntArrayRef shape, const at::Tensor& like,
                               at::ScalarType dtype) const {
  if (like.is_cpu()) return pool_->Empty(shape, dtype);
  return at::empty(shape, like.options().dtype(dtype));
}

CudaGemm& LayerContext::gemm(const at::Tensor& x) const {
  std::call_once(gemm_once_,
                 [&] { gemm_ = std::make_unique<CudaGemm>(x.device(), gpu_.autotune_gemm); });
  return *gemm_;
}

CudnnAttention& LayerContext::attention(const at::Tensor& x) const {
  std::call_once(attention_once_, [&] {
    attention_ = std::make_unique<CudnnAttention>(x.device(), gpu_.attention);
  });
  return *attention_;
}

CudaRows CudaRowsOf(const at::Tensor& x, int64_t cols) {
  return {x.size(0), cols, x.scalar_type() == at::kFloat ? CudaType::kFloat : CudaType::kBFloat16,
          c10::cuda::getCurrentCUDAStream(x.device().index()).stream()};
}

uint32_t* NewAmax(const at::Tensor& like, at::Tensor* amax) {
  if (amax == nullptr) return nullptr;
  *amax = at::zeros({1}, like.options().dtype(at::kInt));
  return reinterpret_cast<uint32_t*>(amax->data_ptr<int32_t>());
}

at::Tensor CopyOf(const LayerContext& context, const at::Tensor& x) {
  if (!context.UseCpuKernels(x)) return x.clone();
  const int64_t cols = x.size(1);
  at::Tensor y = context.Empty(x.sizes(), x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  context.ForRowBlocks(x.size(0), kRows, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin * cols, from + begin * cols, (end - begin) * cols * sizeof(float));
  });
  return y;
}

at::Tensor GatherRows(const LayerContext& context, const at::Tensor& x, const at::Tensor& rows) {
  if (!context.UseCpuKernels(x)) return x.index_select(0, rows);
  const int64_t cols = x.size(1);
  at::Tensor y = context.Empty({rows.size(0), cols}, x);
  const int64_t* row = rows.data_ptr<int64_t>();
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  context.ForRowBlocks(rows.size(0), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::memcpy(to + r * cols, from + row[r] * cols, cols * sizeof(float));
    }
  });
  return y;
}

at::Tensor ScatterRows(const LayerContext& context, const at::Tensor& x, const at::Tensor& rows,
                       int64_t total) {
  const int64_t cols = x.size(1);
  at::Tensor y = context.Empty({total, cols}, x);
  if (!context.UseCpuKernels(x)) return y.zero_().index_copy_(0, rows, x);
  const int64_t count = rows.size(0);
  const int64_t* row = rows.data_ptr<int64_t>();
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  context.ForRowBlocks(total, kRows, [&](int64_t begin, int64_t end) {
    std::memset(to + begin * cols, 0, (end - begin) * cols * sizeof(float));
    for (int64_t r = std::lower_bound(row, row + count, begin) - row; r < count && row[r] < end;
         ++r) {
      std::memcpy(to + row[r] * cols, from + r * cols, cols * sizeof(float));
    }
  });
  return y;
}

}  // namespace tritonrl
