#include "model/layers/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

namespace tritonrl {

namespace {

// Returns the task of one (sequence, key/value head) with the pointers common to forward and
// backward.
AttentionTask MakeTask(const ModelConfig& config, const SequenceLayout& layout, int64_t sequence,
                       int64_t kv_head, const at::Tensor& qk, const at::Tensor& qkv,
                       const at::Tensor& out, const at::Tensor& lse) {
  const int64_t dim = config.head_dim, group = config.group_size();
  const int64_t begin = layout.offsets[sequence], total = layout.offsets.back();
  const int64_t heads = config.num_heads, kv_heads = config.num_kv_heads;
  AttentionTask task;
  task.length = layout.offsets[sequence + 1] - begin;
  task.head_dim = dim;
  task.group = group;
  task.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  task.q_row = task.k_row = (heads + kv_heads) * dim;
  task.v_row = (heads + 2 * kv_heads) * dim;
  task.out_row = heads * dim;
  task.q = qk.data_ptr<float>() + begin * task.q_row + kv_head * group * dim;
  task.k = qk.data_ptr<float>() + begin * task.k_row + (heads + kv_head) * dim;
  task.v = qkv.data_ptr<float>() + begin * task.v_row + (heads + kv_heads + kv_head) * dim;
  task.out = out.data_ptr<float>() + begin * task.out_row + kv_head * group * dim;
  task.lse = lse.data_ptr<float>() + kv_head * group * total + begin;
  task.lse_head = total;
  return task;
}

// Calls body(sequence, kv_head), longest sequences first, so that the threads finish together.
template <typename Body>
void ForEachHead(const LayerContext& context, const ModelConfig& config,
                 const SequenceLayout& layout, const Body& body) {
  std::vector<int64_t> order(layout.num_sequences());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return layout.offsets[a + 1] - layout.offsets[a] > layout.offsets[b + 1] - layout.offsets[b];
  });
  const int64_t kv_heads = config.num_kv_heads;
  context.threads().ParallelFor(static_cast<int64_t>(order.size()) * kv_heads,
                                [&](int64_t i) { body(order[i / kv_heads], i % kv_heads); });
}

// Plain ATen for one sequence at a time: the reference, and the path for other types on the CPU.
// Heads returns the heads of x[T, heads * D] from head `first` on as [heads, L, D], repeated for
// grouped queries.
at::Tensor Heads(const at::Tensor& x, int64_t begin, int64_t end, int64_t first, int64_t heads,
                 int64_t dim, int64_t repeat) {
  const at::Tensor rows = x.slice(0, begin, end).narrow(1, first * dim, heads * dim);
  return ToComputeType(rows)
      .reshape({end - begin, heads, dim})
      .transpose(0, 1)
      .repeat_interleave(repeat, 0);
}

struct SequenceHeads {
  at::Tensor q, k, v;  // [H, L, D]
  at::Tensor probs;    // [H, L, L]
  at::Tensor lse;      // [H, L]
};

SequenceHeads ComputeProbs(const ModelConfig& config, const SequenceLayout& layout,
                           int64_t sequence, const at::Tensor& qk, const at::Tensor& qkv) {
  const int64_t begin = layout.offsets[sequence], end = layout.offsets[sequence + 1];
  const int64_t heads = config.num_heads, kv_heads = config.num_kv_heads, dim = config.head_dim;
  SequenceHeads s;
  s.q = Heads(qk, begin, end, 0, heads, dim, 1);
  s.k = Heads(qk, begin, end, heads, kv_heads, dim, config.group_size());
  s.v = Heads(qkv, begin, end, heads + kv_heads, kv_heads, dim, config.group_size());
  at::Tensor scores = at::bmm(s.q, s.k.transpose(1, 2)).div_(std::sqrt(static_cast<double>(dim)));
  scores.add_(at::full({end - begin, end - begin}, -std::numeric_limits<double>::infinity(),
                       scores.options())
                  .triu_(1));
  s.lse = scores.logsumexp(-1);
  s.probs = (scores - s.lse.unsqueeze(-1)).exp_();
  return s;
}

at::Tensor ForwardAten(const ModelConfig& config, const SequenceLayout& layout,
                       const at::Tensor& qk, const at::Tensor& qkv, at::Tensor* lse) {
  const int64_t total = layout.offsets.back();
  at::Tensor out = at::empty({total, config.query_size()}, qk.options());
  *lse = at::empty({config.num_heads, total}, ToComputeType(qk.narrow(0, 0, 0)).options());
  for (int64_t i = 0; i < layout.num_sequences(); ++i) {
    const int64_t begin = layout.offsets[i], end = layout.offsets[i + 1];
    const SequenceHeads s = ComputeProbs(config, layout, i, qk, qkv);
    out.slice(0, begin, end)
        .copy_(at::bmm(s.probs, s.v).transpose(0, 1).reshape({end - begin, config.query_size()}));
    lse->slice(1, begin, end).copy_(s.lse);
  }
  return out;
}

