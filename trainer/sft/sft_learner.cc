#include "trainer/sft/sft_learner.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/sum.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/torch_runtime.h"
#include "trainer/optimizer/nonfinite_gradient.h"

namespace tritonrl {

namespace {

constexpr double kTemperature = 1.0;

// The inputs of the gradient, for a dump.
nlohmann::json DescribeBatch(const SftBatch& batch) {
  nlohmann::json all = nlohmann::json::array();
  for (const SftMicroBatch& micro : batch.micro_batches) {
    const auto numbers = [](const at::Tensor& tensor) {
      const at::Tensor host = tensor.to(at::kCPU, at::kLong).contiguous();
      const int64_t* const data = host.const_data_ptr<int64_t>();
      return std::vector<int64_t>(data, data + host.numel());
    };
    all.push_back({{"tokens", numbers(micro.batch.tokens)},
                   {"positions", numbers(micro.batch.positions)},
                   {"targets", numbers(micro.targets)}});
  }
  return all;
}

}  // namespace

SftLearner::SftLearner(const OptimizerConfig& optimizer_config, int64_t total_steps,
                       const Policy* policy, AdamW* optimizer, ProcessGroup* ranks,
                       std::string nonfinite_gradients)
    : config_(optimizer_config),
      total_steps_(total_steps),
      policy_(policy),
      optimizer_(optimizer),
      ranks_(ranks),
      nonfinite_gradients_(std::move(nonfinite_gradients)),
      passes_(policy->transformer.get(), optimizer, ranks) {}

absl::StatusOr<double> SftLearner::Pass(const SftBatch& batch, double scale) {
  const at::Device device = policy_->device();
  const auto loss_of_rows = [&](const at::Tensor&, const at::Tensor& log_probs, const at::Tensor&) {
    return at::full_like(log_probs, scale);
  };
  const bool learn = scale != 0;
  if (learn) {
    RETURN_IF_ERROR(passes_.Begin(static_cast<int64_t>(batch.micro_batches.size())));
  }
  at::Tensor log_prob_sum;
  for (const SftMicroBatch& micro : batch.micro_batches) {
    PackedBatch packed = micro.batch;
    packed.tokens = packed.tokens.to(device);
    packed.positions = packed.positions.to(device);
    const at::Tensor targets = micro.targets.to(device);
    const ForwardResult forward =
        learn ? passes_.Pass(packed, targets, kTemperature, loss_of_rows)
              : policy_->transformer->Forward(packed, targets, kTemperature, nullptr);
    const at::Tensor sum = at::sum(forward.log_probs, at::kDouble);
    log_prob_sum = log_prob_sum.defined() ? log_prob_sum.add_(sum) : sum;
  }
  if (learn) passes_.End();
  return log_prob_sum.defined() ? -log_prob_sum.item<double>() : 0.0;
}

absl::StatusOr<SftStepStats> SftLearner::Step(const SftBatch& batch, int64_t step) {
  SftStepStats stats;
  RETURN_IF_ERROR(CatchTorch(absl::StrCat("step ", step), "set micro_batch_tokens lower",
                             [&] { return StepOn(batch, step, &stats); }));
  return stats;
}

absl::Status SftLearner::StepOn(const SftBatch& batch, int64_t step, SftStepStats* stats) {
  double counts[3] = {static_cast<double>(batch.tokens), static_cast<double>(batch.response_tokens),
                      static_cast<double>(batch.dropped)};
  RETURN_IF_ERROR(ranks_->AllReduce(counts));
  stats->tokens = static_cast<int64_t>(counts[0]);
  stats->response_tokens = static_cast<int64_t>(counts[1]);
  stats->dropped = static_cast<int64_t>(counts[2]);
  stats->learning_rate = LearningRate(config_, step, total_steps_);
  if (stats->response_tokens == 0) {
    stats->skipped = true;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(double loss, Pass(batch, -1.0 / counts[1]));
  RETURN_IF_ERROR(ranks_->AllReduce(std::span<double>(&loss, 1)));
  ASSIGN_OR_RETURN(const UpdateResult result,
                   optimizer_->Step(stats->learning_rate, passes_.gradients()));
  stats->loss = loss / counts[1];
  stats->gradient_norm = result.gradient_norm;
  stats->skipped = result.skipped;
  if (result.skipped && !nonfinite_gradients_.empty()) {
    stats->nonfinite_gradient = DumpNonFiniteGradient(nonfinite_gradients_, step, *optimizer_,
                                                      *passes_.gradients(), DescribeBatch(batch));
  }
  return CountSkippedUpdate(config_, result, &consecutive_skipped_);
}

absl::StatusOr<double> SftLearner::EvaluateLoss(const SftBatch& batch) {
  double sums[2] = {0, static_cast<double>(batch.response_tokens)};
  RETURN_IF_ERROR(CatchTorch("evaluation", "set micro_batch_tokens lower", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(sums[0], Pass(batch, 0.0));
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ranks_->AllReduce(sums));
  return sums[1] > 0 ? sums[0] / sums[1] : 0.0;
}

}  // namespace tritonrl
