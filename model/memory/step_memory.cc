#include "model/memory/step_memory.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "model/cuda/attention/packed_lengths.h"
#include "model/cuda/gemm/gemm.h"
#include "model/layers/lm_head.h"

namespace tritonrl {

namespace {

constexpr int64_t kFloatBytes = 4;
constexpr int64_t kSmallPerToken = 64;  // tokens, positions, targets, rows, results

// Replays the allocations and frees of a step in their order and records the peak.
class Timeline {
 public:
  Timeline(const ModelConfig& config, const StepShape& step, absl::Span<const RecomputeSet> layers)
      : config_(config),
        step_(step),
        layers_(layers),
        layer_(config, step),
        qkv_(step, Sixteens({config.hidden_size, config.query_size(), config.kv_size()}),
             config.query_size() + 2 * config.kv_size(), config.hidden_size),
        o_(step, Sixteens({config.hidden_size, config.query_size()}), config.hidden_size,
           config.query_size()),
        gate_up_(step, Sixteens({config.hidden_size, config.intermediate_size}),
                 2 * config.intermediate_size, config.hidden_size),
        down_(step, Sixteens({config.hidden_size, config.intermediate_size}), config.hidden_size,
              config.intermediate_size),
        attention_room_(AttentionWorkspaceBytes(config, step)) {}

  StepPeak Run() {
    where_ = "the start";
    Take(kGemmWorkspaceBytes);
    Take(config_.max_positions * config_.head_dim * kFloatBytes);  // RoPE's table
    Take(step_.tokens * kSmallPerToken);
    Take(layer_.hidden);  // the embedding's output
    for (int64_t i = 0; i < config_.num_layers; ++i) Forward(i);
    Head();
    for (int64_t i = config_.num_layers - 1; i >= 0; --i) Backward(i);
    return peak_;
  }

 private:
  void Take(int64_t bytes) {
    now_ += bytes;
    if (now_ <= peak_.bytes) return;
    peak_ = {now_, where_};
  }
  void Give(int64_t bytes) { now_ -= bytes; }
  void Touch(int64_t bytes) {
    Take(bytes);
    Give(bytes);
  }

  // The condition of SupportsFp8.
  static bool Sixteens(std::initializer_list<int64_t> sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size % 16 == 0; });
  }
  // A GEMM of the norm into memory that is already allocated.
  void ForwardGemm(const Fp8CopyBytes& copies) { Touch(copies.input + copies.weight); }
  // A GEMM with residual add; its result stays allocated.
  void ResidualAddGemm(const Fp8CopyBytes& copies) {
    Take(copies.input);
    Take(layer_.hidden);
    Touch(copies.weight);
    Give(copies.input);
  }
  // The backward of a GEMM whose input, the norm, is allocated: allocates the norm's gradient and
  // frees d_out.
  void NormGemmBackward(const Fp8CopyBytes& copies, int64_t d_out, int64_t n) {
    const bool plain = copies.weight == 0;
    if (plain) {
      Take(layer_.hidden);
    } else {
      Take(copies.d_out_both);
      Give(d_out);
    }
    Take(copies.input);
    Give(copies.input + copies.d_out_both - copies.d_out);
    if (plain) return Give(d_out);
    Take(layer_.hidden);
    Touch(copies.weight);
    Give(copies.d_out);
  }

  // A norm that is not kept is allocated just before its GEMM and freed just after it.
  void TakeNorm(bool kept) { Take(kept ? 0 : layer_.hidden); }
  void GiveNorm(bool kept) { Give(kept ? 0 : layer_.hidden); }

  RecomputeSet Set(int64_t layer) const {
    return layers_.empty() ? RecomputeSet() : layers_[layer];
  }

  // From the layer's input, which is already allocated, to its output.
  void Forward(int64_t i) {
    where_ = absl::StrCat("layer ", i, "'s forward");
    const auto drop = [&](LayerTensor tensor) {
      if (Set(i).Has(tensor)) Give(layer_.Of(tensor));
    };
    Take(layer_.rstd + layer_.hidden + layer_.qkv);  // with the norm
    ForwardGemm(qkv_);
    GiveNorm(!Set(i).Has(LayerTensor::kNorms));
    Take(layer_.Of(LayerTensor::kRotatedHeads));
    Take(layer_.Of(LayerTensor::kAttention));
    drop(LayerTensor::kRotatedHeads);
    drop(LayerTensor::kQkv);
    ResidualAddGemm(o_);  // post_attention
    drop(LayerTensor::kAttention);
    Take(layer_.rstd + layer_.hidden + layer_.gate_up);  // with the norm
    ForwardGemm(gate_up_);
    GiveNorm(!Set(i).Has(LayerTensor::kNorms));
    Take(layer_.activated);
    drop(LayerTensor::kGateUp);
    ResidualAddGemm(down_);  // output
    drop(LayerTensor::kPostAttention);
    drop(LayerTensor::kActivated);
  }

