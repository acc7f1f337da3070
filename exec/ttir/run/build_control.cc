// Loops and branches of the scf dialect, and calls.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/control_steps.h"

namespace tritonrl::ttir {

namespace {

constexpr size_t kMaxInPlaceTests = 1'000'000;

}  // namespace

// Buffers that hold the values of an iteration, with the initial ones in them. The results of the
// loop are what is left in them.
std::vector<int32_t> Builder::StartCarried(const Operation& operation, size_t first) {
  std::vector<int32_t> carried;
  for (size_t i = first; i < operation.operands.size(); ++i) {
    const Type& type = TypeOf(operation.operands[i]);
    carried.push_back(NewBuffer(type));
    EmitCopy(At(operation.operands[i]), carried.back(), type);
  }
  return carried;
}

// A carried value is often computed by one step from its predecessor: an accumulator, a pointer
// that moves on. The step then writes the carried buffer itself, unless another one reads the old
// value later.
bool Builder::WriteInPlace(int32_t yielded, int32_t carried, absl::Span<const Bound> all,
                           Code* body) {
  int uses = 0;
  for (const Bound& bound : all) {
    if (bound.buffer == carried) return false;
    uses += bound.buffer == yielded ? 1 : 0;
  }
  if (uses != 1) return false;
  const auto defines = [&](const Step& step) {
    return !step.out.empty() && step.out[0] == yielded && step.codes.empty();
  };
  const auto definition = std::find_if(body->steps.begin(), body->steps.end(), defines);
  if (definition == body->steps.end()) return false;
  // The definition must be the first that touches it: else it is a buffer of a loop or a branch.
  for (auto step = body->steps.begin(); step != definition; ++step) {
    if (Touches(*step, yielded)) return false;
  }
  for (size_t i = 0; i < definition->in.size(); ++i) {
    if (definition->in[i] != carried || definition->in_place == InPlace::kAnyOperand) continue;
    if (definition->in_place != InPlace::kThirdOperand || i != 2) return false;
  }
  for (auto step = definition + 1; step != body->steps.end(); ++step) {
    if (Touches(*step, carried)) return false;
  }
  RenameBuffer(yielded, carried, body);
  return true;
}

void Builder::EmitCarried(absl::Span<const ValueId> yielded, absl::Span<const int32_t> carried,
                          Code* body) {
  std::vector<Bound> bounds;
  for (const ValueId value : yielded) bounds.push_back(At(value));
  // Bounds the time that a text with very many carried values takes.
  const bool few = carried.size() * body->steps.size() <= kMaxInPlaceTests;
  std::vector<size_t> copied;
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i].buffer == carried[i]) continue;
    const bool full = !bounds[i].uniform || !TypeOf(yielded[i]).is_tensor();
    if (few && full && WriteInPlace(bounds[i].buffer, carried[i], bounds, body)) {
      bounds[i].buffer = carried[i];
    } else {
      copied.push_back(i);
    }
  }
  // A value that is another carried one would be overwritten by the copies before its own.
  const absl::flat_hash_set<int32_t> targets(carried.begin(), carried.end());
  for (const size_t i : copied) {
    if (!targets.contains(bounds[i].buffer)) continue;
    const Type& type = TypeOf(yielded[i]);
    const int32_t saved = NewBuffer(type);
    EmitCopy(bounds[i], saved, type);
    bounds[i] = {saved, !type.is_tensor(), false};
  }
  for (const size_t i : copied) EmitCopy(bounds[i], carried[i], TypeOf(yielded[i]));
}

absl::Status Builder::BuildFor(const Operation& operation) {
  const Type& bound = TypeOf(operation.operands[0]);
  auto data = std::make_shared<LoopData>();
  data->lane = LaneOf(bound);
  data->is_unsigned = operation.attributes.has(kUnsignedCompare);
  if (data->lane != Lane::kI32 && data->lane != Lane::kI64) return NotExecutable(operation);
  const std::vector<int32_t> carried = StartCarried(operation, 3);
  const Block& block = operation.regions[0].blocks[0];
  Step step;
  step.run = RunFor;
  step.place = PlaceOf(operation);
  for (size_t i = 0; i < 3; ++i) step.in.push_back(At(operation.operands[i]).buffer);
  step.codes.resize(1);
  Code* const body = &step.codes[0];
  RETURN_IF_ERROR(InContainer(body, /*is_loop=*/true, [&]() -> absl::Status {
    const int32_t variable = NewBuffer(bound);
    step.out = {variable};
    Bind(block.arguments[0], {variable, true, false});
    for (size_t i = 0; i < carried.size(); ++i) {
      buffers_[carried[i]].depth = CurrentDepth();  // another value in each iteration
      const ValueId value = block.arguments[i + 1];
      Bind(value, {carried[i], !TypeOf(value).is_tensor(), false});
    }
    RETURN_IF_ERROR(BuildBlock(block, block.operations.size() - 1));
    EmitCarried(block.operations.back().operands, carried, body);
    return absl::OkStatus();
  }));
  step.data = std::move(data);
  Emit(std::move(step));
  for (size_t i = 0; i < carried.size(); ++i) {
    buffers_[carried[i]].depth = CurrentDepth();
    const ValueId value = operation.results[i];
    Bind(value, {carried[i], !TypeOf(value).is_tensor(), false});
  }
  return absl::OkStatus();
}

