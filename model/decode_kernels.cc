// Decoding on the CPU: the rows of a step are split into chunks, and each chunk goes through the
// whole model on one thread. It meets others only where a sequence goes on from one chunk to the
// next: before a chunk attends in a layer, the one before it has written its keys and values there.
// So the chunks of a long prompt follow each other through the layers on all threads.
//
// A GEMM of few rows is computed transposed, out^T [N, rows] = W [N, C] x^T [C, rows]:
// so the weights are read in place, in the order they are stored, and only the small x is turned.

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "model/decode.h"

namespace tritonrl {
namespace {

constexpr int64_t kLanes = kKvPageSize;  // rows are padded to the kernel's width
constexpr int64_t kMaxChunk = 32;        // rows of one chunk

// Layers in which a chunk's keys and values are in the cache.
using Progress = std::atomic<int64_t>;

// Chunks begin in rising order, so the one waited for is under way on another thread, or done.
void WaitFor(const Progress& progress, int64_t layers) {
  constexpr int kSpins = 2000;
  for (int spin = 0; progress.load(std::memory_order_acquire) < layers; ++spin) {
    if (spin < kSpins) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

// One chunk's walk through the model. B rows, padded to R with rows that are computed and dropped.
class Chunk {
 public:
  // before: of the chunk in which the first row's sequence began; null if it begins here.
  Chunk(const DecodeModel& model, const DecodeBatch& rows, int64_t begin, int64_t end,
        PagedKvCache* cache, const Progress* before, Progress* progress)
      : model_(model),
        config_(model.config),
        kernels_(model.context.kernels()),
        rows_(rows),
        cache_(cache),
        before_(before),
        progress_(progress),
        begin_(begin),
        row_(end - begin) {
    std::iota(row_.begin(), row_.end(), begin);
    SetCount(end - begin);
    const int64_t qkv = config_.query_size() + 2 * config_.kv_size();
    wide_ =
        std::max({config_.hidden_size, qkv, 2 * config_.intermediate_size, config_.query_size()});
    const int64_t longest =
        *std::max_element(rows.positions.begin() + begin, rows.positions.begin() + end) + 1;
    const int64_t scores = std::max<int64_t>(2, count_) * (longest + kLanes);
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

  // logits: [L, V] of all rows asked for; writes those of this chunk.
  void Run(float* logits) {
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
    TurnIn(normed_, config_.hidden_size);
    Product(model_.head, turned_in_, logits_);
    const int64_t first =
        std::lower_bound(rows_.logit_rows.begin(), rows_.logit_rows.end(), begin_) -
        rows_.logit_rows.begin();
    kernels_.transpose(config_.vocab_size, count_, logits_, padded_,
                       logits + first * config_.vocab_size, config_.vocab_size);
  }

 private:
  void SetCount(int64_t count) {
    count_ = count;
    padded_ = (count + kLanes - 1) / kLanes * kLanes;
  }

  // What comes after the keys and values of the last layer matters to these rows only.
  void SelectLogitRows() {
    const int64_t width = config_.query_size() + 2 * config_.kv_size();
    int64_t kept = 0;
    for (int64_t r = 0; r < count_; ++r) {
      if (!std::binary_search(rows_.logit_rows.begin(), rows_.logit_rows.end(), row_[r])) continue;
      if (kept < r) {
        std::memcpy(x_ + kept * config_.hidden_size, x_ + r * config_.hidden_size,
                    config_.hidden_size * sizeof(float));
        std::memcpy(qkv_ + kept * width, qkv_ + r * width, width * sizeof(float));
      }
      row_[kept++] = row_[r];
    }
    SetCount(kept);
  }

  void Embed() {
    const float* table = model_.embedding.data_ptr<float>();
    const int64_t cols = config_.hidden_size;
    for (int64_t r = 0; r < padded_; ++r) {
      const int64_t token = r < count_ ? rows_.tokens[row_[r]] : 0;
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

  // Queries, keys and values [R, (H + 2K) D] of this layer, normalised and rotated, to qkv_.
  void Project(const DecoderLayerParameters& w) {
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

  // Keys and values of all rows into their pages.
  void Store(int64_t layer) {
    const int64_t dim = config_.head_dim, heads = config_.num_kv_heads;
    float* all_keys = cache_->keys(layer).data_ptr<float>();
    float* all_values = cache_->values(layer).data_ptr<float>();
    for (int64_t r = 0; r < count_; ++r) {
      const int64_t position = rows_.positions[row_[r]], place = position % kLanes;
      const int64_t page = rows_.slices[rows_.slice[row_[r]]].pages[position / kLanes];
      const float* keys =
          qkv_ + r * (config_.query_size() + 2 * config_.kv_size()) + config_.query_size();
      const float* values = keys + config_.kv_size();
      for (int64_t h = 0; h < heads; ++h) {
        float* to = all_keys + (page * heads + h) * dim * kLanes + place;
        for (int64_t d = 0; d < dim; ++d) to[d * kLanes] = keys[h * dim + d];
        std::memcpy(all_values + ((page * heads + h) * kLanes + place) * dim, values + h * dim,
                    dim * sizeof(float));
      }
    }
  }

  void AttentionBlock(int64_t layer) {
    const int64_t q_size = config_.query_size();
    std::memset(attention_ + count_ * q_size, 0, (padded_ - count_) * q_size * sizeof(float));
    int64_t end = 0;
    for (int64_t r = 0; r < count_; r = end) {  // runs of one sequence
      end = r + 1;
      while (end < count_ && rows_.slice[row_[end]] == rows_.slice[row_[r]]) ++end;
      Attend(layer, r, end - r);
    }
    TurnIn(attention_, q_size);
    Product(model_.layers[layer].o, turned_in_, turned_out_);
    AddTurned();
  }

  // Rows [r, r + count) are consecutive tokens of one sequence.
  void Attend(int64_t layer, int64_t r, int64_t count) {
    const int64_t dim = config_.head_dim, heads = config_.num_kv_heads;
    const int64_t page = dim * kLanes;
    PagedAttentionTask task;
    task.first = rows_.positions[row_[r]];
    task.rows = count;
    task.head_dim = dim;
    task.group = config_.group_size();
    task.scale = 1.0f / std::sqrt(static_cast<float>(dim));
    task.q_row = config_.query_size() + 2 * config_.kv_size();
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
  const DecodeBatch& rows_;
  PagedKvCache* cache_;
  const Progress* before_;
  Progress* progress_;
  const int64_t begin_;
  std::vector<int64_t> row_;  // [B] of the step
  int64_t count_, padded_;    // B, R
  int64_t wide_;
  float* memory_;
  float* x_;           // [R, C] residual stream
  float* normed_;      // [R, C]
  float* turned_in_;   // [C or F or H D, R]
  float* turned_out_;  // [N, R]
  float* qkv_;         // [R, (H + 2K) D]
  float* attention_;   // [R, H D]
  float* logits_;      // [V, R]
  float* scores_;      // [rows, at least 2; longest sequence + 16]
};

}  // namespace

at::Tensor DecodeWithCpuKernels(const DecodeModel& model, const DecodeBatch& rows,
                                PagedKvCache* cache) {
  at::Tensor logits = model.context.Empty(
      {static_cast<int64_t>(rows.logit_rows.size()), model.config.vocab_size}, model.head);
  float* out = logits.data_ptr<float>();
  const int64_t threads = model.context.threads().count();
  const int64_t share = (rows.size() + threads - 1) / threads;
  const int64_t size = std::clamp((share + kLanes - 1) / kLanes * kLanes, kLanes, kMaxChunk);
  std::vector<Progress> progress((rows.size() + size - 1) / size);
  model.context.ForRowBlocks(rows.size(), size, [&](int64_t begin, int64_t end) {
    const int64_t i = begin / size;
    const bool goes_on = begin > 0 && rows.slice[begin] == rows.slice[begin - 1];
    Chunk(model, rows, begin, end, cache, goes_on ? &progress[i - 1] : nullptr, &progress[i])
        .Run(out);
  });
  return logits;
}

}  // namespace tritonrl
