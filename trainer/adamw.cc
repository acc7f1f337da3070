#include "trainer/adamw.h"

#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {

double LearningRate(const OptimizerConfig& config, int64_t step, int64_t total_steps) {
  const int64_t warmup = config.warmup_steps();
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

absl::Status CountSkipped(const OptimizerConfig& config, const UpdateResult& result,
                          int* skipped_in_a_row) {
  *skipped_in_a_row = result.skipped ? *skipped_in_a_row + 1 : 0;
  if (*skipped_in_a_row < config.max_skipped_in_a_row()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "the gradient was not finite ", *skipped_in_a_row,
      " times in a row, so training stops; the weights are those of the last good update. A lower ",
      "optimizer.learning_rate usually helps"));
}

AdamW::AdamW(const OptimizerConfig& config, std::shared_ptr<Weights> weights, DataParallel* ranks)
    : config_(config),
      weights_(std::move(weights)),
      ranks_(ranks),
      plan_(weights_->layout().flat_size, ranks == nullptr ? 1 : ranks->size()) {
  const at::Tensor& flat = weights_->flat();
  master_ = alone() && flat.scalar_type() == at::kFloat ? flat : LocalPart(flat).to(at::kFloat);
  first_moment_ = at::zeros_like(master_);
  second_moment_ = at::zeros_like(master_);
  if (!alone()) gradient_ = at::empty_like(master_);
  if (config_.weight_decay() > 0) MakeDecayMask();
}

void AdamW::MakeDecayMask() {
  decay_mask_ = at::zeros_like(master_);
  for (const ParameterInfo& info : weights_->layout().parameters) {
    if (!info.decay()) continue;
    const int64_t end = info.offset + info.size;
    for (int64_t bucket = info.offset / plan_.bucket_elements();
         bucket < plan_.buckets() && plan_.Bucket(bucket).begin < end; ++bucket) {
      const FlatRange piece = plan_.Piece(bucket, rank());
      const int64_t from = std::max(piece.begin, info.offset), to = std::min(piece.end, end);
      if (from >= to) continue;
      const int64_t local = plan_.LocalOffset(bucket, rank()) + from - piece.begin;
      decay_mask_.narrow(0, local, to - from).fill_(1.0);
    }
  }
}

at::Tensor AdamW::LocalPart(const at::Tensor& flat) const {
  if (alone()) return flat;
  std::vector<at::Tensor> pieces;
  for (int64_t bucket = 0; bucket < plan_.buckets(); ++bucket) {
    const FlatRange piece = plan_.Piece(bucket, rank());
    pieces.push_back(flat.narrow(0, piece.begin, piece.size()));
  }
  return at::cat(pieces);
}

bool AdamW::master_is_weights() const { return weights_->dtype() == at::kFloat; }

void AdamW::TakeMaster() {
  if (!master_.is_same(weights_->flat())) master_.copy_(LocalPart(weights_->flat()));
}

absl::StatusOr<double> AdamW::Norm(const at::Tensor& local) const {
  const double norm = at::linalg_vector_norm(local, 2).item<float>();
  if (alone()) return norm;
  double squares = norm * norm;
  RETURN_IF_ERROR(ranks_->Sum(std::span<double>(&squares, 1)));
  return std::sqrt(squares);
}

absl::StatusOr<UpdateResult> AdamW::Step(double learning_rate, Gradients* gradients) {
  if (!alone()) RETURN_IF_ERROR(ranks_->ReduceToShards(plan_, gradients->flat(), gradient_));
  const at::Tensor& g = alone() ? gradients->flat() : gradient_;
  UpdateResult result;
  ASSIGN_OR_RETURN(result.gradient_norm, Norm(g));
  if (!std::isfinite(result.gradient_norm)) {
    result.skipped = true;
    return result;
  }
  if (config_.clip_norm() > 0 && result.gradient_norm > config_.clip_norm()) {
    g.mul_(config_.clip_norm() / result.gradient_norm);
  }
  Update(learning_rate, g);
  RETURN_IF_ERROR(SyncWeights());
  return result;
}

void AdamW::Update(double learning_rate, const at::Tensor& g) {
  ++updates_;
  const double t = static_cast<double>(updates_);
  const double correction1 = 1 - std::pow(config_.beta1(), t);
  const double correction2 = 1 - std::pow(config_.beta2(), t);
  first_moment_.mul_(config_.beta1()).add_(g, 1 - config_.beta1());
  second_moment_.mul_(config_.beta2()).addcmul_(g, g, 1 - config_.beta2());
  if (decay_mask_.defined()) {
    master_.addcmul_(master_, decay_mask_, -learning_rate * config_.weight_decay());
  }
  // sqrt(v / c2) + eps; the gaps of the buffer hold zeros throughout and stay zero.
  const at::Tensor denominator =
      second_moment_.sqrt().mul_(1 / std::sqrt(correction2)).add_(config_.adam_epsilon());
  master_.addcdiv_(first_moment_, denominator, -learning_rate / correction1);
}

absl::Status AdamW::SyncWeights() {
  at::Tensor flat = weights_->flat();
  if (flat.is_same(master_)) return absl::OkStatus();
  if (!alone()) return ranks_->GatherShards(plan_, master_.to(flat.scalar_type()), flat);
  flat.copy_(master_);
  return absl::OkStatus();
}

}  // namespace tritonrl