  // From the last layer's output to the gradient of this output.
  void Head() {
    where_ = "the head";
    const int64_t rows = step_.target_rows > 0 ? step_.target_rows : step_.tokens;
    const int64_t row = rows * config_.hidden_size * step_.element_bytes;
    const int64_t vocab = config_.vocab_size;
    const int64_t chunk = std::min(rows, HeadChunkRowsOnGpu(step_.head_chunk_rows, vocab));
    Take(row);                                                       // rows with a target
    Touch(row + (step_.consume ? 0 : chunk * vocab * kFloatBytes));  // their norm; Forward's logits
    Give(layer_.hidden);
    Take(2 * row);  // the norm and its gradient
    Take(chunk * vocab * (kFloatBytes + step_.element_bytes));
    Give(chunk * vocab * (kFloatBytes + step_.element_bytes));
    Give(row);
    where_ = "the final norm's backward";
    Take(row);
    Give(step_.consume ? 2 * row : row);
    Take(layer_.hidden);
    Give(row);
  }

  // The tensors that a layer has in its backward. Operations of the forward recompute the missing
  // ones.
  struct Present {
    bool norms, qkv, heads, attention, post_attention;
  };
  void MakeHeads(Present* has) {
    if (!has->qkv) {
      TakeNorm(has->norms);
      Take(layer_.qkv);
      ForwardGemm(qkv_);
      GiveNorm(has->norms);
    }
    if (!has->heads) Take(layer_.Of(LayerTensor::kRotatedHeads));
    has->qkv = has->heads = true;
  }
  void MakeAttention(Present* has) {
    if (has->attention) return;
    MakeHeads(has);
    Take(layer_.Of(LayerTensor::kAttention));
    has->attention = true;
  }

  // Before the call the gradient of the layer's output is allocated, afterwards that of its input.
  void Backward(int64_t i) {
    where_ = absl::StrCat("layer ", i, "'s backward");
    const RecomputeSet set = Set(i);
    Present has = {!set.Has(LayerTensor::kNorms), !set.Has(LayerTensor::kQkv),
                   !set.Has(LayerTensor::kRotatedHeads), !set.Has(LayerTensor::kAttention),
                   !set.Has(LayerTensor::kPostAttention)};
    MlpBackward(set, &has);
    MakeAttention(&has);
    Take(o_.d_out_both);
    Touch(o_.input);
    Give(o_.d_out_both - o_.d_out);
    MakeHeads(&has);
    const auto free = [&](LayerTensor tensor) {
      if (step_.consume || set.Has(tensor)) Give(layer_.Of(tensor));
    };
    Take(layer_.attention);  // its gradient
    Touch(o_.weight);
    Give(o_.d_out);
    Take(layer_.qkv);  // its gradient
    Touch(attention_room_);
    Give(layer_.attention);
    free(LayerTensor::kAttention);
    free(LayerTensor::kRotatedHeads);
    free(LayerTensor::kQkv);
    TakeNorm(has.norms);
    NormGemmBackward(qkv_, layer_.qkv, config_.query_size() + 2 * config_.kv_size());
    Give(layer_.hidden);
    GiveNorm(has.norms && !step_.consume);
    if (step_.consume) Give(layer_.hidden + 2 * layer_.rstd);
  }

  void MlpBackward(RecomputeSet set, Present* has) {
    if (!has->post_attention) {
      MakeAttention(has);
      ResidualAddGemm(o_);
    }
    const bool again = set.Has(LayerTensor::kGateUp);
    if (again) {
      TakeNorm(has->norms);
      Take(layer_.gate_up);
      ForwardGemm(gate_up_);
    }
    Take(down_.d_out_both);
    Take(layer_.activated);
    Touch(down_.weight);
    Give(down_.d_out_both - down_.d_out);
    if (!again && !step_.consume) Take(layer_.gate_up);  // its gradient does not overwrite it
    const bool activated = !set.Has(LayerTensor::kActivated);
    // The gradient of SwiGLU's output is freed, unless the recomputed output has overwritten it.
    if (activated) Give(layer_.activated);
    Take(down_.input);
    Give(down_.input + down_.d_out);
    if (!activated || step_.consume) Give(layer_.activated);
    if (!again) TakeNorm(has->norms);
    NormGemmBackward(gate_up_, layer_.gate_up, 2 * config_.intermediate_size);
    Give(layer_.hidden);
    GiveNorm(has->norms && !step_.consume);
    if (step_.consume || !has->post_attention) Give(layer_.hidden);
  }

