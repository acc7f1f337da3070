#include "rollout/cuda/cuda_transformer.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/cuda/fused/kernels.h"
#include "model/cuda/gemm/megakernel.h"
#include "rollout/cuda/attention/paged_attention.h"
#include "rollout/cuda/step_kernels.h"

namespace tritonrl {
namespace {

void* Stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

CacheHeads ShapeOf(const ModelConfig& config, CacheType type) {
  return {.query_heads = static_cast<int>(config.num_heads),
          .key_heads = static_cast<int>(config.num_kv_heads),
          .head_dim = static_cast<int>(config.head_dim),
          .type = type};
}

int64_t QkvSize(const ModelConfig& config) { return config.query_size() + 2 * config.kv_size(); }

int64_t PartBytes(const ModelConfig& config, const CudaTransformer::Options& options) {
  int64_t most = 0;
  for (int rows = 1; rows <= static_cast<int>(options.max_logits); ++rows) {
    const DecodePlan plan =
        DecodePlanFor(rows, options.max_context, static_cast<int>(config.num_heads),
                      static_cast<int>(config.num_kv_heads), options.batch_invariant);
    most = std::max(most, plan.PartialBytes(static_cast<int>(config.num_heads),
                                            static_cast<int>(config.head_dim)));
  }
  return most;
}

bool SupportsFusedKernel(const ModelConfig& config, const CudaTransformer::Options& options) {
  const int64_t hidden = config.hidden_size, mlp = config.intermediate_size;
  return options.fused_decode && !options.batch_invariant && !options.fp8_weights &&
         options.ranks == nullptr && !config.has_biases() && SupportsMegakernel() &&
         SupportsMegakernelGemm(config.query_size(), hidden, /*swiglu=*/false) &&
         SupportsMegakernelGemm(hidden, 2 * mlp, /*swiglu=*/true) &&
         SupportsMegakernelGemm(mlp, hidden, /*swiglu=*/false) &&
         SupportsMegakernelGemm(hidden, QkvSize(config), /*swiglu=*/false);
}

}  // namespace

int64_t CudaTransformer::Bytes(const ModelConfig& config, const Options& options) {
  const int64_t row = 3 * config.hidden_size + QkvSize(config) + 2 * config.query_size() +
                      3 * config.intermediate_size;
  return options.max_rows * (2 * row + 4) +
         options.max_logits *
             (2 * config.hidden_size + 4 * config.vocab_size + 4 * config.num_heads) +
         config.max_positions * config.head_dim * 4 + PartBytes(config, options) +
         (options.fp8_weights ? Fp8Weights::Bytes(config, options.max_rows) : 0) +
         kGemmWorkspaceBytes + MegakernelWorkspaceBytes();
}

CudaTransformer::CudaTransformer(std::shared_ptr<Weights> weights, const Options& options)
    : ranks_(options.ranks),
      weights_(std::move(weights)),
      config_(weights_->config()),
      shape_(ShapeOf(config_, options.cache)),
      rotary_(MakeRotaryTable(config_, weights_->device(), weights_->dtype())),
      gemm_(weights_->device(), /*autotune=*/true),
      chunk_stream_(weights_->device()),
      overlap_(at::cuda::getDeviceProperties(weights_->device().index())->major >= 9),
      fused_decode_(SupportsFusedKernel(config_, options)) {
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    layers_.emplace_back(*weights_, i);
    TORCH_CHECK(layers_[i].qkv.defined() && layers_[i].gate_up.defined(),
                "the parameters of layer ", i, " are not adjacent in memory");
  }
  const int64_t max_rows = options.max_rows, max_logits = options.max_logits;
  if (options.fp8_weights) {
    fp8_weights_ = std::make_unique<Fp8Weights>(config_, layers_, max_rows);
  }
  embedding_ = weights_->Get("model.embed_tokens.weight");
  final_norm_ = weights_->Get("model.norm.weight");
  head_ = config_.tie_word_embeddings ? embedding_ : weights_->Get("lm_head.weight");
  // Zeros, so that padding rows never hold NaN.
  const auto rows = [&](int64_t count, int64_t width) {
    return at::zeros({count, width}, embedding_.options());
  };
  x_ = rows(max_rows, config_.hidden_size);
  post_attention_ = rows(max_rows, config_.hidden_size);
  normed_ = rows(max_rows, config_.hidden_size);
  qkv_ = rows(max_rows, QkvSize(config_));
  queries_ = rows(max_rows, config_.query_size());
  attention_ = rows(max_rows, config_.query_size());
  gate_up_ = rows(max_rows, 2 * config_.intermediate_size);
  inner_ = rows(max_rows, config_.intermediate_size);
  picked_ = rows(max_logits, config_.hidden_size);
  rstd_ = at::empty({std::max(max_rows, max_logits)}, embedding_.options().dtype(at::kFloat));
  parts_ = at::empty({PartBytes(config_, options)}, embedding_.options().dtype(at::kByte));
  arrived_ = at::zeros({max_logits, config_.num_heads}, rstd_.options().dtype(at::kInt));
  logits_ = at::empty({max_logits, config_.vocab_size}, rstd_.options());
  fused_workspace_ = at::zeros({MegakernelWorkspaceBytes()}, embedding_.options().dtype(at::kByte));
}

