// Program numbers, and operations that rearrange a tensor.
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/copy_steps.h"

namespace tritonrl::ttir {

namespace {

bool RunProgramId(const Step& step, Program& program) {
  *program.At<int32_t>(step.out[0]) = program.id[static_cast<size_t>(step.number)];
  return true;
}

bool RunProgramCount(const Step& step, Program& program) {
  *program.At<int32_t>(step.out[0]) = program.launch->grid[static_cast<size_t>(step.number)];
  return true;
}

bool RunRange(const Step& step, Program& program) {
  int32_t* const out = program.At<int32_t>(step.out[0]);
  std::iota(out, out + step.count, static_cast<int32_t>(step.number));
  return true;
}

std::vector<int64_t> StridesOf(const Type& type) {
  std::vector<int64_t> strides(static_cast<size_t>(type.rank()));
  int64_t stride = 1;
  for (int i = type.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= type.dim(i);
  }
  return strides;
}

}  // namespace

void Builder::BuildProgramNumber(const Operation& operation) {
  const bool id = operation.opcode == Opcode::kGetProgramId;
  Step step;
  step.run = id ? RunProgramId : RunProgramCount;
  step.number = operation.attributes.axis;
  step.marking.rule = MarkRule::kClear;
  step.marking.out_bytes = 4;
  if (!id) {
    Bind(operation.results[0], {EmitPure(std::move(step), {}, 4), true, false});
    return;
  }
  const int32_t buffer = NewBuffer(4, 1);  // once per program
  step.out = {buffer};
  EmitAt(std::move(step), 1);
  Bind(operation.results[0], {buffer, true, false});
}

void Builder::BuildRange(const Operation& operation) {
  Step step;
  step.run = RunRange;
  step.number = operation.attributes.start;
  step.count = TypeOf(operation.results[0]).elements();
  step.marking.rule = MarkRule::kClear;
  step.marking.out_bytes = 4;
  const int64_t bytes = step.count * 4;
  Bind(operation.results[0], {EmitPure(std::move(step), {}, bytes), false, false});
}

void Builder::BuildStrided(const Operation& operation, size_t result,
                           absl::Span<const int64_t> strides, int64_t offset) {
  const Type& type = TypeOf(operation.results[result]);
  const int bytes = LaneBytes(LaneOf(type));
  std::vector<int64_t> dims;
  for (int i = 0; i < type.rank(); ++i) dims.push_back(type.dim(i));
  Step step;
  step.run = RunStridedCopy;
  step.marking.rule = MarkRule::kSame;
  step.data = MakeStridedCopy(bytes, offset, dims, {strides.begin(), strides.end()});
  const int32_t buffer =
      EmitPure(std::move(step), {At(operation.operands[0])}, type.elements() * bytes);
  Bind(operation.results[result], {buffer, false, false});
}

void Builder::BuildBroadcast(const Operation& operation) {
  const Type& source = TypeOf(operation.operands[0]);
  const Type& target = TypeOf(operation.results[0]);
  std::vector<int64_t> strides = StridesOf(source);
  for (int i = 0; i < source.rank(); ++i) {
    if (source.dim(i) != target.dim(i)) strides[static_cast<size_t>(i)] = 0;
  }
  BuildStrided(operation, 0, strides, 0);
}

void Builder::BuildTranspose(const Operation& operation) {
  const std::vector<int64_t> strides = StridesOf(TypeOf(operation.operands[0]));
  std::vector<int64_t> permuted;
  for (const int32_t axis : operation.attributes.order) {
    permuted.push_back(strides[static_cast<size_t>(axis)]);
  }
  BuildStrided(operation, 0, permuted, 0);
}

// tt.join and tt.cat
void Builder::BuildJoin(const Operation& operation) {
  const Type& source = TypeOf(operation.operands[0]);
  const Type& target = TypeOf(operation.results[0]);
  Step step;
  step.run = operation.opcode == Opcode::kJoin ? RunInterleave : RunConcatenate;
  step.count = source.elements();
  step.number = LaneBytes(LaneOf(source));
  step.marking.rule = MarkRule::kSame;
  const int64_t bytes = target.elements() * step.number;
  const std::vector<Bound> operands = {SpreadValue(operation.operands[0]),
                                       SpreadValue(operation.operands[1])};
  Bind(operation.results[0], {EmitPure(std::move(step), operands, bytes), false, false});
}

absl::Status Builder::BuildShape(const Operation& operation) {
  const Bound first = operation.operands.empty() ? Bound() : At(operation.operands[0]);
  switch (operation.opcode) {
    case Opcode::kGetProgramId:
    case Opcode::kGetNumPrograms:
      BuildProgramNumber(operation);
      return absl::OkStatus();
    case Opcode::kMakeRange:
      BuildRange(operation);
      return absl::OkStatus();
    case Opcode::kSplat:
    case Opcode::kUnsplat:
    case Opcode::kExpandDims:
    case Opcode::kReshape:
      // The same elements in the same order: one buffer for both. A tensor with one element is
      // uniform.
      Bind(operation.results[0],
           {first.buffer, first.uniform || operation.opcode == Opcode::kUnsplat, first.lanes});
      return absl::OkStatus();
    case Opcode::kBroadcast:
    case Opcode::kTrans:
      if (first.uniform) {
        Bind(operation.results[0], first);
      } else if (operation.opcode == Opcode::kTrans) {
        BuildTranspose(operation);
      } else {
        BuildBroadcast(operation);
      }
      return absl::OkStatus();
    case Opcode::kSplit:
      for (size_t side = 0; side < 2; ++side) {
        if (first.uniform) {
          Bind(operation.results[side], first);
          continue;
        }
        std::vector<int64_t> strides = StridesOf(TypeOf(operation.operands[0]));
        strides.pop_back();
        BuildStrided(operation, side, strides, static_cast<int64_t>(side));
      }
      return absl::OkStatus();
    case Opcode::kJoin:
    case Opcode::kCat:
      BuildJoin(operation);
      return absl::OkStatus();
    case Opcode::kGather:
      return BuildGather(operation);
    case Opcode::kHistogram:
      return BuildHistogram(operation);
    case Opcode::kDotScaled:
      return BuildScaledDot(operation);
    case Opcode::kDot:
      return BuildDot(operation);
    default:
      return NotExecutable(operation);
  }
}

}  // namespace tritonrl::ttir
