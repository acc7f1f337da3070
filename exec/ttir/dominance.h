// Which blocks of a region dominate which.
#ifndef TRITONRL_EXEC_TTIR_DOMINANCE_H_
#define TRITONRL_EXEC_TTIR_DOMINANCE_H_

#include <vector>

#include "exec/ttir/operation.h"

namespace tritonrl::ttir {

class Dominance {
 public:
  // Ignores successors that are out of range.
  explicit Dominance(const Region& region);

  // Whether each path from the entry block to `block` goes through `dominator`. True for an
  // unreachable block, as in MLIR.
  bool Dominates(BlockId dominator, BlockId block) const;

 private:
  // Postorder number of the block: higher means nearer to the entry block. -1: unreachable.
  std::vector<int> order_;
  std::vector<BlockId> immediate_;  // the immediate dominator; the entry block has itself
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_DOMINANCE_H_
