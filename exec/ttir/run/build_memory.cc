// Pointers, loads, stores, atomic operations, assertions and printing.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/copy_steps.h"
#include "exec/ttir/run/memory_steps.h"
#include "exec/ttir/run/report_steps.h"

namespace tritonrl::ttir {

namespace {

struct AddPointerData : StepData {
  decltype(KernelSet::add_pointer) add = nullptr;
  Lane offset = Lane::kI32;
  int form = 0;
};

bool RunAddPointer(const Step& step, Program& program) {
  const auto& data = static_cast<const AddPointerData&>(*step.data);
  data.add(data.offset, data.form, program.At<int64_t>(step.out[0]),
           program.At<int64_t>(step.in[0]), program.At<std::byte>(step.in[1]), step.number,
           step.CountFor(program));
  return true;
}

int BytesOf(const Type& value) {
  return value.pointer_levels() > 0 ? 8 : StorageBytes(value.element());
}

// Rows are the last dimensions with at least as many elements together.
int64_t RowOf(const Type& type) {
  constexpr int64_t kShortest = 16;
  int64_t row = 1;
  for (int i = type.rank() - 1; i >= 0 && row < kShortest; --i) row *= type.dim(i);
  return row;
}

}  // namespace

absl::Status Builder::BuildAddPointer(const Operation& operation) {
  const Type& type = TypeOf(operation.results[0]);
  const std::vector<Bound> operands = {At(operation.operands[0]), At(operation.operands[1])};
  auto data = std::make_shared<AddPointerData>();
  data->add = kernels_.add_pointer;
  data->offset = LaneOf(TypeOf(operation.operands[1]));
  data->form = ExtentOf(operands).form;
  Step step;
  step.run = RunAddPointer;
  step.number = BytesOf(type.Pointee());
  step.data = std::move(data);
  Bind(operation.results[0], EmitElementwise(std::move(step), operands, type));
  return absl::OkStatus();
}

int Builder::ShapeNumberOf(const Type& type) {
  std::vector<int64_t> dims;
  for (int i = 0; i < type.rank(); ++i) {
    if (type.dim(i) > 1) dims.push_back(type.dim(i));
  }
  const auto number = static_cast<int>(shape_numbers_.size());
  return shape_numbers_.try_emplace(std::move(dims), number).first->second;
}

// Where `operation` accesses elements of type `value`, with its mask and default if it has any.
absl::Status Builder::BuildAccess(const Operation& operation, const Type& value, Access* access) {
  if (!TypeOf(operation.operands[0]).is_value()) {
    return BuildBlockAccess(operation, value, access);
  }
  const bool loads = operation.opcode == Opcode::kLoad;
  const size_t mask = loads ? 1 : 2;
  access->pointers = At(operation.operands[0]);
  if (operation.operands.size() > mask) access->mask = At(operation.operands[mask]);
  if (loads && operation.operands.size() > 2) access->other = At(operation.operands[2]);
  return absl::OkStatus();
}

void Builder::SpreadAccess(const Type& value, Access* access) {
  access->pointers = Spread(access->pointers, value.WithElement(ScalarKind::kI64));
  if (access->mask.buffer == kNoBuffer) return;
  access->mask = Spread(access->mask, value.WithElement(ScalarKind::kI1));
}

absl::Status Builder::BuildLoad(const Operation& operation) {
  const Type& type = TypeOf(operation.results[0]);
  Access access;
  RETURN_IF_ERROR(BuildAccess(operation, type, &access));
  const bool uniform = access.pointers.uniform && access.mask.uniform && access.other.uniform;
  if (!uniform) SpreadAccess(type, &access);
  auto data = std::make_shared<AccessData>();
  data->bytes = BytesOf(type);
  data->lane_bytes = LaneBytes(LaneOf(type));
  data->row = uniform ? 1 : RowOf(type);
  data->repeat = uniform ? type.elements() : 1;
  data->shape = ShapeNumberOf(type);
  data->convert = type.is_pointer() ? StripArgument : kernels_.decode(type.element());
  data->kernels = &kernels_;
  if (access.other.buffer != kNoBuffer) {
    data->one_other = access.other.uniform;
    const int form = !uniform && access.other.uniform ? kThirdUniform : 0;
    data->select = kernels_.select(LaneOf(type), form);
  }
  Step step;
  step.run = RunLoad;
  step.count = uniform ? 1 : type.elements();
  step.place = PlaceOf(operation);
  step.in = {access.pointers.buffer, access.mask.buffer, access.other.buffer};
  const int32_t result = NewBuffer(step.count * data->lane_bytes, CurrentDepth());
  step.out = {result};
  if (data->convert != nullptr) {
    step.out.push_back(NewBuffer(step.count * data->bytes, CurrentDepth()));
  }
  step.data = std::move(data);
  Emit(std::move(step));
  Bind(operation.results[0], {result, uniform, false});
  return absl::OkStatus();
}

absl::Status Builder::BuildStore(const Operation& operation) {
  const ValueId value = operation.operands[operation.opcode == Opcode::kDescriptorScatter ? 3 : 1];
  const Type& type = TypeOf(value);
  Access access;
  RETURN_IF_ERROR(BuildAccess(operation, type, &access));
  Bound values = At(value);
  const bool uniform = access.pointers.uniform && values.uniform && access.mask.uniform;
  if (!uniform) {
    SpreadAccess(type, &access);
    values = Spread(values, type);
  }
  auto data = std::make_shared<AccessData>();
  data->name = "store";
  data->bytes = BytesOf(type);
  data->lane_bytes = LaneBytes(LaneOf(type));
  data->row = uniform ? 1 : RowOf(type);
  data->repeat = uniform ? type.elements() : 1;
  data->shape = ShapeNumberOf(type);
  data->convert = type.is_pointer() ? StripArgument : kernels_.encode(type.element());
  data->kernels = &kernels_;
  Step step;
  step.run = RunStore;
  step.count = uniform ? 1 : type.elements();
  step.place = PlaceOf(operation);
  step.in = {access.pointers.buffer, values.buffer, access.mask.buffer};
  if (data->convert != nullptr) step.out = {NewBuffer(data->row * data->bytes, CurrentDepth())};
  step.data = std::move(data);
  Emit(std::move(step));
  return absl::OkStatus();
}

// Each element is an operation of its own, also where all have the same address.
absl::Status Builder::BuildAtomic(const Operation& operation) {
  const Type& type = TypeOf(operation.results[0]);
  auto data = std::make_shared<AtomicData>();
  data->kind = operation.attributes.atomic;
  data->element = type.element();
  data->is_pointer = type.pointer_levels() > 0;
  data->bytes = BytesOf(type);
  data->shape = ShapeNumberOf(type);
  data->semantic = operation.attributes.semantic;
  data->scope = operation.attributes.scope;
  if (type.is(ScalarKind::kI1) || BitWidth(type.element()) == 8) return NotExecutable(operation);
  Step step;
  step.run = operation.opcode == Opcode::kAtomicCas ? RunCompareAndSwap : RunAtomic;
  step.count = type.elements();
  step.place = PlaceOf(operation);
  for (const ValueId value : operation.operands) step.in.push_back(SpreadValue(value).buffer);
  step.in.resize(3, kNoBuffer);
  step.out = {NewBuffer(type)};
  step.data = std::move(data);
  const int32_t result = step.out[0];
  Emit(std::move(step));
  Bind(operation.results[0], {result, type.is_scalar(), false});
  return absl::OkStatus();
}

// tt.assert and tt.print
absl::Status Builder::BuildReport(const Operation& operation) {
  auto data = std::make_shared<ReportData>();
  data->text = operation.attributes.text;
  data->is_hex = operation.attributes.has(kHex);
  Step step;
  step.run = operation.opcode == Opcode::kAssert ? RunAssert : RunPrint;
  step.place = PlaceOf(operation);
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    const Type& type = TypeOf(operation.operands[i]);
    if (!type.is_value()) return NotExecutable(operation);
    const auto& is_signed = operation.attributes.is_signed;
    const Bound& bound = At(operation.operands[i]);
    data->values.push_back({type, bound.uniform, is_signed.empty() || is_signed[i] != 0});
    step.in.push_back(bound.buffer);
  }
  step.data = std::move(data);
  Emit(std::move(step));
  return absl::OkStatus();
}

absl::Status Builder::BuildMemory(const Operation& operation) {
  switch (operation.opcode) {
    case Opcode::kAddPtr:
      return BuildAddPointer(operation);
    case Opcode::kLoad:
    case Opcode::kDescriptorLoad:
    case Opcode::kDescriptorGather:
      return BuildLoad(operation);
    case Opcode::kStore:
    case Opcode::kDescriptorStore:
    case Opcode::kDescriptorScatter:
      return BuildStore(operation);
    case Opcode::kDescriptorReduce:
      return BuildBlockReduce(operation);
    case Opcode::kMakeTensorPtr:
    case Opcode::kMakeTensorDescriptor:
      return BuildMakeBlock(operation);
    case Opcode::kAdvance:
      BuildAdvance(operation);
      return absl::OkStatus();
    case Opcode::kAtomicRmw:
    case Opcode::kAtomicCas:
      return BuildAtomic(operation);
    case Opcode::kAssert:
    case Opcode::kPrint:
      return BuildReport(operation);
    default:
      return NotExecutable(operation);
  }
}

}  // namespace tritonrl::ttir
