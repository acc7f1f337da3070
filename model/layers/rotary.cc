#include "model/layers/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/layers/rms_norm.h"

namespace tritonrl {
namespace {

constexpr int64_t kRows = 64;  // rows of one task, and of one partial sum of the norms' gradients

// Rotates x [T, heads, D]; sign -1 rotates back.
at::Tensor RotateHeads(const at::Tensor& x, const RotaryTable& table, const at::Tensor& positions,
                       double sign) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor cos = table.cos.index_select(0, positions).unsqueeze(1);  // [T, 1, D / 2]
  const at::Tensor sin = table.sin.index_select(0, positions).unsqueeze(1).mul(sign);
  const at::Tensor wide = ToComputeType(x);
  const at::Tensor a = wide.narrow(-1, 0, half), b = wide.narrow(-1, half, half);
  return at::cat({a * cos - b * sin, b * cos + a * sin}, -1).to(x.scalar_type());
}

// One of the two groups of heads in a qkv row.
struct HeadGroup {
  int64_t first;  // head
  int64_t heads;
  at::Tensor weight;    // [D] or undefined
  at::Tensor d_weight;  // backward only
};

std::vector<HeadGroup> Groups(const ModelConfig& config, const at::Tensor& q_weight,
                              const at::Tensor& k_weight, const at::Tensor& d_q_weight = {},
                              const at::Tensor& d_k_weight = {}) {
  return {{0, config.num_heads, q_weight, d_q_weight},
          {config.num_heads, config.num_kv_heads, k_weight, d_k_weight}};
}

at::Tensor ForwardAten(const LayerContext& context, const ModelConfig& config,
                       const at::Tensor& qkv, const std::vector<HeadGroup>& groups,
                       const RotaryTable& table, const at::Tensor& positions, at::Tensor* rstd) {
  const int64_t rows = qkv.size(0), dim = config.head_dim;
  std::vector<at::Tensor> parts, inverses;
  for (const HeadGroup& group : groups) {
    at::Tensor x = qkv.narrow(1, group.first * dim, group.heads * dim).reshape({-1, dim});
    if (group.weight.defined()) {
      at::Tensor inverse;
      x = RmsNormForward(context, x, group.weight, config.rms_norm_eps, &inverse);
      inverses.push_back(inverse.view({rows, group.heads}));
    }
    parts.push_back(RotateHeads(x.view({rows, group.heads, dim}), table, positions, 1.0)
                        .view({rows, group.heads * dim}));
  }
  if (!inverses.empty()) *rstd = at::cat(inverses, 1);
  return at::cat(parts, 1);
}

void BackwardAten(const LayerContext& context, const ModelConfig& config, const at::Tensor& qkv,
                  const at::Tensor& rstd, const std::vector<HeadGroup>& groups,
                  const RotaryTable& table, const at::Tensor& positions, at::Tensor d_qkv) {
  const int64_t rows = qkv.size(0), dim = config.head_dim;
  for (const HeadGroup& group : groups) {
    at::Tensor slice = d_qkv.narrow(1, group.first * dim, group.heads * dim);
    at::Tensor d = RotateHeads(slice.reshape({rows, group.heads, dim}), table, positions, -1.0);
    if (group.weight.defined()) {
      const at::Tensor x = qkv.narrow(1, group.first * dim, group.heads * dim).reshape({-1, dim});
      at::Tensor d_x = d.new_zeros({rows * group.heads, dim});
      RmsNormBackward(context, x, group.weight,
                      rstd.narrow(1, group.first, group.heads).reshape({-1}), d.view({-1, dim}),
                      d_x, group.d_weight);
      d = d_x;
    }
    slice.copy_(d.view({rows, group.heads * dim}));
  }
}

bool UseCuda(const LayerContext& context, const ModelConfig& config, const at::Tensor& qkv,
             const RotaryTable& table) {
  const int64_t dim = config.head_dim;
  return (dim == 64 || dim == 128 || dim == 256) && context.UseCuda(qkv) &&
         table.cos.scalar_type() == at::kFloat;
}

CudaHeads CudaHeadsOf(const ModelConfig& config, const at::Tensor& qkv, const at::Tensor& q_weight,
                      const at::Tensor& k_weight, const RotaryTable& table,
                      const at::Tensor& positions) {
  const CudaRows rows = CudaRowsOf(qkv);
  return {.rows = rows.rows,
          .query_heads = static_cast<int>(config.num_heads),
          .key_heads = static_cast<int>(config.num_kv_heads),
          .dim = static_cast<int>(config.head_dim),
          .stride = qkv.stride(0),
          .type = rows.type,
          .q_weight = q_weight.defined() ? q_weight.const_data_ptr() : nullptr,
          .k_weight = k_weight.defined() ? k_weight.const_data_ptr() : nullptr,
          .cos = table.cos.const_data_ptr<float>(),
          .sin = table.sin.const_data_ptr<float>(),
          .positions = positions.const_data_ptr<int64_t>(),
          .stream = rows.stream};
}

}  // namespace

RotaryTable MakeRotaryTable(const ModelConfig& config, at::Device device, at::ScalarType dtype) {
  const std::vector<double> frequencies =
      RopeInverseFrequencies(config.rope_theta, config.head_dim, config.rope_scaling);
  const double factor = config.rope_scaling.attention_factor;
  const int64_t half = config.head_dim / 2;
  at::Tensor cos = at::empty({config.max_positions, half}, at::kDouble);
  at::Tensor sin = at::empty_like(cos);
  double* c = cos.data_ptr<double>();
  double* s = sin.data_ptr<double>();
  for (int64_t p = 0; p < config.max_positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * frequencies[i];
      *c++ = factor * std::cos(angle);
      *s++ = factor * std::sin(angle);
    }
  }
  const at::ScalarType type = dtype == at::kDouble ? at::kDouble : at::kFloat;
  return {cos.to(type).to(device), sin.to(type).to(device)};
}