void CudaTransformer::Synchronize() const {
  const cudaError_t error = chunk_stream_.Synchronize();
  TORCH_CHECK(error == cudaSuccess, "attention of chunks: ", cudaGetErrorString(error));
}

void CudaTransformer::QuantizeWeights() {
  if (fp8_weights_ != nullptr) fp8_weights_->QuantizeWeights();
}

bool CudaTransformer::UsesFusedKernel(int64_t rows) const {
  return fused_decode_ && rows <= kMaxMegakernelRows;
}

void CudaTransformer::Multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor* add,
                               const at::Tensor& out) {
  gemm_.Multiply(x, weight.t(), add, out);
}

void CudaTransformer::AddBiases(std::initializer_list<at::Tensor> biases, const at::Tensor& out) {
  int64_t column = 0;
  for (const at::Tensor& bias : biases) {
    if (!bias.defined()) return;
    out.narrow(1, column, bias.size(0)).add_(bias);
    column += bias.size(0);
  }
}

void CudaTransformer::AllReducePartials(const at::Tensor& add, const at::Tensor& out) {
  if (ranks_ == nullptr) return;
  const absl::Status summed = ranks_->AllReduce(out);
  TORCH_CHECK(summed.ok(), summed.message());
  out.add_(add);
}

void CudaTransformer::NormMultiply(const at::Tensor& x, const at::Tensor& norm,
                                   const at::Tensor& weight, const at::Tensor& out) {
  const int64_t rows = x.size(0);
  const at::Tensor normed = normed_.narrow(0, 0, rows);
  LaunchRmsNorm({rows, config_.hidden_size, CudaType::kBFloat16, Stream()}, x.const_data_ptr(),
                norm.const_data_ptr(), static_cast<float>(config_.rms_norm_eps), normed.data_ptr(),
                rstd_.data_ptr<float>(), nullptr);
  Multiply(normed, weight, nullptr, out);
}

void CudaTransformer::Embed(const StepInputs& step) {
  const int64_t decoding = step.decode == nullptr ? 0 : step.decode->rows();
  const int64_t row_bytes = config_.hidden_size * embedding_.element_size();
  auto* to = static_cast<uint8_t*>(x_.data_ptr());
  LaunchGatherRows({.rows = decoding,
                    .row_bytes = row_bytes,
                    .from = embedding_.const_data_ptr(),
                    .ids = step.last_tokens,
                    .through = step.slots,
                    .out = to,
                    .stream = Stream()});
  LaunchGatherRows({.rows = step.rows - decoding,
                    .row_bytes = row_bytes,
                    .from = embedding_.const_data_ptr(),
                    .ids = step.chunk_tokens,
                    .out = to + decoding * row_bytes,
                    .stream = Stream()});
}

void CudaTransformer::Attend(const StepInputs& step, int64_t layer, CudaKvCache* cache) {
  const DecoderLayerParameters& w = layers_[layer];
  const auto pointer = [](const at::Tensor& x) {
    return x.defined() ? x.const_data_ptr() : nullptr;
  };
  LaunchQkvToCache({.shape = shape_,
                    .rows = step.rows,
                    .qkv = qkv_.const_data_ptr(),
                    .q_weight = pointer(w.q_norm),
                    .k_weight = pointer(w.k_norm),
                    .eps = static_cast<float>(config_.rms_norm_eps),
                    .cos = rotary_.cos.const_data_ptr<float>(),
                    .sin = rotary_.sin.const_data_ptr<float>(),
                    .positions = step.positions,
                    .page_slots = step.page_slots,
                    .queries = queries_.data_ptr(),
                    .keys = cache->keys(layer),
                    .values = cache->values(layer),
                    .overlap = overlap_,
                    .stream = Stream()});
  const PagedKeysValues paged = {cache->keys(layer), cache->values(layer), step.page_table};
  AttentionRows rows = {.queries = queries_.const_data_ptr(),
                        .out = attention_.data_ptr(),
                        .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
                        .overlap = overlap_};
  const auto attend_chunks = [&](void* stream) {
    rows.rows = step.rows;
    LaunchPrefillAttention(shape_, paged, *step.chunks, step.chunk_words, rows, stream);
  };
  if (step.decode == nullptr) return attend_chunks(Stream());
  // Attention of chunks runs in parallel with decode attention: the two are independent, and that
  // of a small chunk leaves most of the GPU idle.
  if (step.chunks != nullptr) {
    chunk_stream_.Fork();
    attend_chunks(chunk_stream_.stream());
  }
  rows.rows = step.decode->rows();
  LaunchDecodeAttention(shape_, paged, *step.decode, step.decode->At(step.decode_words), rows,
                        {parts_.data_ptr(), arrived_.data_ptr<int32_t>()}, Stream());
  if (step.chunks != nullptr) chunk_stream_.Join();
}

