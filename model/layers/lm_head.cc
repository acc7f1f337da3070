#include "model/layers/lm_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sort.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>

#include "model/layers/linear.h"

namespace tritonrl {

namespace {

constexpr int64_t kChunkElements = int64_t{1} << 25;      // 128 MiB of fp32
constexpr int64_t kCudaChunkElements = int64_t{5} << 26;  // 1.25 GiB of fp32
constexpr int64_t kMinChunkRows = 256;

int64_t ChunkRows(const HeadSettings& settings, int64_t vocab) {
  if (settings.chunk_rows > 0) return settings.chunk_rows;
  return std::max(kMinChunkRows, kChunkElements / vocab);
}

// Whether the GPU kernels support the head. They read rows of logits in packs of 8 too.
bool UseCuda(const LayerContext& context, const at::Tensor& weight) {
  return context.UseCuda(weight) && weight.size(0) % 8 == 0;
}

// Rows of one CPU task: few enough that its logits stay near the core's cache.
int64_t TaskRows(int64_t vocab) { return std::clamp<int64_t>((int64_t{1} << 17) / vocab, 8, 96); }

HeadOutput ForwardAten(const at::Tensor& hidden, const at::Tensor& weight,
                       const at::Tensor& targets, const HeadSettings& settings, HeadOutput output) {
  const int64_t rows = hidden.size(0), chunk = ChunkRows(settings, weight.size(0));
  for (int64_t begin = 0; begin < rows; begin += chunk) {
    const int64_t end = std::min(rows, begin + chunk);
    at::Tensor logits = ToComputeType(at::mm(hidden.slice(0, begin, end), weight.t()))
                            .div_(settings.temperature);  // [chunk, V]
    const at::Tensor lse = logits.logsumexp(-1);
    logits.sub_(lse.unsqueeze(1));  // log softmax
    output.lse.slice(0, begin, end).copy_(lse);
    output.log_probs.slice(0, begin, end)
        .copy_(logits.gather(1, targets.slice(0, begin, end).unsqueeze(1)).squeeze(1));
    output.entropy.slice(0, begin, end).copy_(logits.exp().mul_(logits).sum(-1).neg_());
  }
  return output;
}

void BackwardAten(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                  const HeadSettings& settings, const at::Tensor& lse,
                  const at::Tensor& d_log_probs, const LayerContext& context, at::Tensor d_hidden,
                  at::Tensor d_weight) {
  const int64_t rows = hidden.size(0), chunk = ChunkRows(settings, weight.size(0));
  for (int64_t begin = 0; begin < rows; begin += chunk) {
    const int64_t end = std::min(rows, begin + chunk);
    const at::Tensor part = hidden.slice(0, begin, end);
    at::Tensor d_logits = ToComputeType(at::mm(part, weight.t())).div_(settings.temperature);
    const at::Tensor scale =
        (d_log_probs.slice(0, begin, end) / settings.temperature).unsqueeze(1).to(d_logits.dtype());
    d_logits.sub_(lse.slice(0, begin, end).unsqueeze(1)).exp_().mul_(scale.neg());
    d_logits.scatter_add_(1, targets.slice(0, begin, end).unsqueeze(1), scale);
    const at::Tensor typed = d_logits.to(hidden.scalar_type());
    LinearBackwardInput(context, typed, weight, false, d_hidden.slice(0, begin, end));
    LinearBackwardWeight(context, typed, part, true, d_weight);
  }
}

// Rows [begin, end) of a head on a GPU.
struct HeadChunk {
  int64_t begin, end;
  at::Tensor hidden;  // [R, C]
  at::Tensor logits;  // [R, V] fp32: in bf16 a logit of 20 would be off by 0.06

