#include "model/transformer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "model/decode.h"
#include "model/layers/decoder_layer.h"
#include "model/layers/layer_context.h"
#include "model/layers/linear.h"
#include "model/layers/lm_head.h"
#include "model/layers/rms_norm.h"

namespace tritonrl {
namespace {

const char* const kEmbedding = "model.embed_tokens.weight";
const char* const kFinalNorm = "model.norm.weight";

const at::Tensor& HeadWeight(const ParameterBuffer& buffer) {
  return buffer.Get(buffer.config().tie_word_embeddings ? kEmbedding : "lm_head.weight");
}

ForwardResult NoResult(const PackedBatch& batch) {
  const at::TensorOptions fp32 = batch.tokens.options().dtype(at::kFloat);
  return {at::zeros({batch.num_tokens()}, fp32), at::zeros({batch.num_tokens()}, fp32)};
}

}  // namespace

struct Transformer::Impl {
  Impl(const ModelConfig& config, const Weights& weights, const Options& options)
      : options(options),
        context(options.cpu_threads, options.force_aten, options.gpu),
        rotary(MakeRotaryTable(config, weights.device(), weights.dtype())),
        embedding(weights.Get(kEmbedding)),
        final_norm(weights.Get(kFinalNorm)),
        head(HeadWeight(weights)) {
    for (int64_t i = 0; i < config.num_layers; ++i) layers.emplace_back(weights, i);
  }

  DecodeModel ForDecoding(const ModelConfig& config) const {
    return {context, config, rotary, layers, embedding, final_norm, head, options.ranks};
  }

  HeadSettings Head(double temperature) const { return {temperature, options.head_chunk_rows}; }

  const Options options;
  const LayerContext context;
  const RotaryTable rotary;
  std::vector<DecoderLayerParameters> layers;
  const at::Tensor embedding;
  const at::Tensor final_norm;
  const at::Tensor head;
};

Transformer::Transformer(const ModelConfig& config, std::shared_ptr<Weights> weights,
                         const Options& options)
    : config_(config),
      weights_(std::move(weights)),
      impl_(std::make_unique<Impl>(config_, *weights_, options)) {}

Transformer::Transformer(const ModelConfig& config, std::shared_ptr<Weights> weights)
    : Transformer(config, std::move(weights), Options()) {}

Transformer::~Transformer() = default;

const Transformer::Options& Transformer::options() const { return impl_->options; }

void Transformer::set_recompute(std::vector<RecomputeSet> layers) {
  TORCH_CHECK(layers.empty() || static_cast<int64_t>(layers.size()) == config_.num_layers,
              "recompute is given for ", layers.size(), " of ", config_.num_layers, " layers");
  recompute_ = std::move(layers);
}

at::Tensor Transformer::RunLayers(const PackedBatch& batch, const SequenceLayout& layout, bool fp8,
                                  std::vector<LayerActivations>* saved) const {
  TORCH_CHECK(impl_->options.ranks == nullptr, "a sharded model supports Step only");
  TORCH_CHECK(layout.max_length <= config_.max_positions, "a sequence of ", layout.max_length,
              " tokens is longer than max_position_embeddings ", config_.max_positions);
  const LayerEnvironment environment = {impl_->context,  config_, impl_->rotary,
                                        batch.positions, layout,  fp8};
  at::Tensor x = EmbeddingForward(impl_->context, impl_->embedding, batch.tokens);
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    LayerActivations activations;
    if (saved == nullptr) {
      activations.recompute = RecomputeSet::All();  // frees each one after its last read
    } else if (!recompute_.empty()) {
      activations.recompute = recompute_[i];
    }
    x = DecoderLayerForward(environment, impl_->layers[i], x, &activations);
    if (saved != nullptr) saved->push_back(std::move(activations));
  }
  return x;
}

at::Tensor Transformer::HiddenRows(const PackedBatch& batch, const at::Tensor& targets,
                                   double temperature, Activations* kept, bool save_layers) const {
  TORCH_CHECK(temperature > 0, "temperature must be positive");
  *kept = Activations();  // frees the previous batch's activations first
  kept->batch = batch;
  kept->layout = MakeSequenceLayout(batch);
  if (batch.num_tokens() == 0) return {};
  const at::Tensor output = RunLayers(batch, kept->layout, impl_->context.gpu().fp8_projections,
                                      save_layers ? &kept->layers : nullptr);
  HeadActivations& head = kept->head;
  head.temperature = temperature;
  head.rows = targets.ge(0).nonzero().squeeze(1);
  head.targets = targets.index_select(0, head.rows);
  if (head.rows.size(0) == 0) return {};
  head.input = GatherRows(impl_->context, output, head.rows);
  return RmsNormForward(impl_->context, head.input, impl_->final_norm, config_.rms_norm_eps,
                        &head.rstd);
}

ForwardResult Transformer::Forward(const PackedBatch& batch, const at::Tensor& targets,
                                   double temperature, Activations* saved) const {
  ForwardResult result = NoResult(batch);
  Activations local;
  Activations& kept = saved != nullptr ? *saved : local;
  const at::Tensor hidden = HiddenRows(batch, targets, temperature, &kept, saved != nullptr);
  if (!hidden.defined()) return result;
  const HeadOutput out = LmHeadForward(impl_->context, hidden, impl_->head, kept.head.targets,
                                       impl_->Head(temperature));
  kept.head.lse = out.lse;
  result.log_probs.index_copy_(0, kept.head.rows, out.log_probs.to(at::kFloat));
  result.entropy.index_copy_(0, kept.head.rows, out.entropy.to(at::kFloat));
  return result;
}

