#include "trainer/learner/learner.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "model/torch_runtime.h"
#include "trainer/objective/advantage.h"
#include "trainer/objective/packing.h"
#include "trainer/optimizer/nonfinite_gradient.h"

namespace tritonrl {

// Accumulates the statistics of a call of Learn. Device tensors are collected and read once, at the
// end.
struct Learner::Totals {
  std::vector<at::Tensor> statistics;  // [kNumHrdStatistics] of each call of HrdLoss
  std::vector<bool> before_update;     // whether that call was before the batch's first update
  bool updated = false;
  int64_t tokens = 0;  // prompt and response tokens passed through the model

  void Add(const HrdResult& loss) {
    statistics.push_back(loss.statistics);
    before_update.push_back(!updated);
  }
};

// This rank's share of an update.
struct Learner::Part {
  std::vector<WeightedSample> items;  // samples with a gradient
  const RlSample* idle = nullptr;     // a counted sample without gradient
  double groups = 0;                  // groups with counted samples
  double skipped = 0;                 // counted samples without gradient
};

namespace {

// The inputs of the gradient, for a dump.
nlohmann::json DescribeItems(const std::vector<WeightedSample>& items) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [sample, group_weight] : items) {
    all.push_back({{"prompt", sample.prompt},
                   {"response", sample.response},
                   {"old_log_probs", sample.old_log_probs},
                   {"reference_log_probs", sample.reference_log_probs},
                   {"proximal_log_probs", sample.proximal_log_probs},
                   {"plan_end", sample.plan_end},
                   {"advantage_plan", sample.advantage_plan},
                   {"advantage_code", sample.advantage_code},
                   {"group_weight", group_weight}});
  }
  return all;
}

}  // namespace

absl::Status ValidateRlBatch(const RlBatch& batch, const ObjectiveConfig& objective) {
  const bool with_reference = objective.kl_coefficient() > 0;
  for (const RlGroup& group : batch) {
    for (size_t j = 0; j < group.samples.size(); ++j) {
      const RlSample& s = group.samples[j];
      if (!s.counted) continue;
      const auto fail = [&](const std::string& what) {
        return absl::InvalidArgumentError(
            absl::StrCat("sample ", j, " of task ", group.task_id, ": ", what));
      };
      if (s.prompt.empty()) return fail("the prompt has no token");
      if (s.response.empty()) return fail("the response has no token");
      if (s.old_log_probs.size() != s.response.size()) {
        return fail(absl::StrCat(s.response.size(), " response tokens but ", s.old_log_probs.size(),
                                 " log-probabilities"));
      }
      if (with_reference && s.reference_log_probs.size() != s.response.size()) {
        return fail(absl::StrCat(s.response.size(), " response tokens but ",
                                 s.reference_log_probs.size(), " reference log-probabilities"));
      }
      if (NeedsProximalLogProbs(objective) && s.proximal_log_probs.size() != s.response.size()) {
        return fail(absl::StrCat(s.response.size(), " response tokens but ",
                                 s.proximal_log_probs.size(), " proximal log-probabilities"));
      }
      if (s.plan_end < 0 || s.plan_end > static_cast<int>(s.response.size())) {
        return fail(absl::StrCat("plan_end ", s.plan_end, " lies outside the response"));
      }
    }
  }
  return absl::OkStatus();
}

Learner::Learner(LearnerOptions options, const Policy* policy, AdamW* optimizer,
                 ProcessGroup* ranks)
    : options_(std::move(options)),
      cost_(SequenceCostFor(policy->config)),
      policy_(policy),
      optimizer_(optimizer),
      ranks_(ranks),
      passes_(policy->transformer.get(), optimizer, ranks) {}

absl::StatusOr<LearnStats> Learner::Learn(const RlBatch& batch, int64_t step) {
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(ValidateRlBatch(batch, options_.objective));
  LearnStats stats;
  RETURN_IF_ERROR(CatchTorch(absl::StrCat("learning in step ", step),
                             "set micro_batch_tokens lower",
                             [&] { return LearnAll(batch, step, &stats); }));
  stats.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return stats;
}

