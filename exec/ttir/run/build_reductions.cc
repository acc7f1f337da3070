// tt.reduce, tt.scan and tt.map_elementwise.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/reduction_steps.h"

namespace tritonrl::ttir {

namespace {

AxisShape AxisShapeOf(const Type& type, int axis) {
  AxisShape shape;
  for (int i = 0; i < type.rank(); ++i) {
    int64_t& part = i < axis ? shape.outer : i == axis ? shape.axis : shape.inner;
    part *= type.dim(i);
  }
  return shape;
}

// Operations that combine in any order.
bool IsCommutative(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAddI:
    case Opcode::kMulI:
    case Opcode::kAndI:
    case Opcode::kOrI:
    case Opcode::kXorI:
    case Opcode::kMaxSI:
    case Opcode::kMaxUI:
    case Opcode::kMinSI:
    case Opcode::kMinUI:
    case Opcode::kAddF:
    case Opcode::kMulF:
    case Opcode::kMaximumF:
    case Opcode::kMinimumF:
    case Opcode::kMaxNumF:
    case Opcode::kMinNumF:
      return true;
    default:
      return false;
  }
}

// The one operation that the region consists of, or nullptr.
const Operation* OnlyOperation(const Operation& operation) {
  const Block& block = operation.regions[0].blocks[0];
  if (operation.operands.size() != 1 || block.operations.size() != 2) return nullptr;
  const Operation& only = block.operations[0];
  if (!IsCommutative(only.opcode) || block.operations[1].operands[0] != only.results[0]) {
    return nullptr;
  }
  const bool both = std::is_permutation(only.operands.begin(), only.operands.end(),
                                        block.arguments.begin(), block.arguments.end());
  return both ? &only : nullptr;
}

bool IsVectorRegion(const Block& block) {
  return std::all_of(block.operations.begin(), block.operations.end() - 1,
                     [](const Operation& inner) { return IsElementwise(inner.opcode); });
}

}  // namespace

absl::Status Builder::BuildRegionCode(const Operation& operation, absl::Span<const Bound> arguments,
                                      int64_t lanes, Step* step, std::vector<bool>* uniform_yield) {
  const Block& block = operation.regions[0].blocks[0];
  const int64_t saved_lanes = std::exchange(max_lanes_, lanes);
  step->codes.resize(1);
  const absl::Status status = InContainer(&step->codes[0], /*is_loop=*/true, [&]() -> absl::Status {
    for (size_t i = 0; i < arguments.size(); ++i) {
      // The region's container did not exist when its arguments' buffers were made.
      buffers_[arguments[i].buffer].depth = CurrentDepth();
      Bind(block.arguments[i], arguments[i]);
    }
    return BuildBlock(block, block.operations.size() - 1);
  });
  max_lanes_ = saved_lanes;
  RETURN_IF_ERROR(status);
  for (const ValueId value : block.operations.back().operands) {
    step->in.push_back(At(value).buffer);
    uniform_yield->push_back(At(value).uniform);
  }
  return absl::OkStatus();
}

absl::Status Builder::BuildReduction(const Operation& operation) {
  if (operation.opcode == Opcode::kMapElementwise) return BuildMap(operation);
  auto data = std::make_shared<ReductionData>();
  data->shape = AxisShapeOf(TypeOf(operation.operands[0]), operation.attributes.axis);
  data->is_scan = operation.opcode == Opcode::kScan;
  data->is_reverse = operation.attributes.has(kReverse);
  Step step;
  step.place = PlaceOf(operation);
  step.marking.crosses_threads = true;
  for (const ValueId value : operation.operands) {
    step.in.push_back(SpreadValue(value).buffer);
    data->bytes.push_back(LaneBytes(LaneOf(TypeOf(value))));
  }
  for (const ValueId value : operation.results) {
    step.out.push_back(NewBuffer(TypeOf(value)));
    Bind(value, {step.out.back(), TypeOf(value).is_scalar(), false});
  }
  const Operation* const only = OnlyOperation(operation);
  if (only == nullptr) return BuildRegionReduction(operation, std::move(data), std::move(step));
  const Type& type = TypeOf(operation.operands[0]);
  step.binary = kernels_.binary(only->opcode, LaneOf(type), 0);
  if (step.binary == nullptr) return NotExecutable(*only);
  const bool rounds = only->opcode == Opcode::kAddF || only->opcode == Opcode::kMulF;
  step.finish = rounds ? RoundingOf(type) : nullptr;
  step.run = data->is_scan ? RunFastScan : RunFastReduce;
  const int64_t half = data->shape.axis * data->shape.inner * data->bytes[0] / 2;
  step.out.push_back(NewBuffer(half, CurrentDepth()));
  step.out.push_back(NewBuffer(half, CurrentDepth()));
  step.data = std::move(data);
  Emit(std::move(step));
  return absl::OkStatus();
}

