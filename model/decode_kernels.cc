// Decoding on the CPU: the rows of a step are split into chunks, and each chunk goes through the
// whole model on one thread, without meeting the others.
//
// A matrix product of few rows is computed transposed, out^T [N, rows] = W [N, C] x^T [C, rows]:
// so the weights are read in place, in the order they are stored, and only the small x is turned.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/decode.h"

namespace tritonrl {
namespace {

constexpr int64_t kLanes = 16;     // rows are padded to the kernel's width
constexpr int64_t kMaxChunk = 32;  // rows of one chunk

// One chunk's walk through the model. B rows, padded to R with rows that are computed and dropped.
class Chunk {
 public:
  Chunk(const DecodeModel& model, const DecodeRows& rows, int64_t begin, int64_t end,
        DecodeCache* cache)
      : model_(model),
        config_(model.config),
        kernels_(model.context.kernels()),
        rows_(rows),
        cache_(cache),
        begin_(begin),
        count_(end - begin),
        padded_((count_ + kLanes - 1) / kLanes * kLanes) {
    const int64_t qkv = config_.query_size() + 2 * config_.kv_size();
    wide_ =
        std::max({config_.hidden_size, qkv, 2 * config_.intermediate_size, config_.query_size()});
    const int64_t scores = config_.group_size() * (cache->max_length() + kLanes);
    memory_ = CpuThreads::Scratch(padded_ * (2 * config_.hidden_size + 2 * wide_ + qkv +
                                             config_.query_size() + config_.vocab_size) +
                                  scores);
    x_ = memory_;
    normed_ = x_ + padded_ * config_.hidden_size;
    turned_in_ = normed_ + padded_ * config_.hidden_size;
    turned_out_ = turned_in_ + padded_ * wide_;
    qkv_ = turned_out_ + padded_ * wide_;
    attention_ = qkv_ + padded_ * qkv;
    logits_ = attention_ + padded_ * config_.query_size();
    scores_ = logits_ + padded_ * config_.vocab_size;
  }

  // logits: [count, V] of this chunk.
  void Run(float* logits) {
    Embed();
    for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
      AttentionBlock(layer);
      MlpBlock(model_.layers[layer]);
    }
    Norm(model_.final_norm);
    TurnIn(normed_, config_.hidden_size);
    Product(model_.head, turned_in_, logits_);
    kernels_.transpose(config_.vocab_size, count_, logits_, padded_, logits, config_.vocab_size);
  }

 private:
  void Embed() {
    const float* table = model_.embedding.data_ptr<float>();
    const int64_t cols = config_.hidden_size;
    for (int64_t r = 0; r < padded_; ++r) {
      const int64_t token = r < count_ ? rows_.tokens[begin_ + r] : 0;
      std::memcpy(x_ + r * cols, table + token * cols, cols * sizeof(float));
    }
  }

  void Norm(const at::Tensor& weight) {
    kernels_.rms_norm(padded_, config_.hidden_size, x_, weight.data_ptr<float>(),
                      static_cast<float>(config_.rms_norm_eps), normed_, nullptr);
  }

  // [R, cols] -> turned_in_ [cols, R]
  void TurnIn(const float* x, int64_t cols) {
    kernels_.transpose(padded_, cols, x, cols, turned_in_, padded_);
  }

  // out [N, R] = weight [N, C] in [C, R]
  void Product(const at::Tensor& weight, const float* in, float* out) {
    kernels_.gemm(weight.size(0), padded_, weight.size(1), weight.data_ptr<float>(), weight.size(1),
                  1, in, padded_, out, padded_, false);
  }

  // x += (turned_out_ [C, R])^T
  void AddTurned() {
    kernels_.transpose(config_.hidden_size, padded_, turned_out_, padded_, normed_,
                       config_.hidden_size);
    kernels_.add(padded_ * config_.hidden_size, normed_, x_);
  }

  void AttentionBlock(int64_t layer) {
    const DecoderLayerParameters& w = model_.layers[layer];
    const int64_t q_size = config_.query_size(), kv_size = config_.kv_size();
    const int64_t width = q_size + 2 * kv_size;
    Norm(w.input_norm);
    TurnIn(normed_, config_.hidden_size);
    Product(w.q, turned_in_, turned_out_);
    Product(w.k, turned_in_, turned_out_ + q_size * padded_);
    Product(w.v, turned_in_, turned_out_ + (q_size + kv_size) * padded_);
    kernels_.transpose(width, padded_, turned_out_, padded_, qkv_, width);
    RotateHeads(0, config_.num_heads, w.q_norm);
    RotateHeads(config_.num_heads, config_.num_kv_heads, w.k_norm);
    std::memset(attention_ + count_ * q_size, 0, (padded_ - count_) * q_size * sizeof(float));
    for (int64_t r = 0; r < count_; ++r) AttendRow(layer, r, width);
    TurnIn(attention_, q_size);
    Product(w.o, turned_in_, turned_out_);
    AddTurned();
  }

