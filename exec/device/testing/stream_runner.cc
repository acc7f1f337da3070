#include "exec/device/testing/stream_runner.h"

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/device/testing/scripted_channel.h"

namespace tritonrl::device {

absl::StatusOr<std::unique_ptr<StreamRunner>> StreamRunner::Create() {
  at::set_num_threads(1);
  ASSIGN_OR_RETURN(std::unique_ptr<Arena> arena, Arena::Create());
  return std::unique_ptr<StreamRunner>(new StreamRunner(std::move(arena)));
}

StreamRunner::StreamRunner(std::unique_ptr<Arena> arena) : arena_(std::move(arena)) {
  CallInputs call;
  call.args = Value::List({Value::Host(at::ones({4}))});
  call.kwargs.kind = Value::Kind::kDict;
  options_.calls = {call};
  options_.limits.max_memory_bytes = 1 << 15;
}

absl::Status StreamRunner::Run(const std::vector<Frame>& stream) {
  options_.deadline = absl::Now() + absl::Minutes(5);
  Session session(options_, arena_.get(), &compiler_);
  ScriptedChannel channel(stream);
  const absl::StatusOr<SessionResult> result = session.Run(channel);
  ReplayOptions replay;
  for (const TensorRef& input : session.recording().call.inputs) {
    replay.inputs.push_back(at::ones(input.shape));
  }
  replay.run.skip = [](const LaunchCommand&, int64_t number) { return number == 0; };
  replay.deadline = options_.deadline;
  session.ReplayCall(replay).status().IgnoreError();
  session.ReplayConstructor(2).status().IgnoreError();
  return result.status();
}

absl::Status CheckEnd(const absl::Status& end) {
  if (end.ok()) return end;
  const bool expected = absl::IsUnavailable(end) || absl::IsResourceExhausted(end) ||
                        (absl::IsInvalidArgument(end) &&
                         absl::StartsWith(end.message(), "the candidate's process sent "));
  if (expected && !absl::StrContains(end.message(), '\n')) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the session ended with ", end.ToString()));
}

}  // namespace tritonrl::device
