// Divides sequences over ranks by their cost, and into micro-batches by a budget of tokens.
#ifndef TRITONRL_TRAINER_OBJECTIVE_PACKING_H_
#define TRITONRL_TRAINER_OBJECTIVE_PACKING_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tritonrl {

// Each entry of the result holds the indices of one micro-batch, whose lengths add up to at most
// `budget`; a sequence longer than the budget has a micro-batch of its own. Sequences are sorted by
// length (ties by index), so that a micro-batch holds similar lengths, and every index appears
// once. The result depends on the lengths alone.
std::vector<std::vector<int>> PackByTokens(std::span<const int64_t> lengths, int64_t budget);

// The cost of a sequence in forward and backward, in units of one token's GEMMs.
struct SequenceCost {
  // 7 layers query_size / (6 parameters in products): over a sequence of L tokens causal attention
  // takes 2 query_size L^2 FLOPs a layer forward and 5 backward, products take 6 a token for each
  // parameter. 0: attention costs nothing.
  double quadratic = 0;

  double Of(int64_t length) const {
    const double tokens = static_cast<double>(length);
    return tokens + quadratic * tokens * tokens;
  }
};

// The rank of each sequence: the costliest first (ties by index), each to the rank that has least
// so far (ties to the lowest). No rank has more than the least loaded one by more than one
// sequence's cost (Graham, "Bounds on multiprocessing timing anomalies", 1969). The result depends
// on the lengths alone.
std::vector<int> BalanceOverRanks(std::span<const int64_t> lengths, int ranks,
                                  const SequenceCost& cost);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OBJECTIVE_PACKING_H_
