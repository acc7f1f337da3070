// What launches that check look at: operands of divisions and shifts, and declared divisibility.
#include <memory>
#include <utility>

#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/check_steps.h"

namespace tritonrl::ttir {

namespace {

bool IsDivision(Opcode opcode) {
  switch (opcode) {
    case Opcode::kDivSI:
    case Opcode::kDivUI:
    case Opcode::kRemSI:
    case Opcode::kRemUI:
    case Opcode::kCeilDivSI:
    case Opcode::kCeilDivUI:
    case Opcode::kFloorDivSI:
      return true;
    default:
      return false;
  }
}

bool IsShift(Opcode opcode) {
  return opcode == Opcode::kShlI || opcode == Opcode::kShrSI || opcode == Opcode::kShrUI;
}

}  // namespace

// The check stands where the operation does, while the operation's step may move to where it runs
// although the program never comes there.
void Builder::EmitOperandCheck(const Operation& operation) {
  if (!IsDivision(operation.opcode) && !IsShift(operation.opcode)) return;
  const Type& type = TypeOf(operation.operands[1]);
  const Bound& operand = At(operation.operands[1]);
  auto data = std::make_shared<OperandCheckData>();
  data->lane = LaneOf(type);
  data->width = IsShift(operation.opcode) ? BitWidth(type.element()) : 0;
  // Most are constants that are right.
  const auto constant = integer_constants_.find(operand.buffer);
  if (constant != integer_constants_.end()) {
    const uint64_t bits = constant->second;
    if (data->width == 0 ? bits != 0 : bits < static_cast<uint64_t>(data->width)) return;
  }
  Step step;
  step.run = RunOperandCheck;
  step.count = operand.lanes ? kLanes : operand.uniform ? 1 : type.elements();
  step.place = PlaceOf(operation);
  step.in = {operand.buffer};
  step.data = std::move(data);
  Emit(std::move(step));
}

void Builder::AddDivisibility(const Argument& argument, CompiledKernel::Argument* compiled) const {
  compiled->place = module_.locations.PositionOf(argument.location).ToString();
  if (argument.hints < 0) return;
  const auto& divisibility = module_.hints[static_cast<size_t>(argument.hints)].divisibility;
  if (!divisibility.empty()) compiled->divisibility = divisibility[0];
}

}  // namespace tritonrl::ttir
