// Elementwise arithmetic.
#include <utility>
#include <vector>

#include "base/status.h"
#include "exec/ttir/run/builder.h"

namespace tritonrl::ttir {

namespace {

void Finish(const Step& step, Program& program, int64_t count) {
  if (step.finish == nullptr) return;
  std::byte* const out = program.At<std::byte>(step.out[0]);
  step.finish(out, out, count);
}

bool RunUnary(const Step& step, Program& program) {
  const int64_t count = step.CountFor(program);
  step.unary(program.At<std::byte>(step.out[0]), program.At<std::byte>(step.in[0]), count);
  Finish(step, program, count);
  return true;
}

bool RunBinary(const Step& step, Program& program) {
  const int64_t count = step.CountFor(program);
  step.binary(program.At<std::byte>(step.out[0]), program.At<std::byte>(step.in[0]),
              program.At<std::byte>(step.in[1]), count);
  Finish(step, program, count);
  return true;
}

bool RunTernary(const Step& step, Program& program) {
  const int64_t count = step.CountFor(program);
  step.ternary(program.At<std::byte>(step.out[0]), program.At<std::byte>(step.in[0]),
               program.At<std::byte>(step.in[1]), program.At<std::byte>(step.in[2]), count);
  Finish(step, program, count);
  return true;
}

bool IsCast(Opcode opcode) {
  const Rule rule = InfoOf(opcode).rule;
  return rule == Rule::kIndexLike || (rule >= Rule::kWiden && rule <= Rule::kPointerToInt);
}

// Whether the result of these is a number of the operands' format without rounding.
bool IsExact(Opcode opcode) {
  switch (opcode) {
    case Opcode::kNegF:
    case Opcode::kAbsF:
    case Opcode::kMaximumF:
    case Opcode::kMinimumF:
    case Opcode::kMaxNumF:
    case Opcode::kMinNumF:
    case Opcode::kRemF:
    case Opcode::kCopySign:
    case Opcode::kClampF:
    case Opcode::kFloor:
    case Opcode::kCeil:
    case Opcode::kTrunc:
    case Opcode::kRound:
    case Opcode::kRoundEven:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool IsElementwise(Opcode opcode) {
  switch (InfoOf(opcode).rule) {
    case Rule::kIntSame:
    case Rule::kFloatSame:
    case Rule::kCompareInt:
    case Rule::kCompareFloat:
    case Rule::kFloatTest:
    case Rule::kFloatIntPower:
    case Rule::kSelect:
    case Rule::kConstant:
    case Rule::kExtern:
      return true;
    default:
      return opcode == Opcode::kPoison || IsCast(opcode);
  }
}

Unary Builder::RoundingOf(const Type& type) const {
  return type.is_float() ? kernels_.round(type.element(), /*toward_zero=*/false) : nullptr;
}

Builder::Extent Builder::ExtentOf(absl::Span<const Bound> operands) const {
  Extent extent;
  for (const Bound& operand : operands) {
    extent.uniform = extent.uniform && operand.uniform;
    extent.lanes = extent.lanes || operand.lanes;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!extent.uniform && operands[i].uniform) extent.form |= 1 << i;
  }
  return extent;
}

Bound Builder::EmitElementwise(Step step, absl::Span<const Bound> operands, const Type& type) {
  const Extent extent = ExtentOf(operands);
  const int64_t elements = extent.lanes ? max_lanes_ : extent.uniform ? 1 : type.elements();
  step.count = extent.lanes ? kLanes : elements;
  if (step.in_place == InPlace::kNever) step.in_place = InPlace::kAnyOperand;
  const int64_t bytes = elements * LaneBytes(LaneOf(type));
  if (step.marking.rule == MarkRule::kOwn) step.marking.rule = MarkRule::kElementwise;
  step.marking.out_bytes = static_cast<uint8_t>(LaneBytes(LaneOf(type)));
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].uniform) continue;
    step.marking.in_bytes[i] = static_cast<uint8_t>(buffers_[operands[i].buffer].bytes / elements);
  }
  return {EmitPure(std::move(step), operands, bytes), extent.uniform, extent.lanes};
}

Bound Builder::EmitUnary(Unary kernel, Unary finish, const Bound& operand, const Type& type) {
  Step step;
  step.run = RunUnary;
  step.unary = kernel;
  step.finish = finish;
  return EmitElementwise(std::move(step), {operand}, type);
}

absl::Status Builder::BuildUnary(const Operation& operation, Unary kernel, Unary finish) {
  if (kernel == nullptr) return NotExecutable(operation);
  const ValueId result = operation.results[0];
  Bind(result, EmitUnary(kernel, finish, At(operation.operands[0]), TypeOf(result)));
  return absl::OkStatus();
}

absl::Status Builder::BuildBinary(const Operation& operation, Opcode opcode) {
  const std::vector<Bound> operands = {At(operation.operands[0]), At(operation.operands[1])};
  const Lane lane = LaneOf(TypeOf(operation.operands[0]));
  const int form = ExtentOf(operands).form;
  const Rule rule = InfoOf(opcode).rule;
  const uint8_t predicate = operation.attributes.predicate;
  Step step;
  step.run = RunBinary;
  if (rule == Rule::kCompareInt) {
    step.binary = kernels_.compare_int(static_cast<IntPredicate>(predicate), lane, form);
  } else if (rule == Rule::kCompareFloat) {
    step.binary = kernels_.compare_float(static_cast<FloatPredicate>(predicate), lane, form);
  } else {
    step.binary = kernels_.binary(opcode, lane, form);
  }
  if (step.binary == nullptr) return NotExecutable(operation);
  const Type& type = TypeOf(operation.results[0]);
  if (!IsExact(opcode)) step.finish = RoundingOf(type);
  MarkOperands(operation, opcode, &step);
  Bind(operation.results[0], EmitElementwise(std::move(step), operands, type));
  return absl::OkStatus();
}

