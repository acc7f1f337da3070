#include "model/tokenizer/bpe_merges.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace tritonrl {
namespace {

using Pair = std::pair<int32_t, int32_t>;

// Counts of all pairs, kept up to date while merges rewrite the words.
class PairTable {
 public:
  explicit PairTable(std::vector<CountedWord> words) : words_(std::move(words)) {
    for (int i = 0; i < static_cast<int>(words_.size()); ++i) Count(i, +1);
    changed_.clear();
    for (const auto& [pair, count] : counts_) queue_.push({count, pair});
  }

  // The pair to merge next; count 0 if none is left.
  std::pair<Pair, int64_t> Best() {
    while (!queue_.empty()) {
      const Entry top = queue_.top();
      const int64_t count = counts_[top.pair];
      if (count == top.count) return {top.pair, count};
      queue_.pop();
      if (count > 0) queue_.push({count, top.pair});
    }
    return {Pair(0, 0), 0};
  }

  void Merge(const Pair& pair, int32_t new_id) {
    changed_.clear();
    const absl::flat_hash_set<int> where = std::move(words_with_[pair]);
    words_with_.erase(pair);
    for (int word : where) {
      Count(word, -1);
      Rewrite(pair, new_id, &words_[word].symbols);
      Count(word, +1);
    }
    for (const Pair& changed : changed_) {
      if (const int64_t count = counts_[changed]; count > 0) queue_.push({count, changed});
    }
  }

 private:
  struct Entry {
    int64_t count;
    Pair pair;
    bool operator<(const Entry& other) const {
      return std::tie(count, other.pair) < std::tie(other.count, pair);
    }
  };

  void Count(int word, int sign) {
    const CountedWord& w = words_[word];
    for (size_t i = 0; i + 1 < w.symbols.size(); ++i) {
      const Pair pair(w.symbols[i], w.symbols[i + 1]);
      counts_[pair] += sign * w.count;
      changed_.insert(pair);
      // A word stays listed under pairs it has lost; looking at it again does no harm.
      if (sign > 0) words_with_[pair].insert(word);
    }
  }

  static void Rewrite(const Pair& pair, int32_t new_id, std::vector<int32_t>* symbols) {
    size_t out = 0;
    for (size_t i = 0; i < symbols->size(); ++i) {
      if (i + 1 < symbols->size() && (*symbols)[i] == pair.first &&
          (*symbols)[i + 1] == pair.second) {
        (*symbols)[out++] = new_id;
        ++i;
      } else {
        (*symbols)[out++] = (*symbols)[i];
      }
    }
    symbols->resize(out);
  }

  std::vector<CountedWord> words_;
  absl::flat_hash_map<Pair, int64_t> counts_;
  absl::flat_hash_map<Pair, absl::flat_hash_set<int>> words_with_;
  absl::flat_hash_set<Pair> changed_;
  std::priority_queue<Entry> queue_;
};

}  // namespace

std::vector<Pair> LearnMerges(std::vector<CountedWord> words, int32_t first_new_id, int max_merges,
                              int64_t min_count) {
  PairTable table(std::move(words));
  std::vector<Pair> merges;
  while (static_cast<int>(merges.size()) < max_merges) {
    const auto [pair, count] = table.Best();
    if (count < std::max<int64_t>(min_count, 1)) break;
    table.Merge(pair, first_new_id + static_cast<int32_t>(merges.size()));
    merges.push_back(pair);
  }
  return merges;
}

}  // namespace tritonrl
