// Benchmarks and graphs: commands between a begin and an end.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/command_handler.h"
#include "exec/device/replay.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {

namespace {

constexpr int kTimedRuns = 3;

}  // namespace

// What a benchmark takes. On a GPU a first run also loads the kernel, tags its bytes and is waited
// for, so that its time says little: the command runs again, alone, and all is put back later.
void CommandHandler::AddTime(absl::Duration on_cpu, const std::function<absl::Status()>& again) {
  if (!range_.has_value() || range_->is_graph) return;
  const at::Device place = device_.memory().device();
  if (place.is_cpu()) {
    range_->spent += on_cpu;
    return;
  }
  std::vector<double> ms;
  const ModeScope bare(device_, RunMode::kBare);
  const absl::Status status = CatchTorch([&] {
    for (int i = 0; i < kTimedRuns; ++i) ms.push_back(MillisecondsOf(place, again));
  });
  if (!status.ok()) return;
  std::sort(ms.begin(), ms.end());
  range_->spent += absl::Milliseconds(ms[ms.size() / 2]);
}

void CommandHandler::BeginRange(bool is_graph) {
  range_.emplace();
  range_->is_graph = is_graph;
  range_->generators = device_.generators().Save();
  device_.set_undo_log(&range_->log);
}

absl::Status CommandHandler::EndRange() {
  device_.set_undo_log(nullptr);
  device_.generators().Restore(range_->generators);
  RETURN_IF_ERROR(range_->log.Restore(device_.memory(), /*revive=*/false));
  for (const int64_t storage : range_->made) {
    if (device_.memory().Find(storage) != nullptr) {
      RETURN_IF_ERROR(device_.memory().Revive(storage));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Reply> CommandHandler::Bench(const Json& message) {
  ASSIGN_OR_RETURN(const bool begin, BoolField(message, "begin"));
  if (begin) {
    if (range_.has_value()) {
      return ErrorReply(absl::FailedPreconditionError("a benchmark or a graph is going on"));
    }
    ++counts_.benches;
    BeginRange(/*is_graph=*/false);
    return Reply();
  }
  if (!range_.has_value() || range_->is_graph) return Hostile("the end of no benchmark");
  RETURN_IF_ERROR(EndRange());
  Reply reply;
  reply.header["ms"] = absl::ToDoubleMilliseconds(range_->spent);
  range_.reset();
  return reply;
}

absl::StatusOr<Reply> CommandHandler::Graph(const Json& message) {
  ASSIGN_OR_RETURN(const bool begin, BoolField(message, "begin"));
  if (begin) {
    if (range_.has_value() || graphs_.size() >= static_cast<size_t>(device_.limits().max_graphs)) {
      return ErrorReply(absl::FailedPreconditionError("no graph can be captured now"));
    }
    BeginRange(/*is_graph=*/true);
    return Reply();
  }
  if (!range_.has_value() || !range_->is_graph) return Hostile("the end of no graph");
  RETURN_IF_ERROR(EndRange());
  Reply reply;
  reply.header["graph"] = graphs_.size();
  graphs_.push_back(std::move(range_->commands));
  range_.reset();
  return reply;
}

absl::StatusOr<Reply> CommandHandler::ReplayGraph(const Json& message) {
  ASSIGN_OR_RETURN(const int64_t number, IntegerField(message, "graph", 0, INT32_MAX));
  if (number >= static_cast<int64_t>(graphs_.size())) return Hostile("a graph that does not exist");
  if (range_.has_value() && range_->is_graph) {
    return ErrorReply(absl::FailedPreconditionError("a graph cannot replay another"));
  }
  const CommandList& commands = graphs_[number];
  RETURN_IF_ERROR(CountCommands(static_cast<int64_t>(commands.size())));
  RunOptions options;
  // The constructor may capture what forward may not do, or not on these contents.
  if (phase_ == Phase::kForward) {
    options.check = [this](const BoundCall& bound) { return CheckPolicy(bound); };
  } else if (!range_.has_value()) {
    options.launched = [this](const LaunchCommand& launch) { device_.NoteLaunchOfInit(launch); };
  }
  const absl::Time began = absl::Now();
  const auto run = RunCommands(commands, phase_, options, device_);
  if (absl::IsPermissionDenied(run.status())) return Refuse(run.status(), LineOf(message));
  if (range_.has_value()) {
    AddTime(absl::Now() - began,
            [&] { return RunCommands(commands, phase_, RunOptions(), device_).status(); });
  } else {
    list_->insert(list_->end(), commands.begin(), commands.end());
    counts_.launches += CountLaunches(commands);
  }
  return AfterLaunch(run.status(), LineOf(message));
}

}  // namespace tritonrl::device
