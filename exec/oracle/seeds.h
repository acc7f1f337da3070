// The random seeds of one job, each from the run's seed by SHA-256.
#ifndef TRITONRL_EXEC_ORACLE_SEEDS_H_
#define TRITONRL_EXEC_ORACLE_SEEDS_H_

#include <cstdint>
#include <vector>

namespace tritonrl {

struct JobSeeds {
  uint64_t weights = 0;            // the candidate knows it, as it may draw its parameters alike
  std::vector<uint64_t> inputs;    // of each trial; the oracle alone knows them
  std::vector<uint64_t> forward;   // of each trial: random layers must draw alike on both sides
  std::vector<uint64_t> variants;  // of each further trial; the oracle alone knows them
};

// Below 2^63 each. None can be computed from another one; whoever guesses the run's seed itself
// knows them all, but has gained nothing, as inputs are handed over anyway.
// `more` trials follow the random ones; they have seeds of forward as well.
JobSeeds DeriveSeeds(uint64_t run_seed, int trials, int more = 0);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_ORACLE_SEEDS_H_
