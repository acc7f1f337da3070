#include "trainer/grpo/task_passes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/random.h"

namespace tritonrl {
namespace {

// Philox streams of the order of an epoch's levels and of a level's tasks.
constexpr uint64_t kLevelStream = 0x6c6576656c73;
constexpr uint64_t kTaskStream = 0x7461736b73;

constexpr size_t kKeptEpochs = 2;  // a step may lie in two epochs

// The order of a pool's tasks in pass number `pass`.
std::vector<int> Permuted(std::vector<int> tasks, uint64_t seed, size_t pool, int64_t pass) {
  Philox random(MixKeys({seed, pool, static_cast<uint64_t>(pass)}), kTaskStream);
  random.Shuffle(&tasks);
  return tasks;
}

}  // namespace

TaskPasses::TaskPasses(uint64_t seed, const std::vector<std::vector<int>>& pools,
                       const std::vector<double>& shares)
    : seed_(seed) {
  for (size_t i = 0; i < pools.size(); ++i) {
    if (!(shares[i] > 0)) continue;
    pools_.push_back({.tasks = pools[i], .share = shares[i]});
    length_ += static_cast<int64_t>(pools[i].size());
  }
  DividePlaces();
}

void TaskPasses::DividePlaces() {
  double total = 0;
  for (const Pool& pool : pools_) total += pool.share;
  int64_t left = length_;
  std::vector<double> remainders;
  for (Pool& pool : pools_) {
    const double exact = static_cast<double>(length_) * pool.share / total;
    pool.places = static_cast<int64_t>(exact);
    remainders.push_back(exact - static_cast<double>(pool.places));
    left -= pool.places;
  }
  for (; left > 0; --left) {
    const size_t most = std::max_element(remainders.begin(), remainders.end()) - remainders.begin();
    ++pools_[most].places;
    remainders[most] = -1;
  }
  // A tiny share has a place too. The epoch has at least one place for each pool.
  for (Pool& pool : pools_) {
    if (pool.places > 0) continue;
    ++pool.places;
    --std::max_element(pools_.begin(), pools_.end(), [](const Pool& a, const Pool& b) {
        return a.places < b.places;
      })->places;
  }
}

std::vector<int> TaskPasses::MakeEpoch(int64_t epoch) const {
  std::vector<size_t> levels;
  for (size_t i = 0; i < pools_.size(); ++i) levels.insert(levels.end(), pools_[i].places, i);
  Philox random(MixKeys({seed_, static_cast<uint64_t>(epoch)}), kLevelStream);
  random.Shuffle(&levels);
  // By pool: how many of its places came before, over all epochs, and its current pass.
  std::vector<int64_t> used;
  for (const Pool& pool : pools_) used.push_back(epoch * pool.places);
  std::vector<std::vector<int>> orders(pools_.size());
  std::vector<int> tasks;
  tasks.reserve(levels.size());
  for (const size_t i : levels) {
    const auto size = static_cast<int64_t>(pools_[i].tasks.size());
    const int64_t place = used[i]++ % size, pass = (used[i] - 1) / size;
    if (orders[i].empty() || place == 0) {
      orders[i] = Permuted(pools_[i].tasks, seed_, i, pass);
    }
    tasks.push_back(orders[i][place]);
  }
  return tasks;
}

std::shared_ptr<const std::vector<int>> TaskPasses::Epoch(int64_t epoch) const {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<const std::vector<int>>& slot = epochs_[epoch];
  if (slot == nullptr) slot = std::make_shared<const std::vector<int>>(MakeEpoch(epoch));
  const std::shared_ptr<const std::vector<int>> result = slot;
  while (epochs_.size() > kKeptEpochs) {
    epochs_.erase(epochs_.begin()->first == epoch ? std::prev(epochs_.end()) : epochs_.begin());
  }
  return result;
}

int TaskPasses::At(int64_t place) const {
  return (*Epoch(place / length_))[static_cast<size_t>(place % length_)];
}

}  // namespace tritonrl
