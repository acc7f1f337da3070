// Functions of several blocks, as early returns make them.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/control_steps.h"

namespace tritonrl::ttir {

namespace {

// The blocks that can be reached, each behind the blocks that dominate it.
std::vector<BlockId> ReversePostorder(const Region& region) {
  std::vector<BlockId> order;
  std::vector<bool> seen(region.blocks.size());
  struct Visit {
    BlockId block;
    size_t next = 0;
  };
  std::vector<Visit> open = {{0, 0}};
  seen[0] = true;
  while (!open.empty()) {
    Visit& visit = open.back();
    const auto& successors = region.blocks[visit.block].operations.back().successors;
    if (visit.next == successors.size()) {
      order.push_back(visit.block);
      open.pop_back();
      continue;
    }
    const BlockId target = successors[visit.next++].block;
    if (seen[target]) continue;
    seen[target] = true;
    open.push_back({target, 0});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

// Copies a branch's values into the buffers of the target's arguments.
void Builder::BuildEdge(const Block& target, const Operation& branch, const Successor& successor,
                        Code* code) {
  std::vector<Bound> values;
  for (int32_t i = 0; i < successor.count; ++i) {
    values.push_back(At(branch.operands[successor.first + i]));
  }
  containers_.push_back({code, false});
  // An argument of the target itself would be overwritten by the copies before its own.
  absl::flat_hash_set<int32_t> targets;
  for (const ValueId argument : target.arguments) targets.insert(At(argument).buffer);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!targets.contains(values[i].buffer)) continue;
    if (At(target.arguments[i]).buffer == values[i].buffer) continue;
    const Type& type = TypeOf(target.arguments[i]);
    const int32_t saved = NewBuffer(type);
    EmitCopy(values[i], saved, type);
    values[i] = {saved, !type.is_tensor(), false};
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const int32_t to = At(target.arguments[i]).buffer;
    if (to != values[i].buffer) EmitCopy(values[i], to, TypeOf(target.arguments[i]));
  }
  containers_.pop_back();
}

absl::Status Builder::BuildGraph(const Function& function, std::vector<Bound>* results) {
  const std::vector<Block>& blocks = function.body.blocks;
  const std::vector<BlockId> order = ReversePostorder(function.body);
  std::vector<int32_t> nodes(blocks.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) nodes[order[i]] = static_cast<int32_t>(i);
  for (const Type& type : function.results) {
    results->push_back({NewBuffer(type), !type.is_tensor(), false});
  }
  for (size_t i = 1; i < order.size(); ++i) {
    for (const ValueId value : blocks[order[i]].arguments) {
      Bind(value, {NewBuffer(TypeOf(value)), !TypeOf(value).is_tensor(), false});
    }
  }
  auto data = std::make_shared<GraphData>();
  Step step;
  step.run = RunGraph;
  step.is_graph = true;
  step.place = PlaceOf(blocks[0].operations.back());
  std::vector<Code> edges;
  std::vector<Code> codes(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const Block& block = blocks[order[i]];
    const Operation& end = block.operations.back();
    GraphData::Node node;
    RETURN_IF_ERROR(InContainer(&codes[i], /*is_loop=*/false, [&]() -> absl::Status {
      RETURN_IF_ERROR(BuildBlock(block, block.operations.size() - 1));
      if (end.opcode != Opcode::kReturn) return absl::OkStatus();
      for (size_t r = 0; r < results->size(); ++r) {
        EmitCopy(At(end.operands[r]), (*results)[r].buffer, function.results[r]);
      }
      return absl::OkStatus();
    }));
    if (end.opcode == Opcode::kCondBranch) {
      node.condition = static_cast<int32_t>(step.in.size());
      step.in.push_back(At(end.operands[0]).buffer);
    }
    for (size_t way = 0; way < end.successors.size(); ++way) {
      const Successor& successor = end.successors[way];
      node.target[way] = nodes[successor.block];
      if (successor.count == 0) continue;
      node.copies[way] = static_cast<int32_t>(order.size() + edges.size());
      edges.emplace_back();
      BuildEdge(blocks[successor.block], end, successor, &edges.back());
    }
    data->nodes.push_back(node);
  }
  step.codes = std::move(codes);
  std::move(edges.begin(), edges.end(), std::back_inserter(step.codes));
  step.data = std::move(data);
  Emit(std::move(step));
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
