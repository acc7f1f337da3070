#include "exec/ttir/dominance.h"

#include <algorithm>
#include <utility>

namespace tritonrl::ttir {

namespace {

std::vector<std::vector<BlockId>> SuccessorsOf(const Region& region) {
  std::vector<std::vector<BlockId>> successors(region.blocks.size());
  for (size_t b = 0; b < region.blocks.size(); ++b) {
    if (region.blocks[b].operations.empty()) continue;
    for (const Successor& successor : region.blocks[b].operations.back().successors) {
      if (successor.block < 0 || static_cast<size_t>(successor.block) >= region.blocks.size()) {
        continue;
      }
      successors[b].push_back(successor.block);
    }
  }
  return successors;
}

// Blocks that can be reached, in postorder. Without recursion, as there may be thousands.
std::vector<BlockId> Postorder(const std::vector<std::vector<BlockId>>& successors) {
  std::vector<BlockId> order;
  std::vector<bool> seen(successors.size());
  std::vector<std::pair<BlockId, size_t>> stack = {{0, 0}};
  seen[0] = true;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    if (next == successors[block].size()) {
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    const BlockId successor = successors[block][next++];
    if (seen[successor]) continue;
    seen[successor] = true;
    stack.emplace_back(successor, 0);
  }
  return order;
}

}  // namespace

// The algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
Dominance::Dominance(const Region& region)
    : order_(region.blocks.size(), -1), immediate_(region.blocks.size(), -1) {
  if (region.blocks.empty()) return;
  const auto successors = SuccessorsOf(region);
  const std::vector<BlockId> postorder = Postorder(successors);
  std::vector<std::vector<BlockId>> predecessors(region.blocks.size());
  for (size_t i = 0; i < postorder.size(); ++i) {
    order_[postorder[i]] = static_cast<int>(i);
    for (const BlockId successor : successors[postorder[i]]) {
      predecessors[successor].push_back(postorder[i]);
    }
  }
  immediate_[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto block = postorder.rbegin(); block != postorder.rend(); ++block) {
      if (*block == 0) continue;
      BlockId found = -1;
      for (BlockId other : predecessors[*block]) {
        if (immediate_[other] < 0) continue;
        if (found < 0) found = other;
        while (found != other) {
          while (order_[found] < order_[other]) found = immediate_[found];
          while (order_[other] < order_[found]) other = immediate_[other];
        }
      }
      if (found != immediate_[*block]) {
        immediate_[*block] = found;
        changed = true;
      }
    }
  }
}

bool Dominance::Dominates(BlockId dominator, BlockId block) const {
  if (order_[block] < 0 || dominator == block) return true;
  while (block != 0 && block != dominator) block = immediate_[block];
  return block == dominator;
}

}  // namespace tritonrl::ttir