at::Tensor HeadNormRotaryForward(const LayerContext& context, const ModelConfig& config,
                                 const at::Tensor& qkv, const at::Tensor& q_weight,
                                 const at::Tensor& k_weight, const RotaryTable& table,
                                 const at::Tensor& positions, at::Tensor* rstd) {
  const std::vector<HeadGroup> groups = Groups(config, q_weight, k_weight);
  const bool cuda = UseCuda(context, config, qkv, table);
  if (!cuda && !context.UseCpuKernels(qkv)) {
    return ForwardAten(context, config, qkv, groups, table, positions, rstd);
  }
  const int64_t rows = qkv.size(0), dim = config.head_dim;
  const int64_t all = config.num_heads + config.num_kv_heads;
  at::Tensor qk = context.Empty({rows, all * dim}, qkv);
  if (q_weight.defined()) *rstd = context.Empty({rows, all}, qkv, at::kFloat);
  float* inverse = q_weight.defined() ? rstd->data_ptr<float>() : nullptr;
  const float eps = static_cast<float>(config.rms_norm_eps);
  if (cuda) {
    const c10::cuda::CUDAGuard guard(qkv.device());
    LaunchHeadNormRotary(CudaHeadsOf(config, qkv, q_weight, k_weight, table, positions),
                         qkv.const_data_ptr(), eps, qk.data_ptr(), inverse);
    return qk;
  }
  const int64_t from_row = qkv.stride(0), to_row = all * dim;
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    for (const HeadGroup& group : groups) {
      context.kernels().head_norm_rotary(
          end - begin, group.heads, dim,
          qkv.data_ptr<float>() + begin * from_row + group.first * dim, from_row,
          group.weight.defined() ? group.weight.data_ptr<float>() : nullptr, eps,
          table.cos.data_ptr<float>(), table.sin.data_ptr<float>(),
          positions.data_ptr<int64_t>() + begin,
          qk.data_ptr<float>() + begin * to_row + group.first * dim, to_row,
          inverse == nullptr ? nullptr : inverse + begin * all + group.first, all);
    }
  });
  return qk;
}

void HeadNormRotaryBackward(const LayerContext& context, const ModelConfig& config,
                            const at::Tensor& qkv, const at::Tensor& rstd,
                            const at::Tensor& q_weight, const at::Tensor& k_weight,
                            const RotaryTable& table, const at::Tensor& positions, at::Tensor d_qkv,
                            at::Tensor d_q_weight, at::Tensor d_k_weight) {
  if (UseCuda(context, config, qkv, table)) {
    const c10::cuda::CUDAGuard guard(qkv.device());
    const CudaHeads heads = CudaHeadsOf(config, qkv, q_weight, k_weight, table, positions);
    at::Tensor partials =
        context.Empty({HeadPartials(heads), 2 * config.head_dim}, qkv, at::kFloat);
    const auto floats = [&](const at::Tensor& x) {
      return q_weight.defined() ? x.data_ptr<float>() : nullptr;
    };
    LaunchHeadNormRotaryBackward(heads, qkv.const_data_ptr(), floats(rstd), d_qkv.data_ptr(),
                                 partials.data_ptr<float>(), floats(d_q_weight),
                                 floats(d_k_weight));
    return;
  }
  const std::vector<HeadGroup> groups = Groups(config, q_weight, k_weight, d_q_weight, d_k_weight);
  if (!context.UseCpuKernels(qkv)) {
    return BackwardAten(context, config, qkv, rstd, groups, table, positions, d_qkv);
  }
  const int64_t rows = qkv.size(0), dim = config.head_dim;
  const int64_t all = config.num_heads + config.num_kv_heads;
  const int64_t blocks = (rows + kRows - 1) / kRows;
  at::Tensor partial = context.Empty({blocks, 2, dim}, qkv);
  float* sums = partial.data_ptr<float>();
  context.ForRowBlocks(rows, kRows, [&](int64_t begin, int64_t end) {
    float* sum = sums + begin / kRows * 2 * dim;
    std::fill(sum, sum + 2 * dim, 0.0f);
    for (size_t i = 0; i < groups.size(); ++i) {
      const HeadGroup& group = groups[i];
      const bool normed = group.weight.defined();
      context.kernels().head_norm_rotary_backward(
          end - begin, group.heads, dim,
          qkv.data_ptr<float>() + begin * qkv.stride(0) + group.first * dim, qkv.stride(0),
          normed ? group.weight.data_ptr<float>() : nullptr, table.cos.data_ptr<float>(),
          table.sin.data_ptr<float>(), positions.data_ptr<int64_t>() + begin,
          d_qkv.data_ptr<float>() + begin * d_qkv.stride(0) + group.first * dim, d_qkv.stride(0),
          normed ? rstd.data_ptr<float>() + begin * all + group.first : nullptr, all,
          sum + i * dim);
    }
  });
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].weight.defined()) continue;
    for (int64_t block = 0; block < blocks; ++block) {
      context.kernels().add(dim, sums + (block * 2 + i) * dim,
                            groups[i].d_weight.data_ptr<float>());
    }
  }
}

}  // namespace tritonrl
