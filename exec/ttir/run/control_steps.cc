#include "exec/ttir/run/control_steps.h"

#include "absl/strings/str_cat.h"
#include "exec/ttir/run/launch_state.h"
#include "exec/ttir/run/marks.h"

namespace tritonrl::ttir {

namespace {

int64_t ReadInteger(const Program& program, int32_t offset, const LoopData& data) {
  if (data.lane == Lane::kI64) return *program.At<int64_t>(offset);
  const int32_t value = *program.At<int32_t>(offset);
  return data.is_unsigned ? int64_t{static_cast<uint32_t>(value)} : value;
}

}  // namespace

bool RunFor(const Step& step, Program& program) {
  const auto& data = static_cast<const LoopData&>(*step.data);
  for (const int32_t bound : step.in) CheckDecision(step, program, bound);
  const int64_t lower = ReadInteger(program, step.in[0], data);
  const int64_t upper = ReadInteger(program, step.in[1], data);
  const int64_t by = ReadInteger(program, step.in[2], data);
  const bool is_wide_unsigned = data.is_unsigned && data.lane == Lane::kI64;
  if (by == 0 || (by < 0 && !is_wide_unsigned)) {
    return Fail(program, absl::InvalidArgumentError(absl::StrCat(
                             "loop of kernel ", program.launch->kernel->name, ": the step is ", by,
                             " and not positive, ", PlaceOf(step, program))));
  }
  const bool empty = is_wide_unsigned ? static_cast<uint64_t>(lower) >= static_cast<uint64_t>(upper)
                                      : lower >= upper;
  if (empty) return true;
  // The distance of two 64-bit integers fits 64 bits without sign.
  const uint64_t distance = static_cast<uint64_t>(upper) - static_cast<uint64_t>(lower);
  const uint64_t trips = (distance - 1) / static_cast<uint64_t>(by) + 1;
  auto variable = static_cast<uint64_t>(lower);
  for (uint64_t trip = 0; trip < trips; ++trip) {
    if (!MayContinue(step, program)) return false;
    if (data.lane == Lane::kI64) {
      *program.At<int64_t>(step.out[0]) = static_cast<int64_t>(variable);
    } else {
      *program.At<int32_t>(step.out[0]) = static_cast<int32_t>(variable);
    }
    MarkedElements(program, step.out[0], LaneBytes(data.lane)).Clear(1);
    if (!RunCode(step.codes[0], program)) return false;
    variable += static_cast<uint64_t>(by);
  }
  return true;
}

bool RunWhile(const Step& step, Program& program) {
  while (true) {
    if (!MayContinue(step, program)) return false;
    if (!RunCode(step.codes[0], program)) return false;
    CheckDecision(step, program, step.in[0]);
    if (*program.At<uint8_t>(step.in[0]) == 0) return true;
    if (!RunCode(step.codes[1], program)) return false;
  }
}

bool RunIf(const Step& step, Program& program) {
  CheckDecision(step, program, step.in[0]);
  return RunCode(step.codes[*program.At<uint8_t>(step.in[0]) != 0 ? 0 : 1], program);
}

bool RunGraph(const Step& step, Program& program) {
  const auto& data = static_cast<const GraphData&>(*step.data);
  int32_t at = 0;
  while (at >= 0) {
    if (!MayContinue(step, program)) return false;
    const GraphData::Node& node = data.nodes[static_cast<size_t>(at)];
    if (!RunCode(step.codes[static_cast<size_t>(at)], program)) return false;
    int way = 0;
    if (node.condition >= 0) {
      const int32_t condition = step.in[static_cast<size_t>(node.condition)];
      CheckDecision(step, program, condition);
      way = *program.At<uint8_t>(condition) != 0 ? 0 : 1;
    }
    const int32_t copies = node.copies[way];
    if (copies >= 0 && !RunCode(step.codes[static_cast<size_t>(copies)], program)) return false;
    at = node.target[way];
  }
  return true;
}

}  // namespace tritonrl::ttir