  // Norm and RoPE of `heads` heads from `first` on, in place in qkv_.
  void RotateHeads(int64_t first, int64_t heads, const at::Tensor& weight) {
    const int64_t dim = config_.head_dim, width = config_.query_size() + 2 * config_.kv_size();
    float* x = qkv_ + first * dim;
    kernels_.head_norm_rotary(
        count_, heads, dim, x, width, weight.defined() ? weight.data_ptr<float>() : nullptr,
        static_cast<float>(config_.rms_norm_eps), model_.rotary.cos.data_ptr<float>(),
        model_.rotary.sin.data_ptr<float>(), rows_.positions.data() + begin_, x, width, nullptr, 0);
  }

  // Appends row r's key and value to its slot and attends to all of the slot.
  void AttendRow(int64_t layer, int64_t r, int64_t width) {
    const int64_t dim = config_.head_dim, kv_heads = config_.num_kv_heads;
    const int64_t position = rows_.positions[begin_ + r], slot = rows_.slots[begin_ + r];
    const at::Tensor& keys = cache_->keys(layer);
    const at::Tensor& values = cache_->values(layer);
    const float* row = qkv_ + r * width;
    const float* row_keys = row + config_.query_size();
    const float* row_values = row_keys + config_.kv_size();
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    for (int64_t h = 0; h < kv_heads; ++h) {
      float* head_keys =
          keys.data_ptr<float>() + slot * keys.stride(0) + h * keys.stride(1);  // [blocks, D, 16]
      float* head_values =
          values.data_ptr<float>() + slot * values.stride(0) + h * values.stride(1);
      float* key = head_keys + position / kLanes * dim * kLanes + position % kLanes;
      for (int64_t d = 0; d < dim; ++d) key[d * kLanes] = row_keys[h * dim + d];
      std::memcpy(head_values + position * dim, row_values + h * dim, dim * sizeof(float));
      const int64_t first = h * config_.group_size() * dim;
      kernels_.attention_decode(position + 1, dim, config_.group_size(), scale, row + first,
                                head_keys, head_values,
                                attention_ + r * config_.query_size() + first, scores_);
    }
  }

  void MlpBlock(const DecoderLayerParameters& w) {
    const int64_t size = config_.intermediate_size;
    Norm(w.post_norm);
    TurnIn(normed_, config_.hidden_size);
    Product(w.gate, turned_in_, turned_out_);
    Product(w.up, turned_in_, turned_out_ + size * padded_);
    kernels_.swiglu_flat(size * padded_, turned_out_, turned_out_ + size * padded_, turned_in_);
    Product(w.down, turned_in_, turned_out_);
    AddTurned();
  }

  const DecodeModel& model_;
  const ModelConfig& config_;
  const CpuKernels& kernels_;
  const DecodeRows& rows_;
  DecodeCache* cache_;
  const int64_t begin_, count_, padded_;
  int64_t wide_;
  float* memory_;
  float* x_;           // [R, C] residual stream
  float* normed_;      // [R, C]
  float* turned_in_;   // [C or F or H D, R]
  float* turned_out_;  // [N, R]
  float* qkv_;         // [R, (H + 2K) D]
  float* attention_;   // [R, H D]
  float* logits_;      // [V, R]
  float* scores_;      // [group, max_length + 16]
};

}  // namespace

at::Tensor DecodeStepKernels(const DecodeModel& model, const DecodeRows& rows, DecodeCache* cache) {
  const int64_t count = static_cast<int64_t>(rows.tokens.size());
  at::Tensor logits = model.context.Empty({count, model.config.vocab_size}, model.head);
  const int64_t threads = model.context.threads().count();
  const int64_t share = (count + threads - 1) / threads;
  const int64_t chunk = std::clamp((share + kLanes - 1) / kLanes * kLanes, kLanes, kMaxChunk);
  model.context.ForRowBlocks(count, chunk, [&](int64_t begin, int64_t end) {
    Chunk(model, rows, begin, end, cache)
        .Run(logits.data_ptr<float>() + begin * model.config.vocab_size);
  });
  return logits;
}

}  // namespace tritonrl