absl::Status Builder::BuildLibraryBinary(const Operation& operation, LibraryFunction function) {
  const std::vector<Bound> operands = {At(operation.operands[0]), At(operation.operands[1])};
  const Type& type = TypeOf(operation.results[0]);
  Step step;
  step.run = RunBinary;
  step.binary = kernels_.library_binary(function, LaneOf(type), ExtentOf(operands).form);
  if (step.binary == nullptr) return NotExecutable(operation);
  Bind(operation.results[0], EmitElementwise(std::move(step), operands, type));
  return absl::OkStatus();
}

absl::Status Builder::BuildTernary(const Operation& operation, Opcode opcode) {
  const Type& type = TypeOf(operation.results[0]);
  std::vector<Bound> operands;
  for (const ValueId value : operation.operands) operands.push_back(At(value));
  const Lane lane = LaneOf(type);
  Extent extent = ExtentOf(operands);
  Step step;
  step.run = RunTernary;
  if (opcode == Opcode::kClampF && operation.attributes.propagate_nan == PropagateNan::kAll) {
    for (Bound& operand : operands) {
      if (!extent.uniform) operand = Spread(operand, type, extent.lanes);
    }
    step.ternary = kernels_.clamp_propagating_nan[lane == Lane::kF32 ? 0 : 1];
  } else if (opcode == Opcode::kSelect) {
    step.ternary = kernels_.select(lane, extent.form);
    step.marking.rule = MarkRule::kSelect;
  } else {
    step.ternary = kernels_.ternary(opcode, lane, extent.form);
    if (!IsExact(opcode)) step.finish = RoundingOf(type);
  }
  if (step.ternary == nullptr) return NotExecutable(operation);
  Bind(operation.results[0], EmitElementwise(std::move(step), operands, type));
  return absl::OkStatus();
}

// Two results: the product's low half, which is the plain product, and its high half.
absl::Status Builder::BuildExtendedProduct(const Operation& operation) {
  const std::vector<Bound> operands = {At(operation.operands[0]), At(operation.operands[1])};
  const Type& type = TypeOf(operation.results[0]);
  const int form = ExtentOf(operands).form;
  for (size_t half = 0; half < 2; ++half) {
    Step step;
    step.run = RunBinary;
    step.binary = kernels_.binary(half == 0 ? Opcode::kMulI : operation.opcode, LaneOf(type), form);
    if (step.binary == nullptr) return NotExecutable(operation);
    Bind(operation.results[half], EmitElementwise(std::move(step), operands, type));
  }
  return absl::OkStatus();
}

// math.fpowi
absl::Status Builder::BuildPower(const Operation& operation) {
  const Type& type = TypeOf(operation.operands[0]);
  const Type& exponent = TypeOf(operation.operands[1]);
  std::vector<Bound> operands = {At(operation.operands[0]), At(operation.operands[1])};
  const Extent extent = ExtentOf(operands);
  if (!extent.uniform) {
    operands = {Spread(operands[0], type, extent.lanes),
                Spread(operands[1], exponent, extent.lanes)};
  }
  Step step;
  step.run = RunBinary;
  step.binary = kernels_.power(LaneOf(type), LaneOf(exponent));
  step.finish = RoundingOf(type);
  if (step.binary == nullptr) return NotExecutable(operation);
  Bind(operation.results[0], EmitElementwise(std::move(step), operands, type));
  return absl::OkStatus();
}

// Operations whose operands and results have one type.
absl::Status Builder::BuildArithmetic(const Operation& operation, Opcode opcode) {
  if (operation.results.size() == 2) return BuildExtendedProduct(operation);
  if (operation.operands.size() == 3) return BuildTernary(operation, opcode);
  if (operation.operands.size() == 2) return BuildBinary(operation, opcode);
  const Type& type = TypeOf(operation.results[0]);
  return BuildUnary(operation, kernels_.unary(opcode, LaneOf(type)),
                    IsExact(opcode) ? nullptr : RoundingOf(type));
}

absl::Status Builder::BuildElementwise(const Operation& operation) {
  const Opcode opcode = operation.opcode;
  switch (InfoOf(opcode).rule) {
    case Rule::kConstant:
      return BuildConstant(operation);
    case Rule::kSelect:
      return BuildTernary(operation, opcode);
    case Rule::kCompareInt:
    case Rule::kCompareFloat:
      return BuildBinary(operation, opcode);
    case Rule::kFloatIntPower:
      return BuildPower(operation);
    case Rule::kFloatTest:
      return BuildUnary(operation, kernels_.test(opcode, LaneOf(TypeOf(operation.operands[0]))),
                        nullptr);
    case Rule::kExtern:
      return BuildExtern(operation);
    case Rule::kIntSame:
    case Rule::kFloatSame:
      return BuildArithmetic(operation, opcode);
    default:
      return opcode == Opcode::kPoison ? BuildConstant(operation) : BuildCast(operation);
  }
}

}  // namespace tritonrl::ttir
