#include "exec/candidate/gpu_profile.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "base/status.h"
#include "base/utf8.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxKernels = 64;
constexpr size_t kMaxName = 1200;  // 300 characters of UTF-8

// The members of an object that has these and no others.
bool HasExactly(const Json& json, std::initializer_list<const char*> names) {
  if (!json.is_object() || json.size() != names.size()) return false;
  for (const char* name : names) {
    if (!json.contains(name)) return false;
  }
  return true;
}

bool IsText(const Json& json) {
  return json.is_string() && json.get_ref<const std::string&>().size() <= kMaxName;
}

bool ReadKernel(const Json& json, GpuKernel* kernel) {
  if (!HasExactly(json, {"name", "calls", "seconds", "own"})) return false;
  if (!IsText(json["name"]) || !json["calls"].is_number_integer() || !json["seconds"].is_number() ||
      !json["own"].is_boolean()) {
    return false;
  }
  const double seconds = json["seconds"].get<double>();
  if (!(seconds >= 0) || !std::isfinite(seconds) || json["calls"].get<int64_t>() < 0) return false;
  kernel->set_name(RepairUtf8(json["name"].get<std::string>()));
  kernel->set_calls(json["calls"].get<int64_t>());
  kernel->set_seconds(seconds);
  kernel->set_own(json["own"].get<bool>());
  return true;
}

}  // namespace

std::string ProfileOrder(int trial, double seconds) {
  return Json{{"profile", {{"trial", trial}, {"seconds", seconds}}}}.dump();
}

absl::StatusOr<GpuProfile> ParseGpuProfile(absl::string_view answer, uint64_t memory_bytes) {
  const absl::Status nonsense =
      absl::InvalidArgumentError("an answer is not the result of the profiled call");
  const Json json = Json::parse(answer.begin(), answer.end(), nullptr, /*allow_exceptions=*/false);
  if (!HasExactly(json, {"profiled"})) return nonsense;
  const Json& profiled = json["profiled"];
  if (!HasExactly(profiled, {"output", "kernels", "note"}) || !IsText(profiled["note"]) ||
      !profiled["kernels"].is_array() || profiled["kernels"].size() > kMaxKernels) {
    return nonsense;
  }
  GpuProfile profile;
  profile.note = RepairUtf8(profiled["note"].get<std::string>());
  for (const Json& kernel : profiled["kernels"]) {
    if (!ReadKernel(kernel, &profile.kernels.emplace_back())) return nonsense;
  }
  if (!profiled["output"].is_null()) {
    ASSIGN_OR_RETURN(profile.output, ParseLayout(profiled["output"], memory_bytes));
  }
  return profile;
}

}  // namespace tritonrl
