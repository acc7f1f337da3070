#include "exec/ttir/run/check_steps.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/launch_state.h"

namespace tritonrl::ttir {

namespace {

int64_t ValueAt(const Program& program, int32_t offset, Lane lane, int64_t i) {
  switch (lane) {
    case Lane::kBool:
      return program.At<uint8_t>(offset)[i];
    case Lane::kI8:
      return program.At<int8_t>(offset)[i];
    case Lane::kI16:
      return program.At<int16_t>(offset)[i];
    case Lane::kI32:
      return program.At<int32_t>(offset)[i];
    default:
      return program.At<int64_t>(offset)[i];
  }
}

}  // namespace

bool RunOperandCheck(const Step& step, Program& program) {
  if (program.check == nullptr) return true;
  const auto& data = static_cast<const OperandCheckData&>(*step.data);
  const int64_t count = step.CountFor(program);
  int64_t bad = 0;
  int64_t first = -1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = ValueAt(program, step.in[0], data.lane, i);
    const bool good = data.width == 0 ? value != 0 : value >= 0 && value < data.width;
    if (!good && bad++ == 0) first = i;
  }
  const Finding::Kind kind =
      data.width == 0 ? Finding::Kind::kDivisionByZero : Finding::Kind::kWideShift;
  if (bad == 0 || !program.check->IsNew(kind, step)) return true;
  const std::string what =
      data.width == 0 ? "an integer is divided by 0"
                      : absl::StrCat("a number of ", data.width, " bits is shifted by ",
                                     ValueAt(program, step.in[0], data.lane, first), " places");
  program.check->Add(
      kind, step, first,
      absl::StrCat(what, ": ", bad, " of ", count, " elements, first element ", first));
  return true;
}

}  // namespace tritonrl::ttir
