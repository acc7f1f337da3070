#include "model/decode.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "model/decode_chunk.h"
#include "model/layers/bias.h"
#include "model/layers/linear.h"
#include "model/layers/lm_head.h"
#include "model/layers/rms_norm.h"
#include "model/layers/swiglu.h"

namespace tritonrl {

DecodeBatch::DecodeBatch(absl::Span<const SequenceSlice> slices, const ModelConfig& config,
                         const PagedKvCache& cache)
    : slices(slices) {
  TORCH_CHECK(!slices.empty(), "a step without slices");
  for (size_t i = 0; i < slices.size(); ++i) {
    const SequenceSlice& s = slices[i];
    const int64_t end = s.first + s.count;
    TORCH_CHECK(s.count > 0 && s.count == static_cast<int64_t>(s.tokens.size()), "slice ", i,
                " is of ", s.count, " positions, with ", s.tokens.size(), " tokens");
    TORCH_CHECK(s.first >= 0 && end <= config.max_positions, "slice ", i, " is of ", s.count,
                " tokens from position ", s.first, " on, max_position_embeddings is ",
                config.max_positions);
    TORCH_CHECK(static_cast<int64_t>(s.pages.size()) >= PagedKvCache::NumPages(end), "slice ", i,
                " has ", s.pages.size(), " pages for ", end, " positions");
    for (int32_t page : s.pages) {
      TORCH_CHECK(page >= 0 && page < cache.num_pages(), "slice ", i, ": page ", page,
                  " is not in the cache");
    }
    for (int64_t k = 0; k < s.count; ++k) {
      TORCH_CHECK(s.tokens[k] >= 0 && s.tokens[k] < config.vocab_size, "slice ", i, ": token ",
                  s.tokens[k], " is not in the vocabulary");
      tokens.push_back(s.tokens[k]);
      positions.push_back(s.first + k);
      slice.push_back(static_cast<int64_t>(i));
    }
    const int64_t wanted = s.logit_rows();
    TORCH_CHECK(wanted >= 0 && wanted <= s.count, "slice ", i, ": logits of ", wanted, " of ",
                s.count, " tokens");
    for (int64_t row = size() - wanted; row < size(); ++row) logit_rows.push_back(row);
  }
}

namespace {

at::Tensor ToDevice(const std::vector<int64_t>& values, at::Device device) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor.to(device);
}

// The ATen path is the reference for the CPU kernels. Its attention gathers the pages of sequences:
// slices of one token all at once, padded to the longest and masked, longer slices one by one.

// Slices whose attention runs together: B sequences of S tokens each.
struct Part {
  at::Tensor rows;   // [B * S] row numbers in the step
  at::Tensor pages;  // [B, P]
  // [B, 1, 1, S, P * kPageSize]: true where the key's position is after the row's.
  at::Tensor hidden;
};

struct StepTensors {
  at::Tensor positions;  // [T]
  at::Tensor pages;      // [T] page of each row's key and value
  at::Tensor offsets;    // [T] position in that page
  std::vector<Part> parts;
};

Part MakePart(const DecodeBatch& rows, const std::vector<int64_t>& first_rows, int64_t tokens,
              const at::Tensor& positions) {
  std::vector<int64_t> row_list, pages;
  int64_t width = 0;
  for (int64_t row : first_rows) {
    width = std::max(width, PagedKvCache::NumPages(rows.positions[row] + tokens));
  }
  for (int64_t row : first_rows) {
    for (int64_t k = 0; k < tokens; ++k) row_list.push_back(row + k);
    const std::span<const int32_t> own = rows.slices[rows.slice[row]].pages;
    for (int64_t p = 0; p < width; ++p) pages.push_back(p < own.size() ? own[p] : own[0]);
  }
  const int64_t batch = static_cast<int64_t>(first_rows.size());
  Part part;
  part.rows = ToDevice(row_list, positions.device());
  part.pages = ToDevice(pages, positions.device()).view({batch, width});
  part.hidden = at::arange(width * PagedKvCache::kPageSize, positions.options())
                    .unsqueeze(0)
                    .gt(positions.index_select(0, part.rows).unsqueeze(1))
                    .view({batch, 1, 1, tokens, width * PagedKvCache::kPageSize});
  return part;
}

StepTensors MakeStepTensors(const DecodeBatch& rows, at::Device device) {
  std::vector<int64_t> pages, offsets, single, longer;
  for (int64_t t = 0; t < rows.size(); ++t) {
    const SequenceSlice& slice = rows.slices[rows.slice[t]];
    pages.push_back(slice.pages[rows.positions[t] / PagedKvCache::kPageSize]);
    offsets.push_back(rows.positions[t] % PagedKvCache::kPageSize);
    if (rows.positions[t] == slice.first) (slice.count == 1 ? single : longer).push_back(t);
  }
  StepTensors step;
  step.positions = ToDevice(rows.positions, device);
  step.pages = ToDevice(pages, device);
  step.offsets = ToDevice(offsets, device);
  if (!single.empty()) step.parts.push_back(MakePart(rows, single, 1, step.positions));
  for (int64_t row : longer) {
    step.parts.push_back(MakePart(rows, {row}, rows.slices[rows.slice[row]].count, step.positions));
  }
  return step;
}

// Writes keys and values to the cache; returns [T, H D]. qk: [T, (H + K) D], qkv: [T, (H + 2K) D].
at::Tensor Attend(const ModelConfig& config, const StepTensors& step, int64_t layer,
                  const at::Tensor& qk, const at::Tensor& qkv, PagedKvCache* cache) {
  const int64_t dim = config.head_dim, kv_heads = config.num_kv_heads, group = config.group_size();
  const at::Tensor k = qk.narrow(1, config.query_size(), config.kv_size());
  const at::Tensor v = qkv.narrow(1, config.query_size() + config.kv_size(), config.kv_size());
  cache->Store(layer, step.pages, step.offsets, k.unflatten(1, {kv_heads, dim}),
               v.unflatten(1, {kv_heads, dim}));
  const at::Tensor queries = qk.narrow(1, 0, config.query_size());
  at::Tensor out = at::empty(queries.sizes(), queries.options());
  for (const Part& part : step.parts) {
    const int64_t batch = part.pages.size(0), tokens = part.hidden.size(3);
    const at::Tensor q = queries.index_select(0, part.rows)
                             .view({batch, tokens, kv_heads, group, dim})
                             .permute({0, 2, 3, 1, 4})
                             .reshape({batch, kv_heads, group * tokens, dim});
    at::Tensor scores = ToComputeType(at::matmul(q, cache->GatherKeys(layer, part.pages)))
                            .mul_(1.0 / std::sqrt(static_cast<double>(dim)))
                            .unflatten(2, {group, tokens});
    scores.masked_fill_(part.hidden, -std::numeric_limits<double>::infinity());
    const at::Tensor probs = scores.softmax(-1).to(q.scalar_type()).flatten(2, 3);
    const at::Tensor result = at::matmul(probs, cache->GatherValues(layer, part.pages))
                                  .unflatten(2, {group, tokens})
                                  .permute({0, 3, 1, 2, 4})
                                  .reshape({batch * tokens, config.query_size()});
    out.index_copy_(0, part.rows, result);
  }
  return out;
}

// Returns x [T, C] + input weight^T + bias. If the ranks hold shards of the input's columns,
// all-reduces the GEMM's partial results.
at::Tensor AddGemm(const DecodeModel& model, const at::Tensor& x, const at::Tensor& input,
                   const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor product = at::linear(input, weight);
  if (model.ranks != nullptr) {
    const absl::Status summed = model.ranks->AllReduce(product);
    TORCH_CHECK(summed.ok(), summed.message());
  }
  at::Tensor sum = x + product;
  BiasForward(model.context, {bias}, sum);
  return sum;
}

}  // namespace

