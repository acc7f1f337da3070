#include "exec/ttir/run/builder.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/run/block_steps.h"
#include "exec/ttir/run/copy_steps.h"

namespace tritonrl::ttir {

int64_t BufferBytes(const Type& type) {
  if (!type.is_value()) return BlockBytes(type.rank());
  return type.elements() * LaneBytes(LaneOf(type));
}

namespace {

bool RunBarrier(const Step& /*step*/, Program& /*program*/) { return true; }

// Block pointers and descriptors go through these only, and through memory operations.
bool TakesBlocks(Rule rule) {
  switch (rule) {
    case Rule::kMakeBlockPointer:
    case Rule::kMakeDescriptor:
    case Rule::kDescriptorLoad:
    case Rule::kDescriptorStore:
    case Rule::kDescriptorGather:
    case Rule::kDescriptorScatter:
    case Rule::kAdvance:
    case Rule::kLoad:
    case Rule::kStore:
    case Rule::kFor:
    case Rule::kIf:
    case Rule::kWhile:
    case Rule::kCall:
      return true;
    default:
      return false;
  }
}

}  // namespace

Builder::Builder(const Module& module) : module_(module), kernels_(BestKernels()) {}

absl::StatusOr<std::unique_ptr<CompiledKernel>> Builder::Build(const Function& kernel) {
  compiled_ = std::make_unique<CompiledKernel>();
  compiled_->name = absl::CHexEscape(kernel.name.substr(0, 80));
  containers_ = {{&compiled_->prologue, false}, {&compiled_->body, false}};
  std::vector<Bound> arguments;
  for (const Argument& argument : kernel.arguments) {
    const Type& type = kernel.TypeOf(argument.value);
    const std::string name = absl::CHexEscape(kernel.values[argument.value].name.substr(0, 80));
    if (type.is_descriptor() && type.rank() > 0 && type.pointer_levels() == 0) {
      arguments.push_back(BuildDescriptorArgument(argument, name, type));
      continue;
    }
    if (!type.is_scalar() || type.signedness() != Type::Signedness::kNone) {
      return absl::InvalidArgumentError(absl::StrCat("not executable: kernel ", compiled_->name,
                                                     " has an argument of type ", type.ToString()));
    }
    arguments.push_back(AddArgument(name, type));
    AddDivisibility(argument, &compiled_->arguments.back());
  }
  if (compiled_->arguments.size() > kMaxArguments) {
    return absl::InvalidArgumentError("not executable: a kernel has too many arguments");
  }
  std::vector<Bound> results;
  RETURN_IF_ERROR(BuildFunction(kernel, arguments, &results));
  const Plan plan = PlanBuffers(buffers_, &compiled_->prologue, &compiled_->body);
  if (plan.arena_bytes > kMaxArenaBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("kernel ", compiled_->name, " needs ", plan.arena_bytes,
                     " bytes for the tensors of a program; the limit is ", kMaxArenaBytes));
  }
  compiled_->arena_bytes = plan.arena_bytes;
  for (CompiledKernel::Argument& argument : compiled_->arguments) {
    argument.offset = plan.offsets[argument.offset];
  }
  return std::move(compiled_);
}

Bound Builder::AddArgument(const std::string& name, const Type& type) {
  const int32_t buffer = NewBuffer(8, 0);
  compiled_->arguments.push_back({name, type, buffer});
  return {buffer, true, false};
}

absl::Status Builder::NotExecutable(const Operation& operation, absl::string_view why) const {
  return absl::InvalidArgumentError(absl::StrCat("not executable: ", OpcodeName(operation.opcode),
                                                 ", ", module_.PlaceOf(operation),
                                                 why.empty() ? "" : ": ", why));
}

int32_t Builder::NewBuffer(int64_t bytes, int32_t depth) {
  buffers_.push_back({std::max<int64_t>(bytes, 1), depth});
  return static_cast<int32_t>(buffers_.size() - 1);
}

int32_t Builder::NewBuffer(const Type& type) {
  return NewBuffer(BufferBytes(type), CurrentDepth());
}

int32_t Builder::PlaceOf(const Operation& operation) {
  compiled_->places.push_back(module_.PlaceOf(operation));
  return static_cast<int32_t>(compiled_->places.size() - 1);
}

void Builder::EmitAt(Step step, int32_t depth) {
  containers_[depth].code->steps.push_back(std::move(step));
}

