// Spreads the samples of one update over the ranks, so that each has about the same work.
#ifndef TRITONRL_TRAINER_LEARNER_SAMPLE_EXCHANGE_H_
#define TRITONRL_TRAINER_LEARNER_SAMPLE_EXCHANGE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "parallel/process_group.h"
#include "trainer/objective/advantage.h"
#include "trainer/objective/packing.h"

namespace tritonrl {

// A sample that goes through the model, with the factor 1 / (G * prompts) of its group.
struct WeightedSample {
  RlSample sample;
  double group_weight = 0;
};

// Tokens of each.
std::vector<int64_t> SequenceLengths(std::span<const WeightedSample> items);

// Called by all ranks together, each with the items whose responses it generated; gives those that
// it learns from. Every item is learned from by one rank: dealt out by cost (BalanceOverRanks), as
// long responses come in bunches and attention's work grows with the square of the length. With one
// rank the items are as given.
absl::StatusOr<std::vector<WeightedSample>> BalanceSamples(std::vector<WeightedSample> items,
                                                           const SequenceCost& cost,
                                                           ProcessGroup* ranks);

// A group with its place among the prompts of a step.
struct PlacedGroup {
  int slot = 0;
  RlGroup group;
};

// All ranks call it together, each with the groups that it generated. Returns the groups of all
// ranks whose slot is `index` modulo `count`, in the order of slots: `count` learning ranks then
// have the groups that they would have generated themselves. A negative `index` gets none.
absl::StatusOr<RlBatch> RedistributeGroups(const std::vector<PlacedGroup>& groups, int index,
                                           int count, ProcessGroup* ranks);

// Items as bytes and back, for processes of one build on machines of one kind. Error: bytes that
// are no items.
std::string SerializeSamples(const std::vector<WeightedSample>& items);
absl::StatusOr<std::vector<WeightedSample>> ParseSamples(absl::string_view bytes);
// The same of groups.
std::string SerializeGroups(const std::vector<PlacedGroup>& groups);
absl::StatusOr<std::vector<PlacedGroup>> ParseGroups(absl::string_view bytes);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_SAMPLE_EXCHANGE_H_
