#include "tools/kernelbook/near_duplicates.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace tritonrl {
namespace {

constexpr int kBands = 16, kRows = 4;

// The finalizer of SplitMix64: a bijection that mixes all bits.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// One key for each band; programs with a key in common are compared.
std::array<uint64_t, kBands> BandKeys(const ProgramForm& form) {
  std::array<uint64_t, kBands> keys;
  for (int band = 0; band < kBands; ++band) {
    uint64_t key = Mix(form.library + band);
    for (int row = 0; row < kRows; ++row) {
      const uint64_t seed = Mix(1 + band * kRows + row);
      uint64_t least = std::numeric_limits<uint64_t>::max();
      for (const uint64_t shingle : form.shingles) least = std::min(least, Mix(shingle ^ seed));
      key = Mix(key ^ least);
    }
    keys[band] = key;
  }
  return keys;
}

}  // namespace

double Jaccard(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  size_t common = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) ++common;
    const bool first = a[i] <= b[j], second = b[j] <= a[i];
    i += first;
    j += second;
  }
  const size_t either = a.size() + b.size() - common;
  return either == 0 ? 1 : static_cast<double>(common) / static_cast<double>(either);
}

void NearDuplicates::Add(const ProgramForm& form) {
  for (const uint64_t key : BandKeys(form)) buckets_[key].push_back(programs_.size());
  programs_.push_back(form);
}

std::optional<std::pair<size_t, double>> NearDuplicates::Find(const ProgramForm& form) const {
  std::set<size_t> candidates;
  for (const uint64_t key : BandKeys(form)) {
    const auto found = buckets_.find(key);
    if (found != buckets_.end()) candidates.insert(found->second.begin(), found->second.end());
  }
  std::optional<std::pair<size_t, double>> best;
  for (const size_t candidate : candidates) {
    const ProgramForm& other = programs_[candidate];
    if (other.library != form.library) continue;
    const double similarity = Jaccard(form.shingles, other.shingles);
    if (similarity < threshold_ || (best.has_value() && similarity <= best->second)) continue;
    best = {candidate, similarity};
  }
  return best;
}

}  // namespace tritonrl