at::Tensor DecodeWithAten(const DecodeModel& model, const DecodeBatch& rows, PagedKvCache* cache) {
  const ModelConfig& config = model.config;
  const at::Device device = model.embedding.device();
  const int64_t count = rows.size(), q_size = config.query_size(), kv_size = config.kv_size();
  const StepTensors step = MakeStepTensors(rows, device);
  at::Tensor x = model.embedding.index_select(0, ToDevice(rows.tokens, device));
  at::Tensor rstd;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const DecoderLayerParameters& w = model.layers[layer];
    at::Tensor normed = RmsNormForward(model.context, x, w.input_norm, config.rms_norm_eps, &rstd);
    at::Tensor qkv = at::empty({count, q_size + 2 * kv_size}, x.options());
    LinearForward(model.context, normed, w.q, false, qkv.narrow(1, 0, q_size));
    LinearForward(model.context, normed, w.k, false, qkv.narrow(1, q_size, kv_size));
    LinearForward(model.context, normed, w.v, false, qkv.narrow(1, q_size + kv_size, kv_size));
    BiasForward(model.context, {w.q_bias, w.k_bias, w.v_bias}, qkv);
    const at::Tensor qk = HeadNormRotaryForward(model.context, config, qkv, w.q_norm, w.k_norm,
                                                model.rotary, step.positions, &rstd);
    x = AddGemm(model, x, Attend(config, step, layer, qk, qkv, cache), w.o, w.o_bias);
    normed = RmsNormForward(model.context, x, w.post_norm, config.rms_norm_eps, &rstd);
    at::Tensor gate_up = at::empty({count, 2 * config.intermediate_size}, x.options());
    LinearForward(model.context, normed, w.gate, false,
                  gate_up.narrow(1, 0, config.intermediate_size));
    LinearForward(model.context, normed, w.up, false,
                  gate_up.narrow(1, config.intermediate_size, config.intermediate_size));
    BiasForward(model.context, {w.gate_bias, w.up_bias}, gate_up);
    x = AddGemm(model, x, SwigluForward(model.context, gate_up), w.down, w.down_bias);
  }
  if (rows.logit_rows.empty())
    return at::empty({0, config.vocab_size}, x.options().dtype(at::kFloat));
  x = x.index_select(0, ToDevice(rows.logit_rows, device));
  const at::Tensor normed =
      RmsNormForward(model.context, x, model.final_norm, config.rms_norm_eps, &rstd);
  return at::linear(normed, model.head).to(at::kFloat);
}

at::Tensor DecodeWithCpuKernels(const DecodeModel& model, const DecodeBatch& rows,
                                PagedKvCache* cache) {
  at::Tensor logits = model.context.Empty(
      {static_cast<int64_t>(rows.logit_rows.size()), model.config.vocab_size}, model.head);
  float* out = logits.data_ptr<float>();
  constexpr int64_t lanes = DecodeChunk::kLanes;
  const int64_t threads = model.context.threads().count();
  const int64_t share = (rows.size() + threads - 1) / threads;
  const int64_t size =
      std::clamp((share + lanes - 1) / lanes * lanes, lanes, DecodeChunk::kMaxRows);
  std::vector<ChunkProgress> progress((rows.size() + size - 1) / size);
  model.context.ForRowBlocks(rows.size(), size, [&](int64_t begin, int64_t end) {
    const int64_t i = begin / size;
    const bool continues = begin > 0 && rows.slice[begin] == rows.slice[begin - 1];
    DecodeChunk(model, rows, begin, end, cache, continues ? &progress[i - 1] : nullptr,
                &progress[i])
        .Run(out);
  });
  return logits;
}

}  // namespace tritonrl
