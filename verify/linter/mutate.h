// Mutated programs and responses for fuzz tests: each input is a pure function of a seed and its
// number.
#ifndef TRITONRL_VERIFY_LINTER_MUTATE_H_
#define TRITONRL_VERIFY_LINTER_MUTATE_H_

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

class Mutator {
 public:
  // `corpus` are whole programs; must not be empty.
  Mutator(std::vector<std::string> corpus, uint64_t seed)
      : corpus_(std::move(corpus)), seed_(seed) {}

  // Program number `index` with one to four changes: bytes flipped, ranges deleted, words
  // replaced, lines moved, parts of other programs spliced in, deep nesting, huge lines, bytes that
  // are no UTF-8.
  std::string Program(uint64_t index) const;
  // The same inside a model's response, `<think>` and fences mutated as well.
  std::string Response(uint64_t index) const;

 private:
  using Random = std::mt19937_64;
  void Change(std::string* text, Random* random) const;
  void ChangeLines(std::string* text, Random* random) const;
  void ChangeStructure(std::string* text, int kind, Random* random) const;

  std::vector<std::string> corpus_;
  uint64_t seed_;
};

struct FuzzReport {
  uint64_t inputs = 0;
  uint64_t accepted = 0;  // programs without a finding
  uint64_t refused = 0;
  absl::Duration slowest;  // CPU time of one input
  uint64_t slowest_index = 0;
};

// The programs of the linter's test data.
absl::StatusOr<std::vector<std::string>> FuzzCorpus();

// Lints the programs `first` .. `first + count - 1` and splits the responses of the same numbers,
// until `deadline`. What the two must hold for any input is checked on the way; an error names the
// first input that broke it, or took longer than `limit`.
absl::StatusOr<FuzzReport> Fuzz(const Mutator& mutator, uint64_t first, uint64_t count,
                                absl::Duration limit, absl::Time deadline);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_LINTER_MUTATE_H_