  at::Tensor Rows(const at::Tensor& x) const { return x.slice(0, begin, end); }
  template <typename T>
  T* Data(const at::Tensor& x) const {
    return Rows(x).data_ptr<T>();
  }
};

at::Tensor ChunkRoom(const LayerContext& context, const at::Tensor& hidden,
                     const at::Tensor& weight, const HeadSettings& settings, at::ScalarType type) {
  const int64_t rows = HeadChunkRowsOnGpu(settings.chunk_rows, weight.size(0));
  return context.Empty({std::min(rows, hidden.size(0)), weight.size(0)}, hidden, type);
}

// Computes the logits of one chunk after the other and calls body(chunk).
template <typename Body>
void ForEachChunkOnGpu(const LayerContext& context, const at::Tensor& hidden,
                       const at::Tensor& weight, const HeadSettings& settings, const Body& body) {
  const c10::cuda::CUDAGuard guard(hidden.device());
  const at::Tensor room = ChunkRoom(context, hidden, weight, settings, at::kFloat);
  const int64_t rows = hidden.size(0),
                size = HeadChunkRowsOnGpu(settings.chunk_rows, weight.size(0));
  for (int64_t begin = 0; begin < rows; begin += size) {
    const int64_t end = std::min(rows, begin + size);
    const HeadChunk chunk = {begin, end, hidden.slice(0, begin, end),
                             room.narrow(0, 0, end - begin)};
    LinearForward(context, chunk.hidden, weight, false, chunk.logits);
    body(chunk);
  }
}

void ChunkForward(const HeadChunk& chunk, const at::Tensor& targets, double temperature,
                  const HeadOutput& output) {
  LaunchLogSoftmax(CudaRowsOf(chunk.logits), chunk.logits.const_data_ptr<float>(),
                   static_cast<float>(temperature), chunk.Data<int64_t>(targets),
                   chunk.Data<float>(output.log_probs), chunk.Data<float>(output.entropy),
                   chunk.Data<float>(output.lse));
}

// Computes the gradients of one chunk from its logits. d_log_probs: [R] of the chunk.
void ChunkBackward(const LayerContext& context, const HeadChunk& chunk, const at::Tensor& weight,
                   const at::Tensor& targets, double temperature, const at::Tensor& lse,
                   const at::Tensor& d_log_probs, bool accumulate, const at::Tensor& d_room,
                   const at::Tensor& d_hidden, const at::Tensor& d_weight) {
  const at::Tensor d_logits = d_room.narrow(0, 0, chunk.end - chunk.begin);
  LaunchLogSoftmaxBackward(CudaRowsOf(d_logits), chunk.logits.const_data_ptr<float>(),
                           static_cast<float>(temperature), chunk.Data<int64_t>(targets),
                           chunk.Data<float>(lse), d_log_probs.const_data_ptr<float>(),
                           d_logits.data_ptr());
  LinearBackwardInput(context, d_logits, weight, false, chunk.Rows(d_hidden));
  LinearBackwardWeight(context, d_logits, chunk.hidden, accumulate, d_weight);
}

void CheckTargets(const at::Tensor& targets, int64_t vocab) {
  const int64_t* ids = targets.data_ptr<int64_t>();
  for (int64_t i = 0; i < targets.size(0); ++i) {
    TORCH_CHECK(ids[i] >= 0 && ids[i] < vocab, "target ", ids[i], ", vocabulary ", vocab);
  }
}

// Returns the transpose [C, V] of `weight` [V, C].
at::Tensor TransposedWeight(const LayerContext& context, const at::Tensor& weight) {
  const int64_t vocab = weight.size(0), cols = weight.size(1);
  at::Tensor transposed = context.Empty({cols, vocab}, weight);
  const float* from = weight.data_ptr<float>();
  float* to = transposed.data_ptr<float>();
  context.ForRowBlocks(vocab, 256, [&](int64_t begin, int64_t end) {
    context.kernels().transpose(end - begin, cols, from + begin * cols, cols, to + begin, vocab);
  });
  return transposed;
}

}  // namespace

// The limit is larger than on the CPU, because GEMMs of fewer rows are slower.
int64_t HeadChunkRowsOnGpu(int64_t chunk_rows, int64_t vocab) {
  return chunk_rows > 0 ? chunk_rows : std::max(kMinChunkRows, kCudaChunkElements / vocab);
}

HeadOutput LmHeadForward(const LayerContext& context, const at::Tensor& hidden,
                         const at::Tensor& weight, const at::Tensor& targets,
                         const HeadSettings& settings) {
  const int64_t rows = hidden.size(0), cols = hidden.size(1), vocab = weight.size(0);
  const at::ScalarType type = ToComputeType(weight.narrow(0, 0, 0)).scalar_type();
  HeadOutput output = {context.Empty({rows}, hidden, type), context.Empty({rows}, hidden, type),
                       context.Empty({rows}, hidden, type)};
  if (UseCuda(context, weight)) {
    ForEachChunkOnGpu(context, hidden, weight, settings, [&](const HeadChunk& chunk) {
      ChunkForward(chunk, targets, settings.temperature, output);
    });
    return output;
  }
  if (!context.UseCpuKernels(hidden)) {
    return ForwardAten(hidden, weight, targets, settings, output);
  }
  CheckTargets(targets, vocab);
  const at::Tensor transposed = TransposedWeight(context, weight);
  const float inverse_temperature = static_cast<float>(1.0 / settings.temperature);
  context.ForRowBlocks(rows, TaskRows(vocab), [&](int64_t begin, int64_t end) {
    float* logits = CpuThreads::Scratch((end - begin) * vocab);
    context.kernels().gemm(end - begin, vocab, cols, hidden.data_ptr<float>() + begin * cols, cols,
                           1, transposed.data_ptr<float>(), vocab, logits, vocab, false);
    context.kernels().log_softmax(
        end - begin, vocab, logits, inverse_temperature, targets.data_ptr<int64_t>() + begin,
        output.log_probs.data_ptr<float>() + begin, output.entropy.data_ptr<float>() + begin,
        output.lse.data_ptr<float>() + begin);
  });
  return output;
}

at::Tensor LmHeadBackward(const LayerContext& context, const at::Tensor& hidden,
                          const at::Tensor& weight, const at::Tensor& targets,
                          const HeadSettings& settings, const at::Tensor& lse,
                          const at::Tensor& d_log_probs, at::Tensor d_weight) {
  const int64_t rows = hidden.size(0), cols = hidden.size(1), vocab = weight.size(0);
  at::Tensor d_hidden = context.Empty({rows, cols}, hidden);
  if (UseCuda(context, weight)) {
    const at::Tensor d_room = ChunkRoom(context, hidden, weight, settings, hidden.scalar_type());
    ForEachChunkOnGpu(context, hidden, weight, settings, [&](const HeadChunk& chunk) {
      ChunkBackward(context, chunk, weight, targets, settings.temperature, lse,
                    chunk.Rows(d_log_probs).contiguous(), true, d_room, d_hidden, d_weight);
    });
    return d_hidden;
  }
  if (!context.UseCpuKernels(hidden)) {
    BackwardAten(hidden, weight, targets, settings, lse, d_log_probs, context, d_hidden, d_weight);
    return d_hidden;
  }
  const at::Tensor transposed = TransposedWeight(context, weight);
  const float inverse_temperature = static_cast<float>(1.0 / settings.temperature);
  const int64_t chunk = std::min(rows, ChunkRows(settings, vocab));
  at::Tensor d_logits = context.Empty({chunk, vocab}, hidden);
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first);
    context.ForRowBlocks(count, TaskRows(vocab), [&](int64_t begin, int64_t end) {
      float* logits = d_logits.data_ptr<float>() + begin * vocab;
      const int64_t row = first + begin;
      context.kernels().gemm(end - begin, vocab, cols, hidden.data_ptr<float>() + row * cols, cols,
                             1, transposed.data_ptr<float>(), vocab, logits, vocab, false);
      context.kernels().log_softmax_backward(
          end - begin, vocab, logits, inverse_temperature, targets.data_ptr<int64_t>() + row,
          lse.data_ptr<float>() + row, d_log_probs.data_ptr<float>() + row);
      context.kernels().gemm(end - begin, cols, vocab, logits, vocab, 1, weight.data_ptr<float>(),
                             cols, d_hidden.data_ptr<float>() + row * cols, cols, false);
    });
    LinearBackwardWeight(context, d_logits.narrow(0, 0, count), hidden.narrow(0, first, count),
                         true, d_weight);
  }
  return d_hidden;
}

