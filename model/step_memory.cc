#include "model/step_memory.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "model/cuda/gemm.h"
#include "model/layer_bytes.h"
#include "model/lm_head.h"

namespace tritonrl {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kSmallPerToken = 64;  // tokens, positions, targets, rows, results

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
        attention_room_(AttentionRoom(config, step)) {}

  StepPeak Run() {
    where_ = "the start";
    Take(kProductWorkspace);
    Take(config_.max_positions * config_.head_dim * kFloat);  // table of RoPE
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

  // As Fp8Takes.
  static bool Sixteens(std::initializer_list<int64_t> sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size % 16 == 0; });
  }
  // A product of the norm into memory that is there.
  void ForwardProduct(const CopyBytes& copies) { Touch(copies.input + copies.weight); }
  // A product onto the residual stream, whose result stays.
  void OntoProduct(const CopyBytes& copies) {
    Take(copies.input);
    Take(layer_.hidden);
    Touch(copies.weight);
    Give(copies.input);
  }
  // The backward of a product of the norm, which is there, to the norm's gradient, which is taken;
  // d_out is given back.
  void NormProductBackward(const CopyBytes& copies, int64_t d_out, int64_t n) {
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

  // A norm that is not kept is there from just before its product to just behind it.
  void TakeNorm(bool kept) { Take(kept ? 0 : layer_.hidden); }
  void GiveNorm(bool kept) { Give(kept ? 0 : layer_.hidden); }

  RecomputeSet Set(int64_t layer) const {
    return layers_.empty() ? RecomputeSet() : layers_[layer];
  }

  // From the layer's input, which is there, to its output.
  void Forward(int64_t i) {
    where_ = absl::StrCat("layer ", i, "'s forward");
    const auto drop = [&](LayerTensor tensor) {
      if (Set(i).Has(tensor)) Give(layer_.Of(tensor));
    };
    Take(layer_.rstd + layer_.hidden + layer_.qkv);  // with the norm
    ForwardProduct(qkv_);
    GiveNorm(!Set(i).Has(LayerTensor::kNorms));
    Take(layer_.Of(LayerTensor::kRotatedHeads));
    Take(layer_.Of(LayerTensor::kAttention));
    drop(LayerTensor::kRotatedHeads);
    drop(LayerTensor::kQkv);
    OntoProduct(o_);  // middle
    drop(LayerTensor::kAttention);
    Take(layer_.rstd + layer_.hidden + layer_.gate_up);  // with the norm
    ForwardProduct(gate_up_);
    GiveNorm(!Set(i).Has(LayerTensor::kNorms));
    Take(layer_.activated);
    drop(LayerTensor::kGateUp);
    OntoProduct(down_);  // output
    drop(LayerTensor::kMiddle);
    drop(LayerTensor::kActivated);
  }

  // From the last layer's output to its gradient.
  void Head() {
    where_ = "the head";
    const int64_t rows = step_.target_rows > 0 ? step_.target_rows : step_.tokens;
    const int64_t row = rows * config_.hidden_size * step_.element_bytes;
    const int64_t vocab = config_.vocab_size;
    const int64_t chunk = std::min(rows, HeadChunkRowsOnGpu(step_.head_chunk_rows, vocab));
    Take(row);                                                  // rows with a target
    Touch(row + (step_.consume ? 0 : chunk * vocab * kFloat));  // their norm; Forward's logits
    Give(layer_.hidden);
    Take(2 * row);  // the norm and its gradient
    Take(chunk * vocab * (kFloat + step_.element_bytes));
    Give(chunk * vocab * (kFloat + step_.element_bytes));
    Give(row);
    where_ = "the final norm's backward";
    Take(row);
    Give(step_.consume ? 2 * row : row);
    Take(layer_.hidden);
    Give(row);
  }

  // What the layer lacks is made by operations of a layer's forward.
  struct Present {
    bool norms, qkv, heads, attention, middle;
  };
  void MakeHeads(Present* has) {
    if (!has->qkv) {
      TakeNorm(has->norms);
      Take(layer_.qkv);
      ForwardProduct(qkv_);
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

  // With the gradient of the layer's output held; at the end that of its input is.
  void Backward(int64_t i) {
    where_ = absl::StrCat("layer ", i, "'s backward");
    const RecomputeSet set = Set(i);
    Present has = {!set.Has(LayerTensor::kNorms), !set.Has(LayerTensor::kQkv),
                   !set.Has(LayerTensor::kRotatedHeads), !set.Has(LayerTensor::kAttention),
                   !set.Has(LayerTensor::kMiddle)};
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
    NormProductBackward(qkv_, layer_.qkv, config_.query_size() + 2 * config_.kv_size());
    Give(layer_.hidden);
    GiveNorm(has.norms && !step_.consume);
    if (step_.consume) Give(layer_.hidden + 2 * layer_.rstd);
  }

  void MlpBackward(RecomputeSet set, Present* has) {
    if (!has->middle) {
      MakeAttention(has);
      OntoProduct(o_);
    }
    const bool again = set.Has(LayerTensor::kGateUp);
    if (again) {
      TakeNorm(has->norms);
      Take(layer_.gate_up);
      ForwardProduct(gate_up_);
    }
    Take(down_.d_out_both);
    Take(layer_.activated);
    Touch(down_.weight);
    Give(down_.d_out_both - down_.d_out);
    if (!again && !step_.consume) Take(layer_.gate_up);  // its gradient beside it
    const bool activated = !set.Has(LayerTensor::kActivated);
    if (activated) Give(layer_.activated);  // its gradient; else SwiGLU is there again
    Take(down_.input);
    Give(down_.input + down_.d_out);
    if (!activated || step_.consume) Give(layer_.activated);
    if (!again) TakeNorm(has->norms);
    NormProductBackward(gate_up_, layer_.gate_up, 2 * config_.intermediate_size);
    Give(layer_.hidden);
    GiveNorm(has->norms && !step_.consume);
    if (step_.consume || !has->middle) Give(layer_.hidden);
  }

  const ModelConfig& config_;
  const StepShape& step_;
  const absl::Span<const RecomputeSet> layers_;
  const LayerBytes layer_;
  const CopyBytes qkv_, o_, gate_up_, down_;
  const int64_t attention_room_;
  std::string where_;
  int64_t now_ = 0;
  StepPeak peak_;
};

}  // namespace

int64_t TensorBytes(const ModelConfig& config, const StepShape& step, LayerTensor tensor) {
  return LayerBytes(config, step).Of(tensor);
}

int64_t KeptBytes(const ModelConfig& config, const StepShape& step, RecomputeSet recompute) {
  const LayerBytes layer(config, step);
  int64_t bytes = layer.hidden + 2 * layer.rstd;
  for (const LayerTensor tensor : kLayerTensors) {
    if (!recompute.Has(tensor)) bytes += layer.Of(tensor);
  }
  return bytes;
}

StepPeak PeakOfStep(const ModelConfig& config, const StepShape& step,
                    absl::Span<const RecomputeSet> layers) {
  return Timeline(config, step, layers).Run();
}

}  // namespace tritonrl
