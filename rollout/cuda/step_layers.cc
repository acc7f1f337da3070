#include "rollout/cuda/step_layers.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "model/cuda/kernels.h"
#include "model/cuda/product_chain.h"
#include "rollout/cuda/paged_attention.h"
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

int64_t PartBytes(const ModelConfig& config, const StepLayers::Options& options) {
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

bool MayChain(const ModelConfig& config, const StepLayers::Options& options) {
  const int64_t hidden = config.hidden_size, mlp = config.intermediate_size;
  return options.chains && !options.batch_invariant && !options.fp8_weights &&
         options.ranks == nullptr && TakesProductChains() &&
         TakesProductLink(config.query_size(), hidden, /*swiglu=*/false) &&
         TakesProductLink(hidden, 2 * mlp, /*swiglu=*/true) &&
         TakesProductLink(mlp, hidden, /*swiglu=*/false) &&
         TakesProductLink(hidden, QkvSize(config), /*swiglu=*/false);
}

}  // namespace

int64_t StepLayers::Bytes(const ModelConfig& config, const Options& options) {
  const int64_t row = 3 * config.hidden_size + QkvSize(config) + 2 * config.query_size() +
                      3 * config.intermediate_size;
  return options.max_rows * (2 * row + 4) +
         options.max_logits *
             (2 * config.hidden_size + 4 * config.vocab_size + 4 * config.num_heads) +
         config.max_positions * config.head_dim * 4 + PartBytes(config, options) +
         (options.fp8_weights ? Fp8Weights::Bytes(config, options.max_rows) : 0) +
         kProductWorkspace + ProductChainBytes();
}

StepLayers::StepLayers(std::shared_ptr<Weights> weights, const Options& options)
    : ranks_(options.ranks),
      weights_(std::move(weights)),
      config_(weights_->config()),
      shape_(ShapeOf(config_, options.cache)),
      rotary_(MakeRotaryTable(config_, weights_->device(), weights_->dtype())),
      gemm_(weights_->device(), /*tuned=*/true),
      chunk_stream_(weights_->device()),
      overlap_(at::cuda::getDeviceProperties(weights_->device().index())->major >= 9),
      chains_(MayChain(config_, options)) {
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    layers_.emplace_back(*weights_, i);
    TORCH_CHECK(layers_[i].qkv.defined() && layers_[i].gate_up.defined(),
                "the parameters of layer ", i, " do not lie side by side");
  }
  const int64_t max_rows = options.max_rows, max_logits = options.max_logits;
  if (options.fp8_weights) {
    fp8_weights_ = std::make_unique<Fp8Weights>(config_, layers_, max_rows);
  }
  embedding_ = weights_->Get("model.embed_tokens.weight");
  final_norm_ = weights_->Get("model.norm.weight");
  head_ = config_.tie_word_embeddings ? embedding_ : weights_->Get("lm_head.weight");
  // Zeros, so that rows which fill up never hold what is no number.
  const auto rows = [&](int64_t count, int64_t width) {
    return at::zeros({count, width}, embedding_.options());
  };
  x_ = rows(max_rows, config_.hidden_size);
  middle_ = rows(max_rows, config_.hidden_size);
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
  chain_ = at::zeros({ProductChainBytes()}, embedding_.options().dtype(at::kByte));
}

void StepLayers::Synchronize() const {
  const cudaError_t error = chunk_stream_.Synchronize();
  TORCH_CHECK(error == cudaSuccess, "attention of chunks: ", cudaGetErrorString(error));
}

void StepLayers::CopyWeights() {
  if (fp8_weights_ != nullptr) fp8_weights_->Copy();
}

bool StepLayers::Chained(int64_t rows) const { return chains_ && rows <= kMostChainRows; }

void StepLayers::Multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor* add,
                          const at::Tensor& out) {
  gemm_.Multiply(x, weight.t(), add, out);
}

void StepLayers::SumShares(const at::Tensor& add, const at::Tensor& out) {
  if (ranks_ == nullptr) return;
  const absl::Status summed = ranks_->Sum(out);
  TORCH_CHECK(summed.ok(), summed.message());
  out.add_(add);
}

