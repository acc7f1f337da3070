// Distributes sequences over ranks by their cost, and over micro-batches by a token budget.
#ifndef TRITONRL_TRAINER_OBJECTIVE_PACKING_H_
#define TRITONRL_TRAINER_OBJECTIVE_PACKING_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tritonrl {

// Packs sequences into micro-batches of at most `budget` tokens; a sequence longer than the budget
// has a micro-batch of its own. Each entry of the result holds the indices of one micro-batch.
// Sequences are sorted by length (ties by index), so that a micro-batch holds similar lengths, and
// every index appears once. The result depends on the lengths alone.
std::vector<std::vector<int>> PackByTokens(std::span<const int64_t> lengths, int64_t budget);

// The cost of a sequence's forward and backward pass, in units of one token's GEMMs.
struct SequenceCost {
  // 7 layers query_size / (6 parameters in GEMMs): over a sequence of L tokens causal attention
  // needs 2 query_size L^2 FLOPs per layer in the forward and 5 in the backward pass, and GEMMs
  // need 6 per token and parameter. 0: the cost of attention is ignored.
  double quadratic = 0;

  double Of(int64_t length) const {
    const double tokens = static_cast<double>(length);
    return tokens + quadratic * tokens * tokens;
  }
};

// Assigns each sequence to a rank and returns the ranks: in decreasing order of cost (ties by
// index) each goes to the rank with the least load so far (ties to the lowest). The loads of two
// ranks differ by at most one sequence's cost (Graham, "Bounds on multiprocessing timing
// anomalies", 1969). The result depends on the lengths alone.
std::vector<int> BalanceOverRanks(std::span<const int64_t> lengths, int ranks,
                                  const SequenceCost& cost);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OBJECTIVE_PACKING_H_