void BackwardAten(const ModelConfig& config, const SequenceLayout& layout, const at::Tensor& qk,
                  const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& d_out,
                  at::Tensor d_qkv) {
  const int64_t heads = config.num_heads, kv_heads = config.num_kv_heads, dim = config.head_dim;
  const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
  for (int64_t i = 0; i < layout.num_sequences(); ++i) {
    const int64_t begin = layout.offsets[i], end = layout.offsets[i + 1], length = end - begin;
    const SequenceHeads s = ComputeProbs(config, layout, i, qk, qkv);
    const at::Tensor d_o = Heads(d_out, begin, end, 0, heads, dim, 1);
    const at::Tensor dot = (d_o * Heads(out, begin, end, 0, heads, dim, 1)).sum(-1, true);
    const at::Tensor d_scores = (at::bmm(d_o, s.v.transpose(1, 2)) - dot).mul_(s.probs).mul_(scale);
    at::Tensor rows = d_qkv.slice(0, begin, end);
    auto write = [&](int64_t first, int64_t count, const at::Tensor& d) {  // d: [H, L, D]
      const at::Tensor summed = d.view({count, heads / count, length, dim}).sum(1);
      rows.narrow(1, first * dim, count * dim)
          .copy_(summed.transpose(0, 1).reshape({length, count * dim}));
    };
    write(0, heads, at::bmm(d_scores, s.k));
    write(heads, kv_heads, at::bmm(d_scores.transpose(1, 2), s.q));
    write(heads + kv_heads, kv_heads, at::bmm(s.probs.transpose(1, 2), d_o));
  }
}

bool UseCudnn(const LayerContext& context, const ModelConfig& config, const at::Tensor& qk) {
  return context.UseCuda(qk) && CudnnAttention::Supports(qk, config.head_dim);
}

// Returns views [T, heads, D] of queries and keys (or of their gradients), and of values.
AttentionHeads CudnnHeads(const ModelConfig& config, const at::Tensor& qk, const at::Tensor& qkv) {
  const int64_t heads = config.num_heads, keys = config.num_kv_heads, dim = config.head_dim;
  const auto view = [&](const at::Tensor& x, int64_t first, int64_t count) {
    return x.narrow(1, first * dim, count * dim).unflatten(1, {count, dim});
  };
  return {view(qk, 0, heads), view(qk, heads, keys), view(qkv, heads + keys, keys)};
}

constexpr int64_t kCausalFromTopLeft = 1;  // mask type of the kernel: query i sees keys j <= i

struct EfficientAttentionHeads {
  at::Tensor q, k, v;  // [1, T, H, D]; keys and values repeated for their group of queries
};

EfficientAttentionHeads SplitHeads(const ModelConfig& config, const at::Tensor& qk,
                                   const at::Tensor& qkv) {
  const int64_t heads = config.num_heads, kv_heads = config.num_kv_heads, dim = config.head_dim;
  const int64_t rows = qk.size(0);
  auto take = [&](const at::Tensor& x, int64_t first, int64_t count) {
    const at::Tensor slice = x.narrow(1, first * dim, count * dim).unflatten(1, {count, dim});
    if (count == heads) return slice.unsqueeze(0);
    return slice.unsqueeze(2)
        .expand({rows, count, heads / count, dim})
        .reshape({1, rows, heads, dim});
  };
  return {take(qk, 0, heads), take(qk, heads, kv_heads), take(qkv, heads + kv_heads, kv_heads)};
}

// ATen's memory-efficient kernel, which reads the sequences' offsets: a few launches for any number
// of sequences, without padding. *lse: [n, H, longest sequence rounded up by the kernel].
at::Tensor ForwardEfficient(const ModelConfig& config, const SequenceLayout& layout,
                            const at::Tensor& qk, const at::Tensor& qkv, at::Tensor* lse) {
  const EfficientAttentionHeads heads = SplitHeads(config, qk, qkv);
  auto result = at::_efficient_attention_forward(
      heads.q, heads.k, heads.v, /*bias=*/std::nullopt, layout.device_offsets,
      layout.device_offsets, layout.max_length, layout.max_length, /*dropout_p=*/0.0,
      kCausalFromTopLeft, /*compute_log_sumexp=*/true,
      1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  *lse = std::get<1>(result);
  return std::get<0>(result).reshape({qk.size(0), config.query_size()});
}

void BackwardEfficient(const ModelConfig& config, const SequenceLayout& layout,
                       const at::Tensor& qk, const at::Tensor& qkv, const at::Tensor& out,
                       const at::Tensor& lse, const at::Tensor& d_out, at::Tensor d_qkv) {
  const int64_t heads = config.num_heads, kv_heads = config.num_kv_heads, dim = config.head_dim;
  const int64_t rows = qk.size(0);
  const EfficientAttentionHeads packed = SplitHeads(config, qk, qkv);
  const at::Tensor no_dropout = at::empty({}, at::kLong);  // seed and offset are not read
  auto result = at::_efficient_attention_backward(
      d_out.view({1, rows, heads, dim}), packed.q, packed.k, packed.v, /*bias=*/std::nullopt,
      out.view({1, rows, heads, dim}), layout.device_offsets, layout.device_offsets,
      layout.max_length, layout.max_length, lse, /*dropout_p=*/0.0, no_dropout, no_dropout,
      kCausalFromTopLeft, /*bias_requires_grad=*/false, 1.0 / std::sqrt(static_cast<double>(dim)),
      /*num_splits_key=*/1);
  auto write = [&](int64_t first, int64_t count, const at::Tensor& d) {
    at::Tensor summed = d.reshape({rows, count, heads / count, dim});
    summed = count == heads ? summed.squeeze(2) : summed.sum(2);
    d_qkv.narrow(1, first * dim, count * dim).copy_(summed.reshape({rows, count * dim}));
  };
  write(0, heads, std::get<0>(result));
  write(heads, kv_heads, std::get<1>(result));
  write(heads + kv_heads, kv_heads, std::get<2>(result));
}

}  // namespace

