// Divides sequences into micro-batches by a budget of tokens.
#ifndef TRITONRL_TRAINER_PACKING_H_
#define TRITONRL_TRAINER_PACKING_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tritonrl {

// Each entry of the result holds the indices of one micro-batch, whose lengths add up to at most
// `budget`; a sequence longer than the budget has a micro-batch of its own. Sequences are sorted by
// length (ties by index), so that a micro-batch holds similar lengths, and every index appears
// once. The result depends on the lengths alone.
std::vector<std::vector<int>> PackByTokens(std::span<const int64_t> lengths, int64_t budget);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_PACKING_H_