  const ModelConfig& config_;
  const StepShape& step_;
  const absl::Span<const RecomputeSet> layers_;
  const LayerBytes layer_;
  const Fp8CopyBytes qkv_, o_, gate_up_, down_;
  const int64_t attention_room_;
  std::string where_;
  int64_t now_ = 0;
  StepPeak peak_;
};

}  // namespace

int64_t TensorBytes(const ModelConfig& config, const StepShape& step, LayerTensor tensor) {
  return LayerBytes(config, step).Of(tensor);
}

int64_t SavedActivationBytes(const ModelConfig& config, const StepShape& step,
                             RecomputeSet recompute) {
  const LayerBytes layer(config, step);
  int64_t bytes = layer.hidden + 2 * layer.rstd;
  for (const LayerTensor tensor : kLayerTensors) {
    if (!recompute.Has(tensor)) bytes += layer.Of(tensor);
  }
  return bytes;
}

StepPeak PeakStepMemory(const ModelConfig& config, const StepShape& step,
                        absl::Span<const RecomputeSet> layers) {
  return Timeline(config, step, layers).Run();
}

namespace {

constexpr int64_t kMinPaddedLength = 128;  // lengths of copies are multiples of this

}  // namespace

LayerBytes::LayerBytes(const ModelConfig& c, const StepShape& s)
    : hidden(s.tokens * c.hidden_size * s.element_bytes),
      rstd(s.tokens * kFloatBytes),
      qkv(s.tokens * (c.query_size() + 2 * c.kv_size()) * s.element_bytes),
      qk(s.tokens * (c.query_size() + c.kv_size()) * s.element_bytes),
      qk_rstd(c.qk_norm() ? s.tokens * (c.num_heads + c.num_kv_heads) * kFloatBytes : 0),
      attention(s.tokens * c.query_size() * s.element_bytes),
      lse(s.tokens * c.num_heads * kFloatBytes),
      activated(s.tokens * c.intermediate_size * s.element_bytes),
      gate_up(2 * activated) {}

int64_t LayerBytes::Of(LayerTensor tensor) const {
  switch (tensor) {
    case LayerTensor::kActivated:
      return activated;
    case LayerTensor::kNorms:
      return 2 * hidden;
    case LayerTensor::kRotatedHeads:
      return qk + qk_rstd;
    case LayerTensor::kGateUp:
      return gate_up;
    case LayerTensor::kPostAttention:
      return hidden;
    case LayerTensor::kQkv:
      return qkv;
    case LayerTensor::kAttention:
      return attention + lse;
  }
  return 0;
}

Fp8CopyBytes::Fp8CopyBytes(const StepShape& s, bool takes, int64_t n, int64_t k) {
  if (!s.fp8 || !takes) return;
  const int64_t rows = s.fp8_in_hardware ? (s.tokens + 15) / 16 * 16 : s.tokens;
  const int64_t element = s.fp8_in_hardware ? 1 : s.element_bytes;
  input = rows * k * element;
  weight = n * k * element;
  d_out = rows * n * element;
  d_out_both = s.fp8_in_hardware ? 2 * d_out : d_out;  // both layouts in one allocation
}

int64_t AttentionWorkspaceBytes(const ModelConfig& c, const StepShape& s) {
  const int64_t longest = s.max_length > 0 ? std::min(s.max_length, s.tokens) : s.tokens;
  const int64_t lse = c.num_heads * kFloatBytes;
  // Bytes per row: dq, dk and dv, and the sums of the softmax.
  const int64_t row = c.query_size() * (kFloatBytes + 2 * s.element_bytes) + lse;
  if (!s.deterministic && !s.per_sequence) {
    // Sequences that share a call are padded to the longest, which is at most twice the shortest.
    return row * (longest == s.tokens ? longest : 2 * s.tokens);
  }
  const bool cudnn = s.element_bytes == 2;  // only cuDNN's attention copies operands
  // Copied bytes per row: q, k, v, out and their gradients, and the log-sum-exps.
  const int64_t copied = 4 * (c.query_size() + c.kv_size()) * s.element_bytes + lse;
  const auto room = [&](int64_t rows, bool copies) {
    int64_t bytes = rows * row;
    if (s.deterministic) {
      const int64_t calls = DeterministicBackwardCalls(c.num_heads, c.num_kv_heads, rows);
      bytes = (bytes + 2 * c.num_heads * rows * rows) / calls;
    }
    return bytes + (copies ? rows * copied : 0);
  };
  if (!cudnn) return room(longest, false);
  const int64_t most = PaddedLength(longest);
  if (s.max_length == 0) return room(most, most != longest);
  // A shorter sequence is divided into fewer calls, each of which may take more memory than a call
  // of the longest sequence.
  int64_t bytes = 0;
  for (int64_t rows = kMinPaddedLength; rows <= most; rows += kMinPaddedLength) {
    bytes = std::max(bytes, room(PaddedLength(rows), true));
  }
  return bytes;
}

}  // namespace tritonrl
