#include "exec/outcome/classify_outcome.h"

#include <signal.h>
#include <string.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "exec/device_backend.h"
#include "exec/outcome/result_json.h"

namespace tritonrl {
namespace {

struct Finding {
  Outcome::Reason reason;
  std::string message;
};

std::string Megabytes(int64_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

Finding FromSignal(const JobReport& report, const ExecLimits& limits) {
  const bool cpu_used_up = report.cpu_seconds >= 0.9 * limits.cpu_seconds();
  if (report.signal == SIGXCPU || (report.signal == SIGKILL && cpu_used_up)) {
    return {Outcome::TIMEOUT,
            absl::StrFormat("used up its %.0f s of processor time", limits.cpu_seconds())};
  }
  return {Outcome::CRASHED,
          absl::StrCat("ended by signal ", report.signal, " (", strsignal(report.signal), ")")};
}

// Sets `finding` and returns true if the worker, the pool or the caller's deadline ended the job,
// which says nothing about the job's program.
bool FromOurSide(const JobReport& report, Finding* finding) {
  switch (report.end) {
    case JobEnd::kNotStarted:
      *finding = {Outcome::WORKER_LOST, absl::StrCat("no worker took the job: ", report.detail)};
      return true;
    case JobEnd::kWorkerDied:
      if (report.out_of_memory) return false;
      *finding = {Outcome::WORKER_LOST, absl::StrCat("the worker was lost: ", report.detail)};
      return true;
    case JobEnd::kQueueTimeout:
      *finding = {Outcome::DEADLINE,
                  absl::StrFormat("no worker was free within %.1f s", report.queue_seconds)};
      return true;
    case JobEnd::kDeadline:
      *finding = {Outcome::DEADLINE,
                  absl::StrFormat("the caller's deadline ended the job after %.1f s, before its "
                                  "own limit; it had waited %.1f s",
                                  report.wall_seconds, report.queue_seconds)};
      return true;
    case JobEnd::kStopped:
      *finding = {Outcome::CANCELLED, "the worker pool was stopped"};
      return true;
    default:
      return false;
  }
}

Finding FromJobSide(const JobReport& report, const ExecLimits& limits) {
  if (report.out_of_memory) {
    return {Outcome::OUT_OF_MEMORY, absl::StrCat("ended by the kernel for using more than ",
                                                 Megabytes(limits.memory_bytes()), " of memory")};
  }
  if (report.refused_forks || report.end == JobEnd::kProcessLimit) {
    return {Outcome::PROCESS_LIMIT,
            absl::StrCat("reached the limit of ", limits.processes(), " processes")};
  }
  switch (report.end) {
    case JobEnd::kTimeout:
      return {Outcome::TIMEOUT, absl::StrFormat("killed after %.1f s, the limit is %.1f s",
                                                report.wall_seconds, limits.wall_seconds())};
    case JobEnd::kOutputLimit:
      return {Outcome::OUTPUT_LIMIT, absl::StrCat("killed after printing ", report.output_bytes,
                                                  " bytes, the limit is ", limits.output_bytes())};
    case JobEnd::kChannelLimit:
      return {Outcome::BAD_RESULT, "killed for flooding the result channel"};
    default:
      break;
  }
  if (report.signal != 0) return FromSignal(report, limits);
  return {Outcome::EXITED, absl::StrCat("left the process with exit code ", report.exit_code,
                                        " before there was a result")};
}

void AddMeasurements(const JobReport& report, ExecResult* result) {
  result->set_output(report.output);
  result->set_output_bytes(report.output_bytes);
  result->set_wall_seconds(report.wall_seconds);
  result->set_queue_seconds(report.queue_seconds);
  result->set_cpu_seconds(report.cpu_seconds);
  result->set_peak_rss_bytes(report.peak_rss_bytes);
  result->set_attempts(1);
}

// Assigns the blame for a job's failure: a failure of the reference is the task's, and a failure
// before any foreign code began is an infrastructure error.
Finding Blame(const JobReport& report, const JobChannel& channel, JobRole role,
              const Finding& finding) {
  const bool began = role == JobRole::kRunner ? channel.candidate_began : !channel.phase.empty();
  if (!began && !channel.setup_error.empty()) {
    return {Outcome::INTERNAL_ERROR,
            absl::StrCat("the job's process was not confined: ", channel.setup_error)};
  }
  // If the worker died, the channel was lost with it, so an empty phase does not show that the job
  // had not begun.
  if (!began && report.end != JobEnd::kWorkerDied) {
    return {Outcome::INTERNAL_ERROR, absl::StrCat("before the job began: ", finding.message)};
  }
  if (role == JobRole::kRunner) return finding;
  return {Outcome::REFERENCE_FAILED, absl::StrCat("the reference ", finding.message)};
}

ExecResult Unfinished(const JobReport& report, const ExecLimits& limits,
                      const absl::StatusOr<JobChannel>& channel, JobRole role) {
  ExecResult result;
  Finding finding;
  const std::string phase = channel.ok() ? channel->phase : "";
  result.set_phase(phase.empty() ? "start" : phase);
  if (!FromOurSide(report, &finding)) {
    finding = FromJobSide(report, limits);
    const bool ended_normally = report.end == JobEnd::kExit && report.signal == 0;
    if (!channel.ok() && (ended_normally || report.end == JobEnd::kChannelLimit)) {
      finding = {Outcome::BAD_RESULT, std::string(channel.status().message())};
    }
    if (channel.ok()) {
      finding = Blame(report, *channel, role, finding);
    } else if (role != JobRole::kRunner) {
      finding = {Outcome::REFERENCE_FAILED, absl::StrCat("the reference ", finding.message)};
    }
  }
  SetOutcome(finding.reason, finding.message, result.mutable_outcome());
  result.mutable_outcome()->set_detail(
      report.output);  // beginning and end of the output, with the traceback of a crash
  return result;
}

}  // namespace

ExecResult Classify(const JobReport& report, const ExecLimits& limits, JobRole role,
                    std::string* result_text) {
  const absl::StatusOr<JobChannel> channel = ParseChannel(report.channel, role);
  const bool finished =
      report.end == JobEnd::kExit && report.exit_code == 0 && channel.ok() && channel->has_result;
  ExecResult result = finished ? channel->result : Unfinished(report, limits, channel, role);
  if (finished && result_text != nullptr) *result_text = channel->result_text;
  AddMeasurements(report, &result);
  return result;
}

}  // namespace tritonrl
