#include "trainer/optimizer/adamw.h"

#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "trainer/optimizer/adamw_kernel.h"

namespace tritonrl {

int64_t WarmupSteps(const OptimizerConfig& config, int64_t total_steps) {
  if (config.warmup_share() == 0) return config.warmup_steps();
  return static_cast<int64_t>(config.warmup_share() * static_cast<double>(total_steps));
}

double LearningRate(const OptimizerConfig& config, int64_t step, int64_t total_steps) {
  const int64_t warmup = WarmupSteps(config, total_steps);
  if (step < warmup) {
    return config.learning_rate() * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  if (config.schedule() == CONSTANT) return config.learning_rate();
  const int64_t span = std::max<int64_t>(1, total_steps - 1 - warmup);
  const double progress =
      std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(span));
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return config.learning_rate() *
         (config.final_fraction() + (1 - config.final_fraction()) * cosine);
}

absl::Status CountSkippedUpdate(const OptimizerConfig& config, const UpdateResult& result,
                                int* consecutive_skipped) {
  *consecutive_skipped = result.skipped ? *consecutive_skipped + 1 : 0;
  if (*consecutive_skipped < config.max_consecutive_skipped()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "the gradient was not finite ", *consecutive_skipped,
      " times in a row, so training stops; the weights are those of the last good update. A lower ",
      "optimizer.learning_rate usually helps"));
}

AdamW::AdamW(const OptimizerConfig& config, std::shared_ptr<Weights> weights, ProcessGroup* ranks,
             int64_t bucket_elements)
    : config_(config),
      weights_(std::move(weights)),
      ranks_(ranks),
      plan_(weights_->layout().flat_size, ranks == nullptr ? 1 : ranks->size(), bucket_elements),
      unreduced_(plan_.buckets()) {
  const at::Tensor& flat = weights_->flat();
  master_ = alone() && flat.scalar_type() == at::kFloat ? flat : LocalShard(flat).to(at::kFloat);
  first_moment_ = at::zeros_like(master_);
  second_moment_ = at::zeros_like(master_);
  if (!alone()) gradient_ = at::empty_like(master_);
  if (config_.weight_decay() > 0) MarkDecay();
}

int64_t AdamW::StateBytes(at::ScalarType weights, int ranks, int zero_stage) {
  const bool alone = ranks == 1;
  return 8 + (alone && weights == at::kFloat ? 0 : 4) + (alone || zero_stage == 2 ? 0 : 4);
}

// Parameters and the shards of ranks begin at multiples of kDecayBlock, so a block is never mixed.
void AdamW::MarkDecay() {
  const int64_t marks = (master_.numel() + kDecayBlock - 1) / kDecayBlock;
  decayed_ = at::zeros({marks}, master_.options().dtype(at::kByte));
  for (const ParameterInfo& info : weights_->layout().parameters) {
    if (!info.decay()) continue;
    const FlatRange whole{info.offset, info.offset + info.size};
    for (const FlatRange& local : plan_.LocalRanges(whole, rank())) {
      const int64_t blocks = (local.size() + kDecayBlock - 1) / kDecayBlock;
      decayed_.narrow(0, local.begin / kDecayBlock, blocks).fill_(1);
    }
  }
}

at::Tensor AdamW::LocalShard(const at::Tensor& flat) const {
  if (alone()) return flat;
  std::vector<at::Tensor> shards;
  for (int64_t bucket = 0; bucket < plan_.buckets(); ++bucket) {
    const FlatRange shard = plan_.Shard(bucket, rank());
    shards.push_back(flat.narrow(0, shard.begin, shard.size()));
  }
  return at::cat(shards);
}

bool AdamW::master_is_weights() const { return weights_->dtype() == at::kFloat; }

void AdamW::ResetMasterFromWeights() {
  if (!master_.is_same(weights_->flat())) master_.copy_(LocalShard(weights_->flat()));
}

absl::StatusOr<double> AdamW::Norm(const at::Tensor& local) const {
  const double norm = at::linalg_vector_norm(local, 2).item<float>();
  if (alone()) return norm;
  double squares = norm * norm;
  RETURN_IF_ERROR(ranks_->AllReduce(std::span<double>(&squares, 1)));
  return std::sqrt(squares);
}