// The local groups of each optimizer step of an epoch. The groups of all ranks are shuffled
// together, so that the order does not depend on the number of ranks.
std::vector<std::vector<int>> Learner::Partition(int64_t local_groups, int64_t all_groups,
                                                 int64_t step, int epoch) const {
  const int64_t parts = options_.objective.optimizer_steps_per_epoch();
  std::vector<int64_t> order(all_groups);
  std::iota(order.begin(), order.end(), 0);
  if (parts > 1) {
    Philox random(
        MixKeys({options_.seed, static_cast<uint64_t>(step), static_cast<uint64_t>(epoch)}),
        /*stream=*/0x6c6561726eULL);
    random.Shuffle(&order);
  }
  std::vector<std::vector<int>> groups(parts);
  for (int64_t i = 0; i < all_groups; ++i) {
    const int64_t g = order[i];
    const int64_t local = g / ranks_->size();
    if (g % ranks_->size() == ranks_->rank() && local < local_groups) {
      groups[i * parts / all_groups].push_back(static_cast<int>(local));
    }
  }
  for (std::vector<int>& part : groups) std::sort(part.begin(), part.end());
  return groups;
}

absl::Status Learner::LearnAll(const RlBatch& batch, int64_t step, LearnStats* stats) {
  double all_groups = static_cast<double>(batch.size());
  RETURN_IF_ERROR(ranks_->AllReduce(std::span<double>(&all_groups, 1)));
  const ObjectiveConfig& objective = options_.objective;
  Totals totals;
  for (int epoch = 0; epoch < objective.epochs_per_batch(); ++epoch) {
    const auto parts = Partition(static_cast<int64_t>(batch.size()),
                                 static_cast<int64_t>(all_groups), step, epoch);
    for (size_t part = 0; part < parts.size(); ++part) {
      const int64_t update =
          (step * objective.epochs_per_batch() + epoch) * static_cast<int64_t>(parts.size()) +
          static_cast<int64_t>(part);
      RETURN_IF_ERROR(LearnPart(batch, parts[part], update, epoch == 0, &totals, stats));
    }
  }
  return Finish(totals, stats);
}

void Learner::AddGroup(const RlGroup& group, Part* part) const {
  const ObjectiveConfig& objective = options_.objective;
  const bool all_learn = objective.kl_coefficient() > 0;
  const int counted = group.counted();
  if (counted == 0) return;
  part->groups += 1;
  for (const RlSample& sample : group.samples) {
    if (!sample.counted) continue;
    if (all_learn || HasGradient(objective, sample)) {
      part->items.push_back({sample, 1.0 / counted});
    } else {
      part->skipped += 1;
      if (part->idle == nullptr) part->idle = &sample;
    }
  }
}

absl::StatusOr<Learner::PartSizes> Learner::SumSizes(const Part& part, LearnStats* stats) {
  double sums[3] = {part.groups, static_cast<double>(part.items.size()), part.skipped};
  RETURN_IF_ERROR(ranks_->AllReduce(sums));
  stats->samples += static_cast<int64_t>(sums[1]);
  stats->skipped_samples += static_cast<int64_t>(sums[2]);
  return PartSizes{.groups = sums[0], .samples = sums[1]};
}

absl::Status Learner::LeaveOut(const Part& part, Totals* totals, LearnStats* stats) {
  ++stats->skipped_steps;
  if (part.idle == nullptr || totals->updated) return absl::OkStatus();
  const HrdMicroBatch micro = MakeMicroBatch({{*part.idle, 0.0}}, {0});
  totals->tokens += micro.batch.num_tokens();
  const ForwardResult forward =
      policy_->transformer->Forward(micro.batch, micro.targets, options_.temperature, nullptr);
  totals->Add(HrdLoss(forward.log_probs, forward.entropy, micro.tokens,
                      HrdSettingsFor(options_.objective)));
  return absl::OkStatus();
}

absl::Status Learner::LearnPart(const RlBatch& batch, const std::vector<int>& groups,
                                int64_t update, bool first_epoch, Totals* totals,
                                LearnStats* stats) {
  Part part;
  for (const int g : groups) AddGroup(batch[g], &part);
  LearnStats unused;
  ASSIGN_OR_RETURN(const PartSizes all, SumSizes(part, first_epoch ? stats : &unused));
  if (all.samples == 0) return LeaveOut(part, totals, stats);
  for (WeightedSample& item : part.items) item.group_weight /= all.groups;
  ASSIGN_OR_RETURN(const std::vector<WeightedSample> items,
                   BalanceSamples(std::move(part.items), cost_, ranks_));
  RETURN_IF_ERROR(Accumulate(items, totals));
  return Update(update, items, stats);
}

