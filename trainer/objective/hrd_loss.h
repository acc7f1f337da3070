#ifndef TRITONRL_TRAINER_OBJECTIVE_HRD_LOSS_H_
#define TRITONRL_TRAINER_OBJECTIVE_HRD_LOSS_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "model/layers/packed_batch.h"
#include "trainer/config/config.pb.h"
#include "trainer/objective/advantage.h"

// The clipped objective of GRPO with hierarchical reward decomposition, and its derivative.
//
// For one token t of response o with class c (plan or code), ratio s = pi(t) / pi_old(t) and the
// advantage A of its class, the objective to maximize is the sum over tokens of
//   w * min(A s, A clip(s, 1 - epsilon, 1 + epsilon)),   w = class weight / (|o| * G * prompts)
// with class weights (alpha, 1). Its derivative with respect to log pi(t) is w A s if the unclipped
// term is the smaller one (or both are equal), else 0. The loss is minus the objective.
//
// With a KL coefficient k > 0 the loss also has the term
//   k * w_kl * (r - log r - 1),   r = pi_ref(t) / pi(t),   w_kl = 1 / (|o| * G * prompts),
// the unbiased, non-negative estimate of KL(pi, pi_ref) from samples of pi (Schulman,
// "Approximating KL divergence"). Its derivative is k * w_kl * (1 - r).
//
// With an importance cap c > 0 two policies take the place of pi_old. pi_old is still the policy
// that drew the token (older weights, or an engine that rounds differently). The proximal policy
// pi_prox is the learner's before its first update on these samples; the ratio s = pi / pi_prox is
// clipped around it. w then also has the factor min(pi_prox / pi_old, c), which is treated as a
// constant (the decoupled objective of Hilton et al., "Batch size-invariance for policy
// optimization", 2022, with the truncated importance weights of Espeholt et al., "IMPALA", 2018).

namespace tritonrl {

// The loss's inputs for a packed micro-batch of T rows, or for some of its rows. All tensors are
// [T] fp32 on the device of the log-probabilities; rows without a response token are zero.
struct HrdTokens {
  at::Tensor old_log_probs;
  at::Tensor advantage;            // A of the token's class
  at::Tensor weight;               // w
  at::Tensor mask;                 // 1 for response tokens
  at::Tensor reference_log_probs;  // undefined without KL penalty
  at::Tensor kl_weight;            // w_kl; undefined without KL penalty
  at::Tensor current;              // 1 for response tokens that were drawn from the newest weights
  // log pi_prox, with an importance cap. Undefined: pi_prox is pi, as in the only update on a
  // batch.
  at::Tensor proximal_log_probs;
};

struct HrdSettings {
  double epsilon = 0.2;
  double kl_coefficient = 0;
  double importance_sampling_cap = 0;  // c; 0: none
};

// Selects the rows `rows` ([R] int64, indices into `tokens`).
HrdTokens SelectRows(const HrdTokens& tokens, const at::Tensor& rows);

// Sums over response tokens, kept on the device so that the host does not wait for them. Statistics
// of parts of a micro-batch add up to those of the whole (the last one: by maximum).
enum HrdStatistic {
  kLossSum = 0,     // loss (already weighted and normalized)
  kTokenCount,      // response tokens
  kClippedCount,    // tokens whose gradient the clip removed
  kRatioSum,        // s
  kEntropySum,      // entropy in nats
  kKlSum,           // r - log r - 1 (0 without KL penalty)
  kImportanceSum,   // min(pi_prox / pi_old, c); 1 each without a cap
  kTruncatedCount,  // tokens whose importance weight is c
  kMaxLogProbDiff,  // largest |log pi - log pi_old| where `current`: a maximum, not a sum
  kNumHrdStatistics,
};

struct HrdResult {
  at::Tensor d_log_probs;  // [T] fp32: d loss / d log pi
  at::Tensor statistics;   // [kNumHrdStatistics] fp64
};

// Computes the loss of `tokens`. log_probs, entropy: [T] fp32, T > 0, from Transformer::Forward or,
// for some rows at a time, from Transformer::ForwardBackward. d_log_probs of a row depends on that
// row alone.
HrdResult HrdLoss(const at::Tensor& log_probs, const at::Tensor& entropy, const HrdTokens& tokens,
                  const HrdSettings& settings);

// Whether samples need proximal_log_probs: an importance cap and several updates per batch.
bool NeedsProximalLogProbs(const ObjectiveConfig& objective);

HrdSettings HrdSettingsFor(const ObjectiveConfig& objective);

struct HrdMicroBatch {
  PackedBatch batch;   // prompt + response of each sample
  at::Tensor targets;  // [T] int64: the response token that follows, -1 elsewhere
  HrdTokens tokens;    // row t belongs to the token after t, as in `targets`
};

// Packs `samples` into one micro-batch on `device`. group_weights[i] = 1 / (G * prompts) for sample
// i; the function applies 1/|o| and the class weights in addition.
HrdMicroBatch BuildHrdMicroBatch(const ObjectiveConfig& objective,
                                 const std::vector<const RlSample*>& samples,
                                 const std::vector<double>& group_weights, at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OBJECTIVE_HRD_LOSS_H_