HeadOutput LmHeadForwardBackward(const LayerContext& context, const at::Tensor& hidden,
                                 const at::Tensor& weight, const at::Tensor& targets,
                                 const HeadSettings& settings, ChunkLoss loss, bool accumulate,
                                 at::Tensor d_hidden, at::Tensor d_weight) {
  const int64_t rows = hidden.size(0);
  if (!UseCuda(context, weight)) {
    HeadOutput output = LmHeadForward(context, hidden, weight, targets, settings);
    const at::Tensor d = loss(0, rows, output.log_probs, output.entropy);
    if (!accumulate) d_weight.zero_();
    d_hidden.copy_(
        LmHeadBackward(context, hidden, weight, targets, settings, output.lse, d, d_weight));
    return output;
  }
  HeadOutput output = {context.Empty({rows}, hidden, at::kFloat),
                       context.Empty({rows}, hidden, at::kFloat),
                       context.Empty({rows}, hidden, at::kFloat)};
  const at::Tensor d_room = ChunkRoom(context, hidden, weight, settings, hidden.scalar_type());
  ForEachChunkOnGpu(context, hidden, weight, settings, [&](const HeadChunk& chunk) {
    ChunkForward(chunk, targets, settings.temperature, output);
    const at::Tensor d_log_probs =
        loss(chunk.begin, chunk.end, chunk.Rows(output.log_probs), chunk.Rows(output.entropy));
    ChunkBackward(context, chunk, weight, targets, settings.temperature, output.lse,
                  d_log_probs.contiguous(), accumulate || chunk.begin > 0, d_room, d_hidden,
                  d_weight);
  });
  return output;
}

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
    // This ATen function sorts the tokens, so that the order of the sum is fixed on a GPU too.
    d_table.add_(at::embedding_dense_backward(ToComputeType(d_out), tokens, d_table.size(0),
                                              /*padding_idx=*/-1, /*scale_grad_by_freq=*/false));
    return;
  }
  // Each task adds some columns of all tokens: no two threads write the same element, and the order
  // of the sum is fixed.
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
