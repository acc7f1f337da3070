// Keeps TensorOperators.h from including every operator.
#define AT_PER_OPERATOR_HEADERS

#include "trainer/hrd_loss.h"

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

namespace tritonrl {
namespace {

// Ratios are kept finite: e^20 is far beyond any clip, and inf * 0 would be NaN.
constexpr double kMaxLogRatio = 20;

at::Tensor Sum(const at::Tensor& values) { return at::sum(values, at::kDouble); }

// e^(a - b), 1 where the mask is 0.
at::Tensor RatioOf(const at::Tensor& a, const at::Tensor& b, const at::Tensor& mask) {
  return at::exp(at::clamp((a - b) * mask, -kMaxLogRatio, kMaxLogRatio));
}

}  // namespace

HrdTokens TokensOfRows(const HrdTokens& tokens, const at::Tensor& rows) {
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
  const double epsilon = settings.epsilon, cap = settings.importance_cap;
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

}  // namespace tritonrl
