#include "model/layers/embedding.h"

#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/sort.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>

namespace tritonrl {

at::Tensor EmbeddingForward(const LayerContext& context, const at::Tensor& table,
                            const at::Tensor& tokens) {
  if (!context.UseCpuKernels(table)) return table.index_select(0, tokens);
  const int64_t rows = tokens.size(0), vocab = table.size(0), cols = table.size(1);
  at::Tensor out = context.Empty({rows, cols}, table);
  const int64_t* ids = tokens.data_ptr<int64_t>();
  const float* from = table.data_ptr<float>();
  float* to = out.data_ptr<float>();
  for (int64_t t = 0; t < rows; ++t) {
    TORCH_CHECK(ids[t] >= 0 && ids[t] < vocab, "token ", ids[t], " at ", t, ", vocabulary ", vocab);
    std::copy_n(from + ids[t] * cols, cols, to + t * cols);
  }
  return out;
}

void EmbeddingBackward(const LayerContext& context, const at::Tensor& tokens,
                       const at::Tensor& d_out, at::Tensor d_table) {
  if (context.UseCuda(d_out)) {
    const c10::cuda::CUDAGuard guard(d_out.device());
    const auto [sorted, order] = at::sort(tokens, /*stable=*/std::optional<bool>(true), /*dim=*/0,
                                          /*descending=*/false);
    LaunchEmbeddingBackward(CudaRowsOf(d_out), sorted.const_data_ptr<int64_t>(),
                            order.const_data_ptr<int64_t>(), d_out.const_data_ptr(),
                            d_table.data_ptr<float>());
    return;
  }
  if (!context.UseCpuKernels(d_out)) {
    // Sorts the tokens, so that the sum's order is fixed on a GPU too.
    d_table.add_(at::embedding_dense_backward(ToComputeType(d_out), tokens, d_table.size(0),
                                              /*padding_idx=*/-1, /*scale_grad_by_freq=*/false));
    return;
  }
  // A thread takes some columns of all tokens: no two write one place, and the order is fixed.
  const int64_t rows = tokens.size(0), cols = d_table.size(1);
  const int64_t* ids = tokens.data_ptr<int64_t>();
  const float* from = d_out.data_ptr<float>();
  float* to = d_table.data_ptr<float>();
  context.ForRowBlocks(cols, 64, [&](int64_t begin, int64_t end) {
    for (int64_t t = 0; t < rows; ++t) {
      context.kernels().add(end - begin, from + t * cols + begin, to + ids[t] * cols + begin);
    }
  });
}

}  // namespace tritonrl