absl::Status Builder::BuildRegionReduction(const Operation& operation,
                                           std::shared_ptr<ReductionData> data, Step step) {
  const size_t operands = operation.operands.size();
  const auto [outer, axis, inner] = data->shape;
  data->is_vector = IsVectorRegion(operation.regions[0].blocks[0]);
  const int64_t tensor_lanes = outer * axis * inner;
  const int64_t argument_lanes = data->is_vector ? tensor_lanes : 1;
  std::vector<Bound> arguments;
  for (size_t part = 0; part < 3; ++part) {  // whole tensors, left and right arguments
    for (size_t k = 0; k < operands; ++k) {
      const int64_t lanes = part == 0 ? tensor_lanes : argument_lanes;
      step.out.push_back(NewBuffer(lanes * data->bytes[k], CurrentDepth()));
      if (part > 0) arguments.push_back({step.out.back(), !data->is_vector, data->is_vector});
    }
  }
  const int64_t direction = data->is_reverse ? -1 : 1;
  const int64_t last = data->is_reverse ? axis - 1 : 0;
  for (size_t k = 0; k < operands; ++k) {
    data->to_major.push_back(MakeStridedCopy(data->bytes[k], last * inner, {axis, outer, inner},
                                             {direction * inner, axis * inner, 1}));
    data->from_major.push_back(MakeStridedCopy(data->bytes[k], last * outer * inner,
                                               {outer, axis, inner},
                                               {inner, direction * outer * inner, 1}));
  }
  // The work of a reduction is that of its elements.
  const bool counts_work = std::exchange(counts_work_, false);
  const absl::Status status =
      BuildRegionCode(operation, arguments, argument_lanes, &step, &data->uniform_yield);
  counts_work_ = counts_work;
  RETURN_IF_ERROR(status);
  step.run = RunReduction;
  step.data = std::move(data);
  Emit(std::move(step));
  return absl::OkStatus();
}

absl::Status Builder::BuildMap(const Operation& operation) {
  if (operation.regions[0].blocks.size() != 1) {
    return NotExecutable(operation, "a function that returns early");
  }
  auto data = std::make_shared<MapData>();
  const Type& first = TypeOf(operation.operands[0]);
  data->pack = operation.attributes.packed_elements;
  if (first.elements() % data->pack != 0) return NotExecutable(operation, "an incomplete pack");
  data->groups = first.elements() / data->pack;
  data->is_vector = IsVectorRegion(operation.regions[0].blocks[0]);
  const int64_t lanes = data->is_vector ? data->groups : 1;
  Step step;
  for (const ValueId value : operation.results) {
    step.out.push_back(NewBuffer(TypeOf(value)));
    data->result_bytes.push_back(LaneBytes(LaneOf(TypeOf(value))));
    Bind(value, {step.out.back(), false, false});
  }
  std::vector<Bound> arguments;
  for (const ValueId value : operation.operands) {
    step.in.push_back(SpreadValue(value).buffer);
    data->operand_bytes.push_back(LaneBytes(LaneOf(TypeOf(value))));
    for (int64_t i = 0; i < data->pack; ++i) {
      step.out.push_back(NewBuffer(lanes * data->operand_bytes.back(), CurrentDepth()));
      arguments.push_back({step.out.back(), !data->is_vector, data->is_vector});
    }
  }
  RETURN_IF_ERROR(BuildRegionCode(operation, arguments, lanes, &step, &data->uniform_yield));
  if (data->is_vector) {
    // The code runs once for all groups.
    Work& work = step.codes[0].work;
    containers_.back().code->work += work.Times(data->groups);
    work = Work();
  }
  step.run = RunMap;
  step.data = std::move(data);
  Emit(std::move(step));
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
