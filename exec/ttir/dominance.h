// Which blocks of a region dominate which.
#ifndef TRITONRL_EXEC_TTIR_DOMINANCE_H_
#define TRITONRL_EXEC_TTIR_DOMINANCE_H_

#include <vector>

#include "exec/ttir/operation.h"

namespace tritonrl::ttir {

class Dominance {
 public:
  // Successors that are out of range are passed over.
  explicit Dominance(const Region& region);

  // Whether each way from the first block to `block` leads through `dominator`. True for a block
  // that no way leads to, as MLIR has it.
  bool Dominates(BlockId dominator, BlockId block) const;

 private:
  // Of the block in postorder: higher means nearer to the first block. -1: no way leads there.
  std::vector<int> order_;
  std::vector<BlockId> immediate_;  // the immediate dominator; of the first block itself
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_DOMINANCE_H_
