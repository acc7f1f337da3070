#include "model/decode_chunk.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

namespace tritonrl {
namespace {

// Chunks start in ascending order, so the previous chunk runs on another thread or has ended: the
// wait cannot deadlock.
void WaitFor(const ChunkProgress& progress, int64_t layers) {
  constexpr int kSpins = 2000;
  for (int spin = 0; progress.load(std::memory_order_acquire) < layers; ++spin) {
    if (spin < kSpins) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace

DecodeChunk::DecodeChunk(const DecodeModel& model, const DecodeBatch& rows, int64_t begin,
                         int64_t end, PagedKvCache* cache, const ChunkProgress* before,
                         ChunkProgress* progress)
    : model_(model),
      config_(model.config),
      kernels_(model.context.kernels()),
      rows_(rows),
      cache_(cache),
      before_(before),
      progress_(progress),
      begin_(begin),
      qkv_size_(config_.query_size() + 2 * config_.kv_size()),
      row_(end - begin) {
  std::iota(row_.begin(), row_.end(), begin);
  SetCount(end - begin);
  const int64_t wide = std::max(
      {config_.hidden_size, qkv_size_, 2 * config_.intermediate_size, config_.query_size()});
  const int64_t longest =
      *std::max_element(rows.positions.begin() + begin, rows.positions.begin() + end) + 1;
  const int64_t scores = std::max<int64_t>(2, count_) * (longest + kLanes);
  float* const memory =
      CpuThreads::Scratch(padded_ * (2 * config_.hidden_size + 2 * wide + qkv_size_ +
                                     config_.query_size() + config_.vocab_size) +
                          scores);
  x_ = memory;
  normed_ = x_ + padded_ * config_.hidden_size;
  transposed_in_ = normed_ + padded_ * config_.hidden_size;
  transposed_out_ = transposed_in_ + padded_ * wide;
  qkv_ = transposed_out_ + padded_ * wide;
  attention_ = qkv_ + padded_ * qkv_size_;
  logits_ = attention_ + padded_ * config_.query_size();
  scores_ = logits_ + padded_ * config_.vocab_size;
}

void DecodeChunk::Run(float* logits) {
  Embed();
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    Project(model_.layers[layer]);
    if (before_ != nullptr) WaitFor(*before_, layer + 1);
    Store(layer);
    progress_->store(layer + 1, std::memory_order_release);
    if (layer + 1 == config_.num_layers) SelectLogitRows();
    if (count_ == 0) return;
    AttentionBlock(layer);
    MlpBlock(model_.layers[layer]);
  }
  Norm(model_.final_norm);
  TransposeIn(normed_, config_.hidden_size);
  Gemm(model_.head, transposed_in_, logits_);
  const int64_t first = std::lower_bound(rows_.logit_rows.begin(), rows_.logit_rows.end(), begin_) -
                        rows_.logit_rows.begin();
  kernels_.transpose(config_.vocab_size, count_, logits_, padded_,
                     logits + first * config_.vocab_size, config_.vocab_size);
}

void DecodeChunk::SetCount(int64_t count) {
  count_ = count;
  padded_ = (count + kLanes - 1) / kLanes * kLanes;
}

void DecodeChunk::SelectLogitRows() {
  int64_t kept = 0;
  for (int64_t r = 0; r < count_; ++r) {
    if (!std::binary_search(rows_.logit_rows.begin(), rows_.logit_rows.end(), row_[r])) continue;
    if (kept < r) {
      std::memcpy(x_ + kept * config_.hidden_size, x_ + r * config_.hidden_size,
                  config_.hidden_size * sizeof(float));
      std::memcpy(qkv_ + kept * qkv_size_, qkv_ + r * qkv_size_, qkv_size_ * sizeof(float));
    }
    row_[kept++] = row_[r];
  }
  SetCount(kept);
}

void DecodeChunk::Embed() {
  const float* table = model_.embedding.data_ptr<float>();
  const int64_t cols = config_.hidden_size;
  for (int64_t r = 0; r < padded_; ++r) {
    const int64_t token = r < count_ ? rows_.tokens[row_[r]] : 0;
    std::memcpy(x_ + r * cols, table + token * cols, cols * sizeof(float));
  }
}

void DecodeChunk::Norm(const at::Tensor& weight) {
  kernels_.rms_norm(padded_, config_.hidden_size, x_, weight.data_ptr<float>(),
                    static_cast<float>(config_.rms_norm_eps), normed_, nullptr);
}

void DecodeChunk::TransposeIn(const float* x, int64_t cols) {
  kernels_.transpose(padded_, cols, x, cols, transposed_in_, padded_);
}

void DecodeChunk::Gemm(const at::Tensor& weight, const float* in, float* out) {
  kernels_.gemm(weight.size(0), padded_, weight.size(1), weight.data_ptr<float>(), weight.size(1),
                1, in, padded_, out, padded_, false);
}

void DecodeChunk::AddBias(const at::Tensor& bias, float* out) {
  if (!bias.defined()) return;
  const float* values = bias.const_data_ptr<float>();
  for (int64_t i = 0; i < bias.size(0); ++i) {
    for (int64_t r = 0; r < padded_; ++r) out[i * padded_ + r] += values[i];
  }
}

void DecodeChunk::AddTransposedOut() {
  kernels_.transpose(config_.hidden_size, padded_, transposed_out_, padded_, normed_,
                     config_.hidden_size);
  kernels_.add(padded_ * config_.hidden_size, normed_, x_);
}

void DecodeChunk::Project(const DecoderLayerParameters& w) {
  const int64_t q_size = config_.query_size(), kv_size = config_.kv_size();
  Norm(w.input_norm);
  TransposeIn(normed_, config_.hidden_size);
  Gemm(w.q, transposed_in_, transposed_out_);
  Gemm(w.k, transposed_in_, transposed_out_ + q_size * padded_);
  Gemm(w.v, transposed_in_, transposed_out_ + (q_size + kv_size) * padded_);
  AddBias(w.q_bias, transposed_out_);
  AddBias(w.k_bias, transposed_out_ + q_size * padded_);
  AddBias(w.v_bias, transposed_out_ + (q_size + kv_size) * padded_);
  kernels_.transpose(qkv_size_, padded_, transposed_out_, padded_, qkv_, qkv_size_);
  RotateHeads(0, config_.num_heads, w.q_norm);
  RotateHeads(config_.num_heads, config_.num_kv_heads, w.k_norm);
}

void DecodeChunk::RotateHeads(int64_t first, int64_t heads, const at::Tensor& weight) {
  const int64_t dim = config_.head_dim;
  float* x = qkv_ + first * dim;
  kernels_.head_norm_rotary(
      count_, heads, dim, x, qkv_size_, weight.defined() ? weight.data_ptr<float>() : nullptr,
      static_cast<float>(config_.rms_norm_eps), model_.rotary.cos.data_ptr<float>(),
      model_.rotary.sin.data_ptr<float>(), rows_.positions.data() + begin_, x, qkv_size_, nullptr,
      0);
}

void DecodeChunk::Store(int64_t layer) {
  const int64_t dim = config_.head_dim, heads = config_.num_kv_heads;
  float* all_keys = cache_->keys(layer).data_ptr<float>();
  float* all_values = cache_->values(layer).data_ptr<float>();
  for (int64_t r = 0; r < count_; ++r) {
    const int64_t position = rows_.positions[row_[r]], place = position % kLanes;
    const int64_t page = rows_.slices[rows_.slice[row_[r]]].pages[position / kLanes];
    const float* keys = qkv_ + r * qkv_size_ + config_.query_size();
    const float* values = keys + config_.kv_size();
    for (int64_t h = 0; h < heads; ++h) {
      float* to = all_keys + (page * heads + h) * dim * kLanes + place;
      for (int64_t d = 0; d < dim; ++d) to[d * kLanes] = keys[h * dim + d];
      std::memcpy(all_values + ((page * heads + h) * kLanes + place) * dim, values + h * dim,
                  dim * sizeof(float));
    }
  }
}

void DecodeChunk::AttentionBlock(int64_t layer) {
  const int64_t q_size = config_.query_size();
  std::memset(attention_ + count_ * q_size, 0, (padded_ - count_) * q_size * sizeof(float));
  int64_t end = 0;
  for (int64_t r = 0; r < count_; r = end) {  // runs of rows of one sequence
    end = r + 1;
    while (end < count_ && rows_.slice[row_[end]] == rows_.slice[row_[r]]) ++end;
    Attend(layer, r, end - r);
  }
  TransposeIn(attention_, q_size);
  Gemm(model_.layers[layer].o, transposed_in_, transposed_out_);
  AddBias(model_.layers[layer].o_bias, transposed_out_);
  AddTransposedOut();
}

void DecodeChunk::Attend(int64_t layer, int64_t r, int64_t count) {
  const int64_t dim = config_.head_dim, heads = config_.num_kv_heads;
  const int64_t page = dim * kLanes;
  PagedAttentionTask task;
  task.first = rows_.positions[row_[r]];
  task.rows = count;
  task.head_dim = dim;
  task.group = config_.group_size();
  task.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  task.q_row = qkv_size_;
  task.page_stride = heads * page;
  task.pages = rows_.slices[rows_.slice[row_[r]]].pages.data();
  task.out_row = config_.query_size();
  task.scratch = scores_;
  for (int64_t h = 0; h < heads; ++h) {
    task.q = qkv_ + r * task.q_row + h * task.group * dim;
    task.keys = cache_->keys(layer).data_ptr<float>() + h * page;
    task.values = cache_->values(layer).data_ptr<float>() + h * page;
    task.out = attention_ + r * task.out_row + h * task.group * dim;
    kernels_.attention_paged(task);
  }
}

void DecodeChunk::MlpBlock(const DecoderLayerParameters& w) {
  const int64_t size = config_.intermediate_size;
  Norm(w.post_norm);
  TransposeIn(normed_, config_.hidden_size);
  Gemm(w.gate, transposed_in_, transposed_out_);
  Gemm(w.up, transposed_in_, transposed_out_ + size * padded_);
  AddBias(w.gate_bias, transposed_out_);
  AddBias(w.up_bias, transposed_out_ + size * padded_);
  kernels_.swiglu_flat(size * padded_, transposed_out_, transposed_out_ + size * padded_,
                       transposed_in_);
  Gemm(w.down, transposed_in_, transposed_out_);
  AddBias(w.down_bias, transposed_out_);
  AddTransposedOut();
}

}  // namespace tritonrl