void CudaTransformer::Head(const StepInputs& step) {
  if (step.logit_rows == 0) return;
  at::Tensor rows = x_;
  if (step.logit_ids != nullptr) {
    LaunchGatherRows({.rows = step.logit_rows,
                      .row_bytes = config_.hidden_size * x_.element_size(),
                      .from = x_.const_data_ptr(),
                      .ids = step.logit_ids,
                      .out = picked_.data_ptr(),
                      .stream = Stream()});
    rows = picked_;
  }
  NormMultiply(rows.narrow(0, 0, step.logit_rows), final_norm_, head_,
               logits_.narrow(0, 0, step.logit_rows));
}

at::Tensor CudaTransformer::RowLogits(int64_t first, int64_t count) {
  TORCH_CHECK(first + count <= x_.size(0) && count <= logits_.size(0), "logits of ", count,
              " rows from row ", first, " on are too many");
  const at::Tensor logits = logits_.narrow(0, 0, count);
  NormMultiply(x_.narrow(0, first, count), final_norm_, head_, logits);
  return logits;
}

void CudaTransformer::Layer(const StepInputs& step, int64_t layer, CudaKvCache* cache) {
  const auto first = [&step](const at::Tensor& x) { return x.narrow(0, 0, step.rows); };
  const at::Tensor x = first(x_), middle = first(post_attention_), inner = first(inner_);
  const at::Tensor gate_up = first(gate_up_);
  const DecoderLayerParameters& w = layers_[layer];
  NormMultiply(x, w.input_norm, w.qkv, first(qkv_));
  AddBiases({w.q_bias, w.k_bias, w.v_bias}, first(qkv_));
  Attend(step, layer, cache);
  Multiply(first(attention_), w.o, Added(x), middle);
  AllReducePartials(x, middle);
  AddBiases({w.o_bias}, middle);
  NormMultiply(middle, w.post_norm, w.gate_up, gate_up);
  AddBiases({w.gate_bias, w.up_bias}, gate_up);
  LaunchSwiglu({step.rows, config_.intermediate_size, CudaType::kBFloat16, Stream()},
               gate_up.const_data_ptr(), inner.data_ptr(), nullptr);
  Multiply(inner, w.down, Added(middle), x);
  AllReducePartials(middle, x);
  AddBiases({w.down_bias}, x);
}

void CudaTransformer::Fp8Layer(const StepInputs& step, int64_t layer, CudaKvCache* cache) {
  const auto first = [&step](const at::Tensor& x) { return x.narrow(0, 0, step.rows); };
  const at::Tensor x = first(x_), middle = first(post_attention_), gate_up = first(gate_up_);
  const DecoderLayerParameters& w = layers_[layer];
  const float eps = static_cast<float>(config_.rms_norm_eps);
  Fp8Weights& fp8 = *fp8_weights_;
  fp8.QuantizeNormed(x, w.input_norm, eps);
  fp8.Multiply(w.qkv, nullptr, first(qkv_), &gemm_);
  AddBiases({w.q_bias, w.k_bias, w.v_bias}, first(qkv_));
  Attend(step, layer, cache);
  fp8.Quantize(first(attention_));
  fp8.Multiply(w.o, Added(x), middle, &gemm_);
  AllReducePartials(x, middle);
  AddBiases({w.o_bias}, middle);
  fp8.QuantizeNormed(middle, w.post_norm, eps);
  fp8.Multiply(w.gate_up, nullptr, gate_up, &gemm_);
  AddBiases({w.gate_bias, w.up_bias}, gate_up);
  fp8.QuantizeSwiGlu(gate_up);
  fp8.Multiply(w.down, Added(middle), x, &gemm_);
  AllReducePartials(middle, x);
  AddBiases({w.down_bias}, x);
}

void CudaTransformer::Run(const StepInputs& step, CudaKvCache* cache) {
  TORCH_CHECK(step.rows <= x_.size(0) && step.logit_rows <= logits_.size(0), "a step of ",
              step.rows, " rows and ", step.logit_rows, " logits is too large");
  Embed(step);
  if (UsesFusedKernel(step.rows)) {
    FusedLayers(step, cache);
  } else {
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      fp8_weights_ == nullptr ? Layer(step, i, cache) : Fp8Layer(step, i, cache);
    }
  }
  Head(step);
}

