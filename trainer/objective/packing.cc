#include "trainer/objective/packing.h"

#include <algorithm>
#include <numeric>

namespace tritonrl {

std::vector<std::vector<int>> PackByTokens(std::span<const int64_t> lengths, int64_t budget) {
  std::vector<int> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return lengths[a] < lengths[b]; });
  std::vector<std::vector<int>> packs;
  int64_t used = 0;
  for (const int i : order) {
    if (packs.empty() || used + lengths[i] > budget) {
      packs.emplace_back();
      used = 0;
    }
    packs.back().push_back(i);
    used += lengths[i];
  }
  return packs;
}

std::vector<int> BalanceOverRanks(std::span<const int64_t> lengths, int ranks,
                                  const SequenceCost& cost) {
  std::vector<int> order(lengths.size()), owners(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return lengths[a] > lengths[b]; });
  std::vector<double> loads(ranks, 0.0);
  for (const int i : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    owners[i] = static_cast<int>(least - loads.begin());
    *least += cost.Of(lengths[i]);
  }
  return owners;
}

}  // namespace tritonrl