GradientRingBuffer AdamW::ring_buffer() const {
  if (!sharded()) return {.own = plan_.flat_size()};
  return GradientRingBufferFor(weights_->layout(), weights_->config().tie_word_embeddings,
                               plan_.bucket_elements(), weights_->device());
}

void AdamW::StartReduceFrom(int64_t offset, const Gradients& gradients) {
  const bool add = passes_ > 0;
  for (; unreduced_ > 0 && plan_.Bucket(unreduced_ - 1).begin >= offset; --unreduced_) {
    if (reduce_status_.ok()) {
      reduce_status_ = ranks_->collectives()->ReduceScatter(plan_, unreduced_ - 1, gradients.flat(),
                                                            gradient_, add);
    }
  }
}

void AdamW::OnGradientsReady(int64_t offset, const Gradients& gradients) {
  if (alone()) return;
  StartReduceFrom(offset, gradients);
  if (!sharded() || offset > 0) return;
  unreduced_ = plan_.buckets();
  ++passes_;
}

void AdamW::OnGradientOverwrite(int64_t offset, const Gradients& gradients) {
  if (!sharded() || !reduce_status_.ok()) return;
  // At the beginning of a pass any bucket of the previous pass may still be read by its reduction.
  if (unreduced_ == plan_.buckets() && passes_ > 0) {
    reduce_status_ = ranks_->collectives()->WaitUntilRead(0);
  }
  const int64_t overwritten = gradients.ring_buffer().FirstOverwritten(offset);
  if (!gradients.ring_buffer().is_ring() || overwritten >= plan_.flat_size()) return;
  const int64_t bucket = overwritten / plan_.bucket_elements();
  TORCH_CHECK(bucket >= unreduced_, "gradients are overwritten before their reduce-scatter");
  if (reduce_status_.ok()) reduce_status_ = ranks_->collectives()->WaitUntilRead(bucket);
}

absl::Status AdamW::FinishReduce(const Gradients& gradients) {
  if (sharded()) {
    if (unreduced_ != plan_.buckets() || std::exchange(passes_, 0) == 0) {
      return absl::InternalError("an update without a whole gradient");
    }
  } else {
    StartReduceFrom(0, gradients);
    unreduced_ = plan_.buckets();
  }
  RETURN_IF_ERROR(std::exchange(reduce_status_, absl::OkStatus()));
  return ranks_->collectives()->Wait("the gradient reduce-scatter");
}

absl::StatusOr<UpdateResult> AdamW::Step(double learning_rate, Gradients* gradients) {
  if (!alone()) RETURN_IF_ERROR(FinishReduce(*gradients));
  const at::Tensor& g = alone() ? gradients->flat() : gradient_;
  UpdateResult result;
  ASSIGN_OR_RETURN(result.gradient_norm, Norm(g));
  if (!std::isfinite(result.gradient_norm)) {
    result.skipped = true;
    return result;
  }
  double scale = 1;
  if (config_.clip_norm() > 0 && result.gradient_norm > config_.clip_norm()) {
    scale = config_.clip_norm() / result.gradient_norm;
  }
  ++updates_;
  const at::Tensor& flat = weights_->flat();
  for (int64_t bucket = 0; bucket < plan_.buckets(); ++bucket) {
    UpdateShard(learning_rate, scale, bucket, g);
    if (!alone()) RETURN_IF_ERROR(ranks_->collectives()->AllGather(plan_, bucket, flat));
  }
  if (!alone()) RETURN_IF_ERROR(ranks_->collectives()->Wait("the weight all-gather"));
  return result;
}

std::vector<at::Tensor> AdamW::ReducedGradientShards(const ParameterInfo& info) const {
  std::vector<at::Tensor> parts;
  const FlatRange whole{info.offset, info.offset + info.size};
  for (const FlatRange& local : plan_.LocalRanges(whole, rank())) {
    parts.push_back(gradient_.narrow(0, local.begin, local.size()));
  }
  return parts;
}