void CudaTransformer::FusedLayer(const StepInputs& step, int64_t layer) {
  const DecoderLayerParameters& w = layers_[layer];
  MegakernelPlan chain = {.rows = step.rows,
                          .eps = static_cast<float>(config_.rms_norm_eps),
                          .workspace = fused_workspace_.data_ptr(),
                          .overlap = overlap_,
                          .stream = c10::cuda::getCurrentCUDAStream().stream()};
  chain.gemms = {{.inner = config_.query_size(),
                  .columns = config_.hidden_size,
                  .x = attention_.const_data_ptr(),
                  .weight = w.o.const_data_ptr(),
                  .add = x_.const_data_ptr(),
                  .out = post_attention_.data_ptr()},
                 {.inner = config_.hidden_size,
                  .columns = 2 * config_.intermediate_size,
                  .x = post_attention_.const_data_ptr(),
                  .weight = w.gate_up.const_data_ptr(),
                  .norm_weight = w.post_norm.const_data_ptr(),
                  .swiglu = true,
                  .out = inner_.data_ptr()},
                 {.inner = config_.intermediate_size,
                  .columns = config_.hidden_size,
                  .x = inner_.const_data_ptr(),
                  .weight = w.down.const_data_ptr(),
                  .add = post_attention_.const_data_ptr(),
                  .out = x_.data_ptr()}};
  if (layer + 1 < config_.num_layers) {
    const DecoderLayerParameters& next = layers_[layer + 1];
    chain.gemms.push_back({.inner = config_.hidden_size,
                           .columns = next.qkv.size(0),
                           .x = x_.const_data_ptr(),
                           .weight = next.qkv.const_data_ptr(),
                           .norm_weight = next.input_norm.const_data_ptr(),
                           .out = qkv_.data_ptr()});
  }
  LaunchMegakernel(chain);
}

void CudaTransformer::FusedLayers(const StepInputs& step, CudaKvCache* cache) {
  NormMultiply(x_.narrow(0, 0, step.rows), layers_[0].input_norm, layers_[0].qkv,
               qkv_.narrow(0, 0, step.rows));
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    Attend(step, i, cache);
    FusedLayer(step, i);
  }
}

namespace {

// Number of layers whose weights autotuning uses in turn: together several times as large as the L2
// cache.
constexpr size_t kTuneLayers = 8;

}  // namespace

void CudaTransformer::Autotune(int64_t rows) {
  if (!tuned_.insert(rows).second) return;
  const auto first = [rows](const at::Tensor& x) { return x.narrow(0, 0, rows); };
  const auto tune = [&](const at::Tensor& x, at::Tensor DecoderLayerParameters::*weight,
                        const at::Tensor* add, const at::Tensor& out) {
    std::vector<at::Tensor> weights, transposed;
    for (size_t i = 0; i < std::min(kTuneLayers, layers_.size()); ++i) {
      weights.push_back(layers_[i].*weight);
      transposed.push_back(weights.back().t());
    }
    if (fp8_weights_ != nullptr) return fp8_weights_->Autotune(x, weights, add, out, &gemm_);
    gemm_.Autotune(x, transposed, add, out);
  };
  const at::Tensor x = first(x_), middle = first(post_attention_);
  tune(first(normed_), &DecoderLayerParameters::qkv, nullptr, first(qkv_));
  if (rows <= logits_.size(0)) gemm_.Autotune(first(normed_), {head_.t()}, nullptr, first(logits_));
  if (UsesFusedKernel(rows)) return;
  tune(first(attention_), &DecoderLayerParameters::o, Added(x), middle);
  tune(first(normed_), &DecoderLayerParameters::gate_up, nullptr, first(gate_up_));
  tune(first(inner_), &DecoderLayerParameters::down, Added(middle), x);
}

void CudaTransformer::PinAlgorithm() {
  const auto fix = [&](const at::Tensor& x, const at::Tensor& weight, const at::Tensor* add,
                       const at::Tensor& out) {
    if (fp8_weights_ != nullptr) return fp8_weights_->PinAlgorithm(weight, add, out, &gemm_);
    gemm_.PinAlgorithm(x, weight.t(), add, out);
  };
  for (const DecoderLayerParameters& layer : layers_) {
    fix(normed_, layer.qkv, nullptr, qkv_);
    fix(attention_, layer.o, &x_, post_attention_);
    fix(normed_, layer.gate_up, nullptr, gate_up_);
    fix(inner_, layer.down, &post_attention_, x_);
  }
  gemm_.PinAlgorithm(normed_, head_.t(), nullptr, logits_);
}

}  // namespace tritonrl