void Transformer::Backward(const Activations& saved, const at::Tensor& d_log_probs,
                           Gradients* gradients) const {
  const HeadActivations& head = saved.head;
  if (!head.rows.defined() || head.rows.size(0) == 0) return;
  TORCH_CHECK(saved.layers.size() == impl_->layers.size(), "Backward needs a saved Forward");
  at::Tensor d_hidden = LmHeadBackward(
      impl_->context, RecomputeRmsNorm(impl_->context, head.input, impl_->final_norm, head.rstd),
      impl_->head, head.targets, impl_->Head(head.temperature), head.lse,
      d_log_probs.index_select(0, head.rows), HeadWeight(*gradients));
  Activations shared = saved;  // copies the tensors' handles, not their contents
  BackwardLayers(
      &shared, std::move(d_hidden), {}, gradients, [](int64_t) {}, [](int64_t) {});
}

ForwardResult Transformer::ForwardBackward(const PackedBatch& batch, const at::Tensor& targets,
                                           double temperature, TokenLoss loss, GradientWrite sum,
                                           Gradients* gradients, ReadyHook ready_hook,
                                           OverwriteHook overwrite_hook) const {
  ForwardResult result = NoResult(batch);
  Activations kept;
  at::Tensor hidden = HiddenRows(batch, targets, temperature, &kept, true);
  const BackwardMode mode = {.replace = sum == GradientWrite::kOverwrite, .consume = true};
  TORCH_CHECK(mode.replace || !gradients->ring_buffer().is_ring(),
              "gradients that share memory can only be replaced");
  const std::vector<ParameterPart>& parts = gradients->layout().parts;
  if (!hidden.defined()) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      overwrite_hook(part->begin);
      if (mode.replace) gradients->flat().narrow(0, part->begin, part->size()).zero_();
      ready_hook(part->begin);
    }
    return result;
  }
  overwrite_hook(parts.back().begin);
  if (mode.replace) gradients->ZeroAccumulated(parts.back());
  const at::Tensor& rows = kept.head.rows;
  at::Tensor d_hidden = impl_->context.Empty(hidden.sizes(), hidden);
  const HeadOutput out = LmHeadForwardBackward(
      impl_->context, hidden, impl_->head, kept.head.targets, impl_->Head(temperature),
      [&](int64_t begin, int64_t end, const at::Tensor& log_probs, const at::Tensor& entropy) {
        return loss(rows.slice(0, begin, end), log_probs, entropy);
      },
      !mode.replace, d_hidden, HeadWeight(*gradients));
  result.log_probs.index_copy_(0, rows, out.log_probs.to(at::kFloat));
  result.entropy.index_copy_(0, rows, out.entropy.to(at::kFloat));
  hidden.reset();
  BackwardLayers(&kept, std::move(d_hidden), mode, gradients, ready_hook, overwrite_hook);
  return result;
}

void Transformer::BackwardLayers(Activations* saved, at::Tensor d_hidden, const BackwardMode& mode,
                                 Gradients* gradients, ReadyHook ready_hook,
                                 OverwriteHook overwrite_hook) const {
  const LayerContext& context = impl_->context;
  HeadActivations& head = saved->head;
  at::Tensor d_rows = context.Empty(head.input.sizes(), head.input).zero_();
  RmsNormBackward(context, head.input, impl_->final_norm, head.rstd, d_hidden, d_rows,
                  gradients->Get(kFinalNorm));
  d_hidden.reset();
  if (mode.consume) head.input.reset();
  const at::Tensor d = ScatterRows(context, d_rows, head.rows, saved->batch.num_tokens());
  d_rows.reset();
  const LayerEnvironment environment = {context,       config_,
                                        impl_->rotary, saved->batch.positions,
                                        saved->layout, context.gpu().fp8_projections};
  const std::vector<ParameterPart>& parts = gradients->layout().parts;
  const auto begin = [&](const ParameterPart& part) {
    overwrite_hook(part.begin);
    if (mode.replace) gradients->ZeroAccumulated(part);
  };
  ready_hook(parts.back().begin);
  for (int64_t i = config_.num_layers - 1; i >= 0; --i) {
    begin(parts[i + 1]);
    DecoderLayerParameters layer_gradients(*gradients, i);
    DecoderLayerBackward(environment, impl_->layers[i], mode, &saved->layers[i], d,
                         &layer_gradients);
    ready_hook(parts[i + 1].begin);
  }
  begin(parts[0]);
  EmbeddingBackward(context, saved->batch.tokens, d, gradients->Get(kEmbedding));
  ready_hook(0);
}

at::Tensor Transformer::Logits(const PackedBatch& batch) const {
  at::Tensor rstd;
  const at::Tensor output = RunLayers(batch, MakeSequenceLayout(batch), false, nullptr);
  const at::Tensor hidden =
      RmsNormForward(impl_->context, output, impl_->final_norm, config_.rms_norm_eps, &rstd);
  return at::linear(hidden, impl_->head).to(at::kFloat);
}

at::Tensor Transformer::Step(absl::Span<const SequenceSlice> slices, PagedKvCache* cache) const {
  const DecodeBatch rows(slices, config_, *cache);
  const DecodeModel model = impl_->ForDecoding(config_);
  // The kernels run chunks of rows through all layers in parallel, which leaves no common point for
  // an all-reduce.
  const bool kernels = model.ranks == nullptr && impl_->context.UseCpuKernels(impl_->embedding);
  return kernels ? DecodeWithCpuKernels(model, rows, cache) : DecodeWithAten(model, rows, cache);
}

void Transformer::ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> body) const {
  impl_->context.threads().ParallelFor(n, body);
}

int Transformer::num_threads() const { return impl_->context.threads().count(); }

}  // namespace tritonrl
