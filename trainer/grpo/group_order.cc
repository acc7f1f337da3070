#include "trainer/grpo/group_order.h"

#include <algorithm>
#include <tuple>

namespace tritonrl {
namespace {

// Its longest sample has at least so many tokens; just as many once all have ended.
int LongestSoFar(const SampleGroup& group) {
  // The engine's count first: it may be ahead of the samples that have been taken from it.
  int longest = group.longest->load();
  for (const JudgedSample& judged : group.samples) {
    longest = std::max(longest, static_cast<int>(judged.sample.tokens.size()));
  }
  return longest;
}

}  // namespace

std::optional<int> NextInOrder(const SampleBatch& batch, const std::vector<bool>& taken) {
  std::optional<std::tuple<int, int, int>> first;  // longest, slot, place
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    if (taken[g]) continue;
    const SampleGroup& group = batch.groups[g];
    const std::tuple<int, int, int> own(LongestSoFar(group), group.slot, static_cast<int>(g));
    if (!first.has_value() || own < *first) first = own;
  }
  if (!first.has_value()) return std::nullopt;
  const int place = std::get<2>(*first);
  const std::vector<JudgedSample>& samples = batch.groups[place].samples;
  if (!std::all_of(samples.begin(), samples.end(), [](const auto& s) { return s.judged; })) {
    return std::nullopt;
  }
  return place;
}

}  // namespace tritonrl