void AdamW::UpdateShard(double learning_rate, double scale, int64_t bucket, const at::Tensor& g) {
  const FlatRange range = plan_.Shard(bucket, rank());
  if (range.size() == 0) return;
  const int64_t offset = plan_.LocalOffset(bucket, rank());
  const auto part = [&](const at::Tensor& x) { return x.narrow(0, offset, range.size()); };
  ShardSlices shard{.gradient = part(g),
                    .master = part(master_),
                    .first_moment = part(first_moment_),
                    .second_moment = part(second_moment_),
                    .weights = weights_->flat().narrow(0, range.begin, range.size())};
  if (decayed_.defined()) {
    const int64_t marks = (range.size() + kDecayBlock - 1) / kDecayBlock;
    shard.decayed = decayed_.narrow(0, offset / kDecayBlock, marks);
  }
  if (master_.is_cuda()) {
    UpdateOnGpu(learning_rate, scale, shard);
  } else {
    UpdateWithTorch(learning_rate, scale, shard);
  }
}

void AdamW::UpdateWithTorch(double learning_rate, double scale, const ShardSlices& p) {
  const double t = static_cast<double>(updates_);
  const double correction1 = 1 - std::pow(config_.beta1(), t);
  const double correction2 = 1 - std::pow(config_.beta2(), t);
  if (scale != 1) p.gradient.mul_(scale);
  p.first_moment.mul_(config_.beta1()).add_(p.gradient, 1 - config_.beta1());
  p.second_moment.mul_(config_.beta2()).addcmul_(p.gradient, p.gradient, 1 - config_.beta2());
  if (p.decayed.defined()) {
    const at::Tensor mask =
        at::repeat_interleave(p.decayed, kDecayBlock).narrow(0, 0, p.master.numel()).to(at::kFloat);
    p.master.addcmul_(p.master, mask, -learning_rate * config_.weight_decay());
  }
  // sqrt(v / c2) + eps. The padding between parameters is zero and stays zero.
  const at::Tensor denominator =
      p.second_moment.sqrt().mul_(1 / std::sqrt(correction2)).add_(config_.adam_epsilon());
  p.master.addcdiv_(p.first_moment, denominator, -learning_rate / correction1);
  if (!p.weights.is_alias_of(p.master)) p.weights.copy_(p.master);
}

void AdamW::UpdateOnGpu(double learning_rate, double scale, const ShardSlices& p) {
  const double t = static_cast<double>(updates_);
  const AdamWScalars scalars{
      .gradient_scale = static_cast<float>(scale),
      .beta1 = static_cast<float>(config_.beta1()),
      .beta2 = static_cast<float>(config_.beta2()),
      .step = static_cast<float>(learning_rate / (1 - std::pow(config_.beta1(), t))),
      .inverse_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(config_.beta2(), t))),
      .epsilon = static_cast<float>(config_.adam_epsilon()),
      .decay = static_cast<float>(learning_rate * config_.weight_decay())};
  AdamWBuffers buffers{
      .elements = p.master.numel(),
      .gradient = p.gradient.const_data_ptr<float>(),
      .decayed = p.decayed.defined() ? p.decayed.const_data_ptr<uint8_t>() : nullptr,
      .master = p.master.mutable_data_ptr<float>(),
      .first_moment = p.first_moment.mutable_data_ptr<float>(),
      .second_moment = p.second_moment.mutable_data_ptr<float>(),
      .rounded_is_bf16 = p.weights.scalar_type() == at::kBFloat16};
  const bool is_float = p.weights.scalar_type() == at::kFloat;
  if ((buffers.rounded_is_bf16 || is_float) && !p.weights.is_alias_of(p.master)) {
    buffers.rounded = p.weights.mutable_data_ptr();
  }
  TORCH_CHECK(buffers.elements % kDecayBlock == 0, "a shard of ", buffers.elements, " elements");
  const c10::cuda::CUDAGuard guard(p.master.device());
  LaunchAdamW(scalars, buffers, c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  if (!buffers.rounded_is_bf16 && !is_float) p.weights.copy_(p.master);
}

}  // namespace tritonrl