absl::Status Builder::BuildWhile(const Operation& operation) {
  const std::vector<int32_t> carried = StartCarried(operation, 0);
  const Block& before = operation.regions[0].blocks[0];
  const Block& after = operation.regions[1].blocks[0];
  Step step;
  step.run = RunWhile;
  step.place = PlaceOf(operation);
  step.codes.resize(2);
  std::vector<Bound> forwarded;
  RETURN_IF_ERROR(InContainer(&step.codes[0], /*is_loop=*/true, [&]() -> absl::Status {
    for (size_t i = 0; i < carried.size(); ++i) {
      buffers_[carried[i]].depth = CurrentDepth();
      const ValueId value = before.arguments[i];
      Bind(value, {carried[i], !TypeOf(value).is_tensor(), false});
    }
    RETURN_IF_ERROR(BuildBlock(before, before.operations.size() - 1));
    const Operation& condition = before.operations.back();
    step.in = {At(condition.operands[0]).buffer};
    for (size_t i = 1; i < condition.operands.size(); ++i) {
      forwarded.push_back(At(condition.operands[i]));
    }
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(InContainer(&step.codes[1], /*is_loop=*/true, [&]() -> absl::Status {
    for (size_t i = 0; i < forwarded.size(); ++i) Bind(after.arguments[i], forwarded[i]);
    RETURN_IF_ERROR(BuildBlock(after, after.operations.size() - 1));
    EmitCarried(after.operations.back().operands, carried, &step.codes[1]);
    return absl::OkStatus();
  }));
  Emit(std::move(step));
  for (size_t i = 0; i < forwarded.size(); ++i) Bind(operation.results[i], forwarded[i]);
  return absl::OkStatus();
}

absl::Status Builder::BuildIf(const Operation& operation) {
  Step step;
  step.run = RunIf;
  step.place = PlaceOf(operation);
  step.in = {At(operation.operands[0]).buffer};
  step.codes.resize(2);
  std::vector<int32_t> results;
  for (const ValueId value : operation.results) results.push_back(NewBuffer(TypeOf(value)));
  for (size_t side = 0; side < 2; ++side) {
    const std::vector<Block>& blocks = operation.regions[side].blocks;
    if (blocks.empty()) continue;
    RETURN_IF_ERROR(InContainer(&step.codes[side], /*is_loop=*/false, [&]() -> absl::Status {
      RETURN_IF_ERROR(BuildBlock(blocks[0], blocks[0].operations.size() - 1));
      const Operation& yield = blocks[0].operations.back();
      for (size_t i = 0; i < results.size(); ++i) {
        EmitCopy(At(yield.operands[i]), results[i], TypeOf(operation.results[i]));
      }
      return absl::OkStatus();
    }));
  }
  Emit(std::move(step));
  for (size_t i = 0; i < results.size(); ++i) {
    const ValueId value = operation.results[i];
    Bind(value, {results[i], !TypeOf(value).is_tensor(), false});
  }
  return absl::OkStatus();
}

absl::Status Builder::BuildCall(const Operation& operation) {
  std::vector<Bound> arguments;
  for (const ValueId value : operation.operands) arguments.push_back(At(value));
  std::vector<Bound> results;
  RETURN_IF_ERROR(
      BuildFunction(module_.functions[operation.attributes.callee], arguments, &results));
  for (size_t i = 0; i < results.size(); ++i) Bind(operation.results[i], results[i]);
  return absl::OkStatus();
}

absl::Status Builder::BuildFunction(const Function& function, absl::Span<const Bound> arguments,
                                    std::vector<Bound>* results) {
  const Function* const caller = std::exchange(function_, &function);
  std::vector<Bound> values(function.values.size());
  values_.swap(values);
  for (size_t i = 0; i < arguments.size(); ++i) Bind(function.arguments[i].value, arguments[i]);
  absl::Status status;
  if (function.body.blocks.size() > 1) {
    status = BuildGraph(function, results);
  } else {
    const Block& block = function.body.blocks[0];
    status = BuildBlock(block, block.operations.size() - 1);
    for (const ValueId value : block.operations.back().operands) results->push_back(At(value));
  }
  values_.swap(values);
  function_ = caller;
  return status;
}

absl::Status Builder::BuildControl(const Operation& operation) {
  switch (operation.opcode) {
    case Opcode::kFor:
      return BuildFor(operation);
    case Opcode::kWhile:
      return BuildWhile(operation);
    case Opcode::kIf:
      return BuildIf(operation);
    default:
      return BuildCall(operation);
  }
}

}  // namespace tritonrl::ttir
