// What launches that check know of operations: how their results are marked (marks.h), and what
// divisibility is declared.
#include "exec/ttir/run/builder.h"

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

void Builder::MarkOperands(const Operation& operation, Opcode opcode, Step* step) {
  Marking& marking = step->marking;
  marking.rule = MarkRule::kElementwise;
  const Type& type = TypeOf(operation.operands[0]);
  if (!type.is_integer()) return;
  const int width = BitWidth(type.element());
  marking.width = static_cast<uint8_t>(width);
  if (opcode == Opcode::kAndI) marking.rule = MarkRule::kAnd;
  if (opcode == Opcode::kOrI) marking.rule = MarkRule::kOr;
  if (opcode == Opcode::kMulI) marking.rule = MarkRule::kMultiply;
  if (!IsDivision(opcode) && !IsShift(opcode)) return;
  // Most second operands are constants that are right.
  const auto constant = integer_constants_.find(At(operation.operands[1]).buffer);
  if (constant != integer_constants_.end()) {
    const uint64_t bits = constant->second;
    if (IsDivision(opcode) ? bits != 0 : bits < static_cast<uint64_t>(width)) return;
  }
  marking.rule = IsDivision(opcode) ? MarkRule::kDivide : MarkRule::kShift;
  step->place = PlaceOf(operation);
}

void Builder::AddDivisibility(const Argument& argument, CompiledKernel::Argument* compiled) const {
  compiled->place = module_.locations.PositionOf(argument.location).ToString();
  if (argument.hints < 0) return;
  const auto& divisibility = module_.hints[static_cast<size_t>(argument.hints)].divisibility;
  if (!divisibility.empty()) compiled->divisibility = divisibility[0];
}

}  // namespace tritonrl::ttir