int32_t Builder::EmitPure(Step step, absl::Span<const Bound> operands, int64_t bytes) {
  int32_t required = 0;
  for (const Bound& operand : operands) {
    step.in.push_back(operand.buffer);
    required = std::max(required, buffers_[operand.buffer].depth);
  }
  int32_t depth = CurrentDepth();
  if (required == 0 && prologue_bytes_ + bytes <= kMaxPrologueBytes) {
    depth = 0;
    prologue_bytes_ += bytes;
  } else {
    const int32_t least = std::max(required, 1);
    while (depth > least && containers_[depth].is_loop) --depth;
  }
  const int32_t result = NewBuffer(bytes, depth);
  step.out.insert(step.out.begin(), result);
  EmitAt(std::move(step), depth);
  return result;
}

Bound Builder::Spread(const Bound& bound, const Type& type, bool lanes) {
  if (!bound.uniform || (!lanes && type.elements() == 1)) return bound;
  const int bytes = LaneBytes(LaneOf(type));
  Step step;
  step.run = FillStep(bytes);
  step.marking.rule = MarkRule::kSame;
  step.count = lanes ? kLanes : type.elements();
  const int64_t elements = lanes ? max_lanes_ : type.elements();
  // A fill of lanes belongs where the number of lanes is known.
  if (lanes) {
    const int32_t buffer = NewBuffer(elements * bytes, CurrentDepth());
    step.in = {bound.buffer};
    step.out = {buffer};
    Emit(std::move(step));
    return {buffer, false, true};
  }
  return {EmitPure(std::move(step), {bound}, elements * bytes), false, false};
}

void Builder::EmitCopy(const Bound& from, int32_t to, const Type& type) {
  Step step;
  step.marking.rule = MarkRule::kSame;
  step.in = {from.buffer};
  step.out = {to};
  if (!type.is_value()) {
    step.run = CopyStep();
    step.number = BufferBytes(type);
    Emit(std::move(step));
    return;
  }
  const int bytes = LaneBytes(LaneOf(type));
  const bool fills = from.uniform && type.elements() > 1;
  step.run = fills ? FillStep(bytes) : CopyStep();
  step.count = from.lanes ? kLanes : type.elements();
  step.number = bytes;
  Emit(std::move(step));
}

absl::Status Builder::BuildBlock(const Block& block, size_t operations) {
  for (size_t i = 0; i < operations; ++i) RETURN_IF_ERROR(BuildOperation(block.operations[i]));
  return absl::OkStatus();
}

absl::Status Builder::BuildOperation(const Operation& operation) {
  if (++operations_ > kMaxInlinedOperations || containers_.size() > kMaxNesting) {
    return absl::InvalidArgumentError(absl::StrCat(
        "not executable: kernel ", compiled_->name, " has more than ", kMaxInlinedOperations,
        " operations, or more than ", kMaxNesting, " regions in each other, with its calls"));
  }
  const bool takes_blocks = TakesBlocks(InfoOf(operation.opcode).rule);
  for (const ValueId value : operation.operands) {
    if (At(value).buffer == kNoBuffer) return NotExecutable(operation);
    if (!takes_blocks && !TypeOf(value).is_value()) return NotExecutable(operation, "of a block");
  }
  if (counts_work_) containers_.back().code->work += WorkOf(operation);
  if (IsElementwise(operation.opcode)) return BuildElementwise(operation);
  switch (InfoOf(operation.opcode).rule) {
    case Rule::kAddPointer:
    case Rule::kMakeBlockPointer:
    case Rule::kMakeDescriptor:
    case Rule::kAdvance:
    case Rule::kDescriptorLoad:
    case Rule::kDescriptorStore:
    case Rule::kDescriptorGather:
    case Rule::kDescriptorScatter:
    case Rule::kLoad:
    case Rule::kStore:
    case Rule::kAtomic:
    case Rule::kCompareAndSwap:
    case Rule::kAssert:
    case Rule::kPrint:
      return BuildMemory(operation);
    case Rule::kReduce:
    case Rule::kScan:
    case Rule::kMap:
      return BuildReduction(operation);
    case Rule::kFor:
    case Rule::kWhile:
    case Rule::kIf:
    case Rule::kCall:
      return BuildControl(operation);
    case Rule::kInlineAsm:
      return BuildAssembly(operation);
    case Rule::kAssume:
      return absl::OkStatus();
    default:
      break;
  }
  if (operation.opcode == Opcode::kBarrier) {
    // A program has one thread here, which has nothing to wait for.
    Step step;
    step.run = RunBarrier;
    step.marking.crosses_threads = true;
    Emit(std::move(step));
    return absl::OkStatus();
  }
  return BuildShape(operation);
}

}  // namespace tritonrl::ttir
