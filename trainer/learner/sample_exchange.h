// Distributes the samples of one update over the ranks so that all have about the same work.
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

// A sample and the factor 1 / (G * prompts) of its group in the loss.
struct WeightedSample {
  RlSample sample;
  double group_weight = 0;
};

// Number of tokens of each item.
std::vector<int64_t> SequenceLengths(std::span<const WeightedSample> items);

// Called by all ranks together, each with the items that it generated; returns the items from which
// this rank learns. Each item goes to one rank, chosen by cost (BalanceOverRanks), because long
// responses are clustered and the cost of attention grows with the square of the length. With one
// rank the items are returned unchanged.
absl::StatusOr<std::vector<WeightedSample>> BalanceSamples(std::vector<WeightedSample> items,
                                                           const SequenceCost& cost,
                                                           ProcessGroup* ranks);

// A group with the index of its prompt in the step.
struct PlacedGroup {
  int slot = 0;
  RlGroup group;
};

// Called by all ranks together, each with the groups that it generated. Returns the groups of all
// ranks with slot % count == `index`, in the order of slots, so that each of `count` learning ranks
// has the groups that it would have generated itself. A rank with a negative `index` gets none.
absl::StatusOr<RlBatch> RedistributeGroups(const std::vector<PlacedGroup>& groups, int index,
                                           int count, ProcessGroup* ranks);

// Serializes items for processes of the same build on machines of the same kind. ParseSamples
// returns DataLoss for invalid bytes.
std::string SerializeSamples(const std::vector<WeightedSample>& items);
absl::StatusOr<std::vector<WeightedSample>> ParseSamples(absl::string_view bytes);
// The same for groups.
std::string SerializeGroups(const std::vector<PlacedGroup>& groups);
absl::StatusOr<std::vector<PlacedGroup>> ParseGroups(absl::string_view bytes);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_SAMPLE_EXCHANGE_H_