SequenceLayout MakeSequenceLayout(const PackedBatch& batch) {
  SequenceLayout layout;
  layout.offsets = {0};
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    if (batch.offsets[i + 1] > layout.offsets.back())
      layout.offsets.push_back(batch.offsets[i + 1]);
  }
  layout.max_length = batch.max_length();
  if (batch.tokens.is_cuda()) {
    at::Tensor offsets = at::empty({static_cast<int64_t>(layout.offsets.size())}, at::kInt);
    std::copy(layout.offsets.begin(), layout.offsets.end(), offsets.data_ptr<int32_t>());
    layout.device_offsets = offsets.to(batch.tokens.device());
    layout.packed = PackLengths(layout.offsets, batch.tokens.device());
  }
  return layout;
}

at::Tensor AttentionForward(const LayerContext& context, const ModelConfig& config,
                            const SequenceLayout& layout, const at::Tensor& qk,
                            const at::Tensor& qkv, at::Tensor* lse) {
  if (UseCudnn(context, config, qk)) {
    at::Tensor out = context.Empty({qk.size(0), config.query_size()}, qk);
    *lse = context.attention(qk).Forward(layout.packed, CudnnHeads(config, qk, qkv),
                                         out.unflatten(1, {config.num_heads, config.head_dim}));
    return out;
  }
  if (qk.is_cuda()) return ForwardEfficient(config, layout, qk, qkv, lse);
  if (!context.UseCpuKernels(qk)) return ForwardAten(config, layout, qk, qkv, lse);
  at::Tensor out = context.Empty({qk.size(0), config.query_size()}, qk);
  *lse = context.Empty({config.num_heads, qk.size(0)}, qk);
  ForEachHead(context, config, layout, [&](int64_t sequence, int64_t kv_head) {
    AttentionTask task = MakeTask(config, layout, sequence, kv_head, qk, qkv, out, *lse);
    task.scratch =
        CpuThreads::Scratch(context.kernels().attention_scratch(task.length, task.head_dim));
    context.kernels().attention(task);
  });
  return out;
}

void AttentionBackward(const LayerContext& context, const ModelConfig& config,
                       const SequenceLayout& layout, const at::Tensor& qk, const at::Tensor& qkv,
                       const at::Tensor& out, const at::Tensor& lse, const at::Tensor& d_out,
                       at::Tensor d_qkv) {
  if (UseCudnn(context, config, qk)) {
    const int64_t heads = config.num_heads, dim = config.head_dim;
    return context.attention(qk).Backward(
        layout.packed, CudnnHeads(config, qk, qkv), out.unflatten(1, {heads, dim}), lse,
        d_out.unflatten(1, {heads, dim}), CudnnHeads(config, d_qkv, d_qkv));
  }
  if (qk.is_cuda()) return BackwardEfficient(config, layout, qk, qkv, out, lse, d_out, d_qkv);
  if (!context.UseCpuKernels(qk)) {
    return BackwardAten(config, layout, qk, qkv, out, d_out, d_qkv);
  }
  ForEachHead(context, config, layout, [&](int64_t sequence, int64_t kv_head) {
    AttentionTask task = MakeTask(config, layout, sequence, kv_head, qk, qkv, out, lse);
    const int64_t begin = layout.offsets[sequence], dim = config.head_dim;
    task.d_out_row = task.out_row;
    task.d_out = d_out.data_ptr<float>() + (task.out - out.data_ptr<float>());
    task.d_q_row = task.d_k_row = task.d_v_row = d_qkv.stride(0);
    float* rows = d_qkv.data_ptr<float>() + begin * d_qkv.stride(0);
    task.d_q = rows + kv_head * task.group * dim;
    task.d_k = rows + (config.num_heads + kv_head) * dim;
    task.d_v = rows + (config.num_heads + config.num_kv_heads + kv_head) * dim;
    task.scratch =
        CpuThreads::Scratch(context.kernels().attention_scratch(task.length, task.head_dim));
    context.kernels().attention_backward(task);
  });
}

}  // namespace tritonrl
