#include "exec/client_run/candidate_timing.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "exec/device_gate.h"

namespace tritonrl {

ReplayTiming CandidateTiming::Measure(int64_t operators) {
  ReplaySides sides;
  sides.reference = [this](const nlohmann::json& order, const char* answer) {
    return setup_.reference_result.session->Ask(
        {{"replays", order}}, answer,
        {.deadline = setup_.deadline,
         .answer_timeout = absl::Seconds(setup_.limits.wall_seconds())});
  };
  sides.begin = [this](bool direct) { return recorded_.BeginTiming(direct, &session_); };
  sides.candidate = [this](const CandidateRound& round) { return Replay(round); };
  sides.alone = [this] { return WaitUntilAlone(); };
  sides.launches = static_cast<int64_t>(session_.recording().launches.size());
  sides.operators = operators;
  ReplayTiming timed = MeasureReplays(setup_.request(), setup_.reference_result, sides);
  if (setup_.context.lease != nullptr) setup_.context.lease->ReturnToShared(setup_.deadline);
  return timed;
}

absl::StatusOr<std::vector<double>> CandidateTiming::Replay(const CandidateRound& round) {
  TimeRequest request;
  request.count = round.count;
  request.with_launches = round.with_launches;
  request.output = round.checked;
  ASSIGN_OR_RETURN(std::vector<double> seconds, recorded_.TimeReplays(request, &session_));
  // The paper's rules know no check of timed calls.
  if (!round.checked || setup_.request().rules() == RULES_PAPER) return seconds;
  judged_ = true;
  if (judge_.Judge(0, 0, recorded_.output())) return seconds;
  return absl::InvalidArgumentError("the output of a timed call is wrong");
}

bool CandidateTiming::WaitUntilAlone() {
  DeviceGate::Lease* const lease = setup_.context.lease;
  if (lease != nullptr && !lease->AcquireExclusive(setup_.deadline)) return false;
  recorded_.set_deadline(setup_.LatestEnd());
  return true;
}

}  // namespace tritonrl
