#include "trainer/objective/hrd_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/le.h>
#include <ATen/ops/max.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "trainer/objective/advantage.h"

namespace tritonrl {

namespace {

// The limit keeps ratios finite: e^20 is far beyond any clip, and inf * 0 would be NaN.
constexpr double kMaxLogRatio = 20;

at::Tensor Sum(const at::Tensor& values) { return at::sum(values, at::kDouble); }

// e^(a - b); 1 where the mask is 0.
at::Tensor RatioOf(const at::Tensor& a, const at::Tensor& b, const at::Tensor& mask) {
  return at::exp(at::clamp((a - b) * mask, -kMaxLogRatio, kMaxLogRatio));
}

}  // namespace

HrdTokens SelectRows(const HrdTokens& tokens, const at::Tensor& rows) {
  const auto of_rows = [&](const at::Tensor& t) {
    return t.defined() ? t.index_select(0, rows) : at::Tensor();
  };
  return {.old_log_probs = of_rows(tokens.old_log_probs),
          .advantage = of_rows(tokens.advantage),
          .weight = of_rows(tokens.weight),
          .mask = of_rows(tokens.mask),
          .reference_log_probs = of_rows(tokens.reference_log_probs),
          .kl_weight = of_rows(tokens.kl_weight),
          .current = of_rows(tokens.current),
          .proximal_log_probs = of_rows(tokens.proximal_log_probs)};
}

HrdResult HrdLoss(const at::Tensor& log_probs, const at::Tensor& entropy, const HrdTokens& tokens,
                  const HrdSettings& settings) {
  const double epsilon = settings.epsilon, cap = settings.importance_sampling_cap;
  at::Tensor proximal = tokens.old_log_probs, weight = tokens.weight, importance = tokens.mask;
  if (cap > 0) {
    proximal = tokens.proximal_log_probs.defined() ? tokens.proximal_log_probs : log_probs;
    importance = at::clamp_max(RatioOf(proximal, tokens.old_log_probs, tokens.mask), cap);
    weight = weight * importance;
  }
  const at::Tensor ratio = RatioOf(log_probs, proximal, tokens.mask);
  const at::Tensor unclipped = tokens.advantage * ratio;
  const at::Tensor clipped = tokens.advantage * at::clamp(ratio, 1 - epsilon, 1 + epsilon);
  const at::Tensor active = unclipped.le(clipped).to(at::kFloat);

  HrdResult result;
  result.d_log_probs = unclipped * active * weight * -1;
  at::Tensor loss = -Sum(at::minimum(unclipped, clipped) * weight);
  at::Tensor kl_sum = at::zeros({}, loss.options());
  if (settings.kl_coefficient > 0) {
    const at::Tensor log_r = at::clamp((tokens.reference_log_probs - log_probs) * tokens.mask,
                                       -kMaxLogRatio, kMaxLogRatio);
    const at::Tensor r = at::exp(log_r);
    const at::Tensor kl = r - log_r - 1;
    kl_sum = Sum(kl);
    loss = loss + Sum(kl * tokens.kl_weight) * settings.kl_coefficient;
    result.d_log_probs = result.d_log_probs + (1 - r) * tokens.kl_weight * settings.kl_coefficient;
  }
  const at::Tensor counted = tokens.mask * tokens.weight.ne(0);
  const at::Tensor truncated =
      cap > 0 ? Sum(importance.ge(cap) * tokens.mask) : at::zeros({}, loss.options());
  const at::Tensor difference = (log_probs - tokens.old_log_probs) * tokens.current;
  result.statistics =
      at::stack({loss, Sum(tokens.mask), Sum((1 - active) * counted), Sum(ratio * tokens.mask),
                 Sum(entropy * tokens.mask), kl_sum, Sum(importance * tokens.mask), truncated,
                 difference.abs().max().to(at::kDouble)});
  return result;
}

bool NeedsProximalLogProbs(const ObjectiveConfig& objective) {
  return objective.importance_sampling_cap() > 0 &&
         (objective.epochs_per_batch() > 1 || objective.optimizer_steps_per_epoch() > 1);
}

HrdSettings HrdSettingsFor(const ObjectiveConfig& objective) {
  return {.epsilon = objective.epsilon(),
          .kl_coefficient = objective.kl_coefficient(),
          .importance_sampling_cap = objective.importance_sampling_cap()};
}

HrdMicroBatch BuildHrdMicroBatch(const ObjectiveConfig& objective,
                                 const std::vector<const RlSample*>& samples,
                                 const std::vector<double>& group_weights, at::Device device) {
  std::vector<std::vector<int32_t>> sequences;
  std::vector<int64_t> first_target;
  for (const RlSample* sample : samples) {
    std::vector<int32_t>& sequence = sequences.emplace_back(sample->prompt);
    sequence.insert(sequence.end(), sample->response.begin(), sample->response.end());
    first_target.push_back(static_cast<int64_t>(sample->prompt.size()));
  }
  HrdMicroBatch micro;
  micro.batch = PackSequences(sequences, at::kCPU);
  micro.targets = NextTokenTargets(micro.batch, first_target);

  const bool with_kl = objective.kl_coefficient() > 0;
  const bool with_proximal = NeedsProximalLogProbs(objective);
  const int64_t rows = micro.batch.num_tokens();
  at::Tensor host = at::zeros({8, rows}, at::kFloat);
  float* old_log_probs = host.mutable_data_ptr<float>();
  float* advantage = old_log_probs + rows;
  float* weight = advantage + rows;
  float* mask = weight + rows;
  float* reference = mask + rows;
  float* kl_weight = reference + rows;
  float* current = kl_weight + rows;
  float* proximal = current + rows;
  const PlanCode class_weights = ClassWeights(objective);
  for (size_t i = 0; i < samples.size(); ++i) {
    const RlSample& s = *samples[i];
    const int length = static_cast<int>(s.response.size());
    const double per_token = group_weights[i] / length;
    // Row of the token before the first response token.
    const int64_t first = micro.batch.offsets[i] + first_target[i] - 1;
    for (int t = 0; t < length; ++t) {
      const bool plan = t < s.plan_end;
      const int64_t row = first + t;
      old_log_probs[row] = s.old_log_probs[t];
      advantage[row] = static_cast<float>(plan ? s.advantage_plan : s.advantage_code);
      weight[row] =
          static_cast<float>(per_token * (plan ? class_weights.plan : class_weights.code));
      mask[row] = 1;
      if (with_kl) reference[row] = s.reference_log_probs[t];
      kl_weight[row] = static_cast<float>(per_token);
      current[row] = t >= s.stale_end ? 1.0f : 0.0f;
      if (with_proximal) proximal[row] = s.proximal_log_probs[t];
    }
  }
  const at::Tensor all = host.to(device);
  micro.tokens = {.old_log_probs = all[0],
                  .advantage = all[1],
                  .weight = all[2],
                  .mask = all[3],
                  .reference_log_probs = with_kl ? all[4] : at::Tensor(),
                  .kl_weight = with_kl ? all[5] : at::Tensor(),
                  .current = all[6],
                  .proximal_log_probs = with_proximal ? all[7] : at::Tensor()};
  micro.batch.tokens = micro.batch.tokens.to(device);
  micro.batch.positions = micro.batch.positions.to(device);
  micro.targets = micro.targets.to(device);
  return micro;
}

}  // namespace tritonrl
