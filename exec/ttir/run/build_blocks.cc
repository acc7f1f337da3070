// Block pointers and tensor descriptors. Loads and stores through them become ones through a tensor
// of pointers and a mask.
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "exec/ttir/run/block_steps.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/memory_steps.h"

namespace tritonrl::ttir {

namespace {

std::optional<AtomicKind> AtomicKindOf(ReduceKind kind, const Type& type) {
  const bool is_unsigned = type.signedness() == Type::Signedness::kUnsigned;
  switch (kind) {
    case ReduceKind::kAdd:
      return IsFloat(type.element()) ? AtomicKind::kFadd : AtomicKind::kAdd;
    case ReduceKind::kMin:
      return is_unsigned ? AtomicKind::kUmin : AtomicKind::kMin;
    case ReduceKind::kMax:
      return is_unsigned ? AtomicKind::kUmax : AtomicKind::kMax;
    case ReduceKind::kAnd:
      return AtomicKind::kAnd;
    case ReduceKind::kOr:
      return AtomicKind::kOr;
    case ReduceKind::kXor:
      return AtomicKind::kXor;
    default:
      return std::nullopt;
  }
}

}  // namespace

// tt.make_tensor_ptr and tt.make_tensor_descriptor
absl::Status Builder::BuildMakeBlock(const Operation& operation) {
  const Type& type = TypeOf(operation.results[0]);
  auto data = std::make_shared<MakeBlockData>();
  data->rank = type.rank();
  if (data->rank == 0) return NotExecutable(operation);
  if (type.is_descriptor()) {
    data->padding = operation.attributes.padding;
    data->is_descriptor = true;
    data->element_bytes = StorageBytes(type.element());
    data->inner_block = type.dim(type.rank() - 1);
  }
  std::vector<Bound> operands;
  for (const ValueId value : operation.operands) {
    operands.push_back(At(value));
    data->is_wide.push_back(LaneBytes(LaneOf(TypeOf(value))) == 8);
  }
  Step step;
  step.run = RunMakeBlock;
  step.place = PlaceOf(operation);
  step.data = std::move(data);
  Bind(operation.results[0], {EmitPure(std::move(step), operands, BufferBytes(type)), true, false});
  return absl::OkStatus();
}

Bound Builder::BuildDescriptorArgument(const Argument& argument, const std::string& name,
                                       const Type& type) {
  auto data = std::make_shared<MakeBlockData>();
  data->rank = type.rank();
  data->is_descriptor = true;
  data->element_bytes = StorageBytes(type.element());
  data->inner_block = type.dim(type.rank() - 1);
  data->has_padding = true;
  std::vector<Bound> operands = {AddArgument(name, Type::Scalar(type.element(), 1))};
  for (int i = 0; i < 2 * type.rank(); ++i) {
    operands.push_back(AddArgument(name, Type::Scalar(ScalarKind::kI64)));
  }
  data->is_wide.resize(operands.size(), true);
  operands.push_back(AddArgument(name, Type::Scalar(ScalarKind::kI1)));
  compiled_->places.push_back(module_.locations.PositionOf(argument.location).ToString());
  Step step;
  step.run = RunMakeBlock;
  step.place = static_cast<int32_t>(compiled_->places.size() - 1);
  step.data = std::move(data);
  return {EmitPure(std::move(step), operands, BufferBytes(type)), true, false};
}

void Builder::BuildAdvance(const Operation& operation) {
  const Type& type = TypeOf(operation.results[0]);
  std::vector<Bound> operands;
  for (const ValueId value : operation.operands) operands.push_back(At(value));
  Step step;
  step.run = RunAdvance;
  step.number = type.rank();
  step.in_place = InPlace::kAnyOperand;
  Bind(operation.results[0], {EmitPure(std::move(step), operands, BufferBytes(type)), true, false});
}

absl::Status Builder::BuildBlockAccess(const Operation& operation, const Type& value,
                                       Access* access) {
  const Type& block = TypeOf(operation.operands[0]);
  auto data = std::make_shared<BlockAddressData>();
  data->bytes = StorageBytes(block.element());
  data->lane = LaneOf(value);
  Step step;
  step.run = RunBlockAddresses;
  step.in = {At(operation.operands[0]).buffer};
  for (int d = 0; d < block.rank(); ++d) data->dims.push_back(block.dim(d));
  if (block.is_block_pointer()) {
    if (block.pointer_levels() > 1) return NotExecutable(operation, "a block of pointers");
    data->padding = operation.attributes.padding;
    data->checked.resize(data->dims.size(), false);
    for (const int32_t axis : operation.attributes.boundary_check) {
      data->checked[static_cast<size_t>(axis)] = true;
    }
  } else {
    if (block.pointer_levels() > 0) return NotExecutable(operation, "a block of pointers");
    data->checked.resize(data->dims.size(), true);
    data->has_rows = operation.opcode == Opcode::kDescriptorGather ||
                     operation.opcode == Opcode::kDescriptorScatter;
    if (data->has_rows) data->dims[0] = value.dim(0);
    const bool loads = operation.opcode == Opcode::kDescriptorLoad || data->has_rows;
    const size_t first = loads ? 1 : 2;
    for (size_t d = 0; d < data->dims.size(); ++d) {
      const ValueId index = operation.operands[first + d];
      const Bound bound = data->has_rows && d == 0 ? SpreadValue(index) : At(index);
      step.in.push_back(bound.buffer);
    }
  }
  const Type pointers = value.WithElement(ScalarKind::kI64);
  const Type mask = value.WithElement(ScalarKind::kI1);
  step.out = {NewBuffer(pointers), NewBuffer(mask), NewBuffer(8, CurrentDepth())};
  access->pointers = {step.out[0], false, false};
  access->mask = {step.out[1], false, false};
  access->other = {step.out[2], true, false};
  step.data = std::move(data);
  Emit(std::move(step));
  return absl::OkStatus();
}

// tt.descriptor_reduce: elements outside of the tensor change nothing.
absl::Status Builder::BuildBlockReduce(const Operation& operation) {
  const Type& type = TypeOf(operation.operands[1]);
  const std::optional<AtomicKind> kind =
      AtomicKindOf(operation.attributes.reduce, TypeOf(operation.operands[0]));
  const bool adds = operation.attributes.reduce == ReduceKind::kAdd;
  if (!kind.has_value() || (type.is_float() && !adds) || type.bit_width() < 16) {
    return NotExecutable(operation);
  }
  Access access;
  RETURN_IF_ERROR(BuildBlockAccess(operation, type, &access));
  auto data = std::make_shared<AtomicData>();
  data->kind = *kind;
  data->element = type.element();
  data->bytes = StorageBytes(type.element());
  data->shape = ShapeNumberOf(type);
  Step step;
  step.run = RunAtomic;
  step.count = type.elements();
  step.place = PlaceOf(operation);
  step.in = {access.pointers.buffer, SpreadValue(operation.operands[1]).buffer, access.mask.buffer};
  step.out = {NewBuffer(type)};
  step.data = std::move(data);
  Emit(std::move(step));
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
