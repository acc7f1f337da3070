// Finds programs that are nearly the same among many.
#ifndef TRITONRL_TOOLS_KERNELBOOK_NEAR_DUPLICATES_H_
#define TRITONRL_TOOLS_KERNELBOOK_NEAR_DUPLICATES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tools/kernelbook/program_form.h"

namespace tritonrl {

// Jaccard similarity of two sorted sets: the size of their intersection over that of their union.
double Jaccard(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b);

// Two programs are near duplicates if their models use the same set of library names and operators,
// and the Jaccard similarity of their shingles is at least a threshold. Pairs to compare are found
// by MinHash: 64 minima in 16 bands of 4, which misses a pair of similarity 0.8 once in 5,000.
// Models that differ only in their inputs are near duplicates; those that differ in one operator
// are not.
class NearDuplicates {
 public:
  // Default of the importer: a changed constant in a model of about 60 tokens stays above it, a
  // changed or added statement does not.
  static constexpr double kThreshold = 0.8;

  explicit NearDuplicates(double threshold) : threshold_(threshold) {}

  // Adds a program under the next number, from 0 on.
  void Add(const ProgramForm& form);
  // The most similar program that was added, with the similarity, if it is a near duplicate. Of
  // equally similar ones the first.
  std::optional<std::pair<size_t, double>> Find(const ProgramForm& form) const;

 private:
  const double threshold_;
  std::vector<ProgramForm> programs_;
  std::map<uint64_t, std::vector<size_t>> buckets_;  // by hash of band and library names
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_KERNELBOOK_NEAR_DUPLICATES_H_