HrdMicroBatch Learner::MakeMicroBatch(const std::vector<WeightedSample>& items,
                                      const std::vector<int>& pack) const {
  std::vector<const RlSample*> samples;
  std::vector<double> weights;
  for (const int i : pack) {
    samples.push_back(&items[i].sample);
    weights.push_back(items[i].group_weight);
  }
  return BuildHrdMicroBatch(options_.objective, samples, weights, policy_->device());
}

void Learner::ForwardBackward(const std::vector<WeightedSample>& items,
                              const std::vector<int>& pack, Totals* totals) {
  const HrdMicroBatch micro = MakeMicroBatch(items, pack);
  totals->tokens += micro.batch.num_tokens();
  const auto loss_of = [&](const at::Tensor& rows, const at::Tensor& log_probs,
                           const at::Tensor& entropy) {
    const HrdResult loss = HrdLoss(log_probs, entropy, SelectRows(micro.tokens, rows),
                                   HrdSettingsFor(options_.objective));
    totals->Add(loss);
    return loss.d_log_probs;
  };
  passes_.Pass(micro.batch, micro.targets, options_.temperature, loss_of);
}

absl::Status Learner::Accumulate(const std::vector<WeightedSample>& items, Totals* totals) {
  const auto packs = PackByTokens(SequenceLengths(items), options_.micro_batch_tokens);
  RETURN_IF_ERROR(passes_.Begin(static_cast<int64_t>(packs.size())));
  for (const std::vector<int>& pack : packs) ForwardBackward(items, pack, totals);
  passes_.End();
  totals->updated = true;
  return absl::OkStatus();
}

absl::Status Learner::Update(int64_t update, const std::vector<WeightedSample>& items,
                             LearnStats* stats) {
  const ObjectiveConfig& objective = options_.objective;
  const int64_t total_updates =
      options_.total_steps * objective.epochs_per_batch() * objective.optimizer_steps_per_epoch();
  stats->learning_rate = LearningRate(options_.optimizer, update, total_updates);
  ASSIGN_OR_RETURN(const UpdateResult result,
                   optimizer_->Step(stats->learning_rate, passes_.gradients()));
  stats->gradient_norm = result.gradient_norm;
  ++(result.skipped ? stats->skipped_steps : stats->optimizer_steps);
  if (result.skipped && !options_.nonfinite_gradients.empty()) {
    stats->nonfinite_gradient =
        DumpNonFiniteGradient(options_.nonfinite_gradients, update, *optimizer_,
                              *passes_.gradients(), DescribeItems(items));
  }
  return CountSkippedUpdate(options_.optimizer, result, &consecutive_skipped_);
}

absl::Status Learner::Finish(const Totals& totals, LearnStats* stats) {
  double sums[kMaxLogProbDiff + 1] =
      {};  // the last entry counts the tokens passed through the model
  double max_difference = 0;
  if (!totals.statistics.empty()) {
    const at::Tensor all = at::stack(totals.statistics).cpu();
    const double* row = all.const_data_ptr<double>();
    for (size_t i = 0; i < totals.statistics.size(); ++i, row += kNumHrdStatistics) {
      for (int k = 0; k < kMaxLogProbDiff; ++k) sums[k] += row[k];
      if (totals.before_update[i]) max_difference = std::max(max_difference, row[kMaxLogProbDiff]);
    }
  }
  sums[kMaxLogProbDiff] = static_cast<double>(totals.tokens);
  RETURN_IF_ERROR(ranks_->AllReduce(sums));
  RETURN_IF_ERROR(ranks_->AllReduceMax(std::span<double>(&max_difference, 1)));
  const double tokens = std::max(1.0, sums[kTokenCount]);
  const double updates = std::max<double>(1, static_cast<double>(stats->optimizer_steps));
  stats->loss = sums[kLossSum] / updates;
  stats->clip_fraction = sums[kClippedCount] / tokens;
  stats->mean_ratio = sums[kTokenCount] > 0 ? sums[kRatioSum] / tokens : 1.0;
  stats->entropy = sums[kEntropySum] / tokens;
  stats->kl = sums[kKlSum] / tokens;
  stats->importance = sums[kTokenCount] > 0 ? sums[kImportanceSum] / tokens : 1.0;
  stats->truncated_fraction = sums[kTruncatedCount] / tokens;
  stats->logprob_max_diff = max_difference;
  stats->tokens = static_cast<int64_t>(sums[kMaxLogProbDiff]);
  return absl::OkStatus();
}

}  // namespace tritonrl