void StepLayers::NormMultiply(const at::Tensor& x, const at::Tensor& norm, const at::Tensor& weight,
                              bool swiglu, const at::Tensor& out) {
  const int64_t rows = x.size(0);
  const float eps = static_cast<float>(config_.rms_norm_eps);
  const at::Tensor normed = normed_.narrow(0, 0, rows);
  LaunchRmsNorm({rows, config_.hidden_size, CudaType::kBFloat16, Stream()}, x.const_data_ptr(),
                norm.const_data_ptr(), eps, normed.data_ptr(), rstd_.data_ptr<float>(), nullptr);
  if (!swiglu) return Multiply(normed, weight, nullptr, out);
  const at::Tensor gate_up = gate_up_.narrow(0, 0, rows);
  Multiply(normed, weight, nullptr, gate_up);
  LaunchSwiglu({rows, config_.intermediate_size, CudaType::kBFloat16, Stream()},
               gate_up.const_data_ptr(), out.data_ptr(), nullptr);
}

void StepLayers::Embed(const StepOnGpu& step) {
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

void StepLayers::Attend(const StepOnGpu& step, int64_t layer, GpuCache* cache) {
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
    LaunchChunkAttention(shape_, paged, *step.chunks, step.chunk_words, rows, stream);
  };
  if (step.decode == nullptr) return attend_chunks(Stream());
  // A small chunk's attention leaves most of the GPU idle, and none of it waits for the other's.
  if (step.chunks != nullptr) {
    chunk_stream_.Fork();
    attend_chunks(chunk_stream_.stream());
  }
  rows.rows = step.decode->rows();
  LaunchDecodeAttention(shape_, paged, *step.decode, step.decode->At(step.decode_words), rows,
                        {parts_.data_ptr(), arrived_.data_ptr<int32_t>()}, Stream());
  if (step.chunks != nullptr) chunk_stream_.Join();
}

void StepLayers::Head(const StepOnGpu& step) {
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
  NormMultiply(rows.narrow(0, 0, step.logit_rows), final_norm_, head_, /*swiglu=*/false,
               logits_.narrow(0, 0, step.logit_rows));
}

void StepLayers::Layer(const StepOnGpu& step, int64_t layer, GpuCache* cache) {
  const auto first = [&step](const at::Tensor& x) { return x.narrow(0, 0, step.rows); };
  const at::Tensor x = first(x_), middle = first(middle_), inner = first(inner_);
  const DecoderLayerParameters& w = layers_[layer];
  NormMultiply(x, w.input_norm, w.qkv, /*swiglu=*/false, first(qkv_));
  Attend(step, layer, cache);
  Multiply(first(attention_), w.o, Added(x), middle);
  SumShares(x, middle);
  NormMultiply(middle, w.post_norm, w.gate_up, /*swiglu=*/true, inner);
  Multiply(inner, w.down, Added(middle), x);
  SumShares(middle, x);
}

void StepLayers::Fp8Layer(const StepOnGpu& step, int64_t layer, GpuCache* cache) {
  const auto first = [&step](const at::Tensor& x) { return x.narrow(0, 0, step.rows); };
  const at::Tensor x = first(x_), middle = first(middle_), gate_up = first(gate_up_);
  const DecoderLayerParameters& w = layers_[layer];
  const float eps = static_cast<float>(config_.rms_norm_eps);
  Fp8Weights& fp8 = *fp8_weights_;
  fp8.RoundNormed(x, w.input_norm, eps);
  fp8.Multiply(w.qkv, nullptr, first(qkv_), &gemm_);
  Attend(step, layer, cache);
  fp8.Round(first(attention_));
  fp8.Multiply(w.o, Added(x), middle, &gemm_);
  SumShares(x, middle);
  fp8.RoundNormed(middle, w.post_norm, eps);
  fp8.Multiply(w.gate_up, nullptr, gate_up, &gemm_);
  fp8.RoundGated(gate_up);
  fp8.Multiply(w.down, Added(middle), x, &gemm_);
  SumShares(middle, x);
}

void StepLayers::Run(const StepOnGpu& step, GpuCache* cache) {
  TORCH_CHECK(step.rows <= x_.size(0) && step.logit_rows <= logits_.size(0), "a step of ",
              step.rows, " rows and ", step.logit_rows, " logits is too large");
  Embed(step);
  if (Chained(step.rows)) {
    ChainedLayers(step, cache);
  } else {
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      fp8_weights_ == nullptr ? Layer(step, i, cache) : Fp8Layer(step, i, cache);
    }
  }
  Head(step);
}

}  // namespace tritonrl
