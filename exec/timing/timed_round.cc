#include "exec/timing/timed_round.h"

#include <algorithm>
#include <cmath>

#include "absl/time/clock.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

std::vector<GpuState> ReadGpu(const Json& answer) {
  std::vector<GpuState> states;
  const auto found = answer.find("gpu");
  if (found == answer.end() || !found->is_array()) return states;
  for (const Json& json : *found) {
    if (!json.is_object()) continue;
    const auto throttled = json.find("throttled");
    states.push_back(
        {.sm_mhz = PositiveNumber(json, "sm_mhz"),
         .other_programs = static_cast<int>(std::min(PositiveNumber(json, "other_programs"), 1e6)),
         .throttled =
             throttled != json.end() && throttled->is_boolean() && throttled->get<bool>()});
  }
  return states;
}

}  // namespace

Json Member(const std::optional<std::string>& message, const char* name) {
  if (!message.has_value()) return nullptr;
  const Json json = Json::parse(*message, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.size() != 1 || !json.contains(name)) return nullptr;
  return json[name];
}

double PositiveNumber(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return std::isfinite(value) && value > 0 ? value : 0;
}

bool OrderRound(const RoundOrder& order,
                const std::function<std::optional<std::string>(const std::string&)>& ask,
                TimedRound* round, bool* ended) {
  const Json message{{"round",
                      {{"calls", order.calls},
                       {"trial", order.trial},  // the one loaded last
                       {"checked", order.checked},
                       {"spin_seconds", order.spin_seconds},
                       {"plain", order.plain}}}};
  const absl::Time start = absl::Now();
  const std::optional<std::string> reply = ask(message.dump());
  round->calls = order.calls;
  round->outside_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  *ended = !reply.has_value();
  const Json answer = Member(reply, "round");
  if (!answer.is_object() || !answer.contains("seconds")) return false;
  const Json& seconds = answer["seconds"];
  if (!seconds.is_array() || seconds.size() != static_cast<size_t>(order.calls)) return false;
  for (const Json& value : seconds) {
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
      return false;
    }
    round->event_seconds.push_back(value.get<double>());
  }
  round->gpu = ReadGpu(answer);
  return true;
}

}  // namespace tritonrl
