#include "exec/timing/timing_result.h"

#include <algorithm>
#include <cmath>

namespace tritonrl {

void AddGpuStates(const nlohmann::json& answer, std::vector<GpuState>* states) {
  const auto found = answer.find("gpu");
  if (found == answer.end() || !found->is_array()) return;
  for (const nlohmann::json& json : *found) {
    if (!json.is_object()) continue;
    const auto throttled = json.find("throttled");
    states->push_back(
        {.sm_mhz = PositiveNumber(json, "sm_mhz"),
         .other_programs = static_cast<int>(std::min(PositiveNumber(json, "other_programs"), 1e6)),
         .throttled =
             throttled != json.end() && throttled->is_boolean() && throttled->get<bool>()});
  }
}

double PositiveNumber(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return std::isfinite(value) && value > 0 ? value : 0;
}

}  // namespace tritonrl
