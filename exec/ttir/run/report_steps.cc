#include "exec/ttir/run/report_steps.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "exec/ttir/run/launch_state.h"
#include "exec/ttir/run/marks.h"

namespace tritonrl::ttir {

namespace {

std::string NumberText(const ReportData::Value& value, const std::byte* element, bool is_hex) {
  const Lane lane = LaneOf(value.type);
  const int bytes = LaneBytes(lane);
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(bytes));
  if (value.type.is_pointer()) {
    return absl::StrFormat("0x%016x", bits & static_cast<uint64_t>(kAddressMask));
  }
  if (lane == Lane::kF32) {
    float number = 0;
    std::memcpy(&number, element, sizeof(number));
    return absl::StrFormat("%f", number);
  }
  if (lane == Lane::kF64) {
    double number = 0;
    std::memcpy(&number, element, sizeof(number));
    return absl::StrFormat("%f", number);
  }
  if (is_hex) return absl::StrFormat("0x%0*x", 2 * bytes, bits);
  const int shift = 64 - 8 * bytes;
  if (value.is_signed && lane != Lane::kBool) {
    return absl::StrCat(static_cast<int64_t>(bits << shift) >> shift);
  }
  return absl::StrCat(bits);
}

std::string IndexText(const Type& type, int64_t element) {
  std::string text;
  int64_t rest = type.elements();
  for (int i = 0; i < type.rank(); ++i) {
    rest /= type.dim(i);
    absl::StrAppend(&text, i == 0 ? "" : ", ", element / rest % type.dim(i));
  }
  return text;
}

}  // namespace

bool RunAssert(const Step& step, Program& program) {
  const auto& data = static_cast<const ReportData&>(*step.data);
  const ReportData::Value& value = data.values[0];
  const int64_t count = value.uniform ? 1 : value.type.elements();
  const uint8_t* const condition = program.At<uint8_t>(step.in[0]);
  const uint8_t* const end = condition + count;
  for (int64_t i = 0; program.marks != nullptr && i < count; ++i) {
    ReportDecision(step, program, step.in[0] + static_cast<int32_t>(i));
  }
  const uint8_t* const failed = std::find(condition, end, 0);
  if (failed == end) return true;
  return Fail(program, absl::AbortedError(absl::StrCat(
                           "assertion of kernel ", program.launch->kernel->name,
                           " failed: ", absl::CHexEscape(data.text.substr(0, 400)), ", element ",
                           failed - condition, ", ", PlaceOf(step, program))));
}

bool RunPrint(const Step& step, Program& program) {
  const LaunchOptions& options = *program.launch->options;
  if (!options.print) return true;
  const auto& data = static_cast<const ReportData&>(*step.data);
  const std::string head =
      absl::StrCat("pid (", program.id[0], ", ", program.id[1], ", ", program.id[2], ")");
  std::string text;
  if (data.values.empty()) absl::StrAppend(&text, head, data.text, "\n");
  for (size_t i = 0; i < data.values.size(); ++i) {
    const ReportData::Value& value = data.values[i];
    const std::byte* const elements = program.At<std::byte>(step.in[i]);
    const int64_t count = value.type.elements();
    const int64_t printed = std::min(count, options.max_printed_elements);
    for (int64_t e = 0; e < printed; ++e) {
      const std::byte* const element =
          elements + (value.uniform ? 0 : e * LaneBytes(LaneOf(value.type)));
      absl::StrAppend(&text, head, " idx (", IndexText(value.type, e), ")", data.text);
      if (data.values.size() > 1) absl::StrAppend(&text, "(operand ", i, ") ");
      absl::StrAppend(&text, NumberText(value, element, data.is_hex), "\n");
    }
    if (printed < count) absl::StrAppend(&text, head, " ... ", count - printed, " more\n");
  }
  absl::MutexLock lock(&program.launch->print_mutex);
  options.print(text);
  return true;
}

}  // namespace tritonrl::ttir
