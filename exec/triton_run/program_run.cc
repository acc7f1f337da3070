#include "exec/triton_run/program_run.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/masked_select.h>

#include <future>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/client_run/client_job.h"
#include "exec/client_run/recorded_calls.h"
#include "exec/device/session.h"
#include "exec/device/torch_errors.h"
#include "exec/device_backend.h"
#include "exec/executor/executor_pool.h"
#include "exec/outcome/classify_outcome.h"

namespace tritonrl {
namespace {

using device::SessionResult;
using device::Value;
using Kind = device::Value::Kind;

device::SessionOptions Options(const ProgramOptions& options) {
  device::SessionOptions session;
  session.source = options.source;
  session.entry = options.entry;
  session.init_kwargs.kind = Kind::kDict;
  session.init_args.kind = Kind::kList;
  session.init_seed = options.seed;
  session.is_program = true;
  session.may_compute = true;
  session.check = options.check;
  // Descriptors stay what they are from sm_90 on, and what that hardware refuses is found.
  if (options.check) {
    session.device.capability_major = 9;
    session.device.capability_minor = 0;
    session.device.shared_bytes = 232'448;
  }
  session.print = options.print;
  session.threads = options.threads;
  session.deadline = absl::Now() + options.time_limit;
  session.calls.resize(1);
  session.calls[0].args.kind = Kind::kList;
  session.calls[0].kwargs.kind = Kind::kDict;
  session.calls[0].seed = options.seed;
  // A program may launch as much as its time allows.
  session.limits.max_forward_commands = 1'000'000;
  return session;
}

ProgramOutput DescribeTensor(const at::Tensor& tensor) {
  ProgramOutput output;
  output.is_tensor = true;
  output.what = absl::StrCat(std::string(device::NameOf(tensor.scalar_type())), " [",
                             absl::StrJoin(tensor.sizes(), ", "), "]");
  const absl::Status described = device::CatchTorch([&] {
    if (tensor.is_complex()) return;
    const at::Tensor numbers = tensor.to(at::kDouble);
    const at::Tensor finite = numbers.masked_select(at::isfinite(numbers));
    output.not_finite = numbers.numel() - finite.numel();
    if (finite.numel() == 0) return;
    output.low = finite.min().item<double>();
    output.high = finite.max().item<double>();
    output.mean = finite.mean().item<double>();
  });
  if (!described.ok()) absl::StrAppend(&output.what, " (", described.message(), ")");
  return output;
}

void DescribeOutputs(const Value& value, std::vector<ProgramOutput>* outputs) {
  switch (value.kind) {
    case Kind::kHost:
      outputs->push_back(DescribeTensor(value.host));
      return;
    case Kind::kNull:
      outputs->push_back({.what = "None"});
      return;
    case Kind::kBool:
      outputs->push_back({.what = value.integer != 0 ? "True" : "False"});
      return;
    case Kind::kInteger:
      outputs->push_back({.what = absl::StrCat(value.integer)});
      return;
    case Kind::kFloat:
      outputs->push_back({.what = absl::StrCat(value.number)});
      return;
    case Kind::kText:
      outputs->push_back({.what = value.text});
      return;
    default:
      for (const Value& item : value.items) DescribeOutputs(item, outputs);
  }
}

// Why the program did not end well; the executor's own words first.
void DescribeFailure(const SessionResult& session, ProgramResult* result) {
  if (!session.counts.kernel_errors.empty()) {
    const device::Incident& error = session.counts.kernel_errors[0];
    result->error = error.text;
    result->error_line = error.line;
  }
  if (!session.failure.has_value() || !result->error.empty()) return;
  result->error = absl::StrCat(session.failure->kind, ": ", session.failure->text);
  result->error_line = session.failure->line;
}

}  // namespace

absl::StatusOr<ProgramResult> RunProgram(const ProgramOptions& options) {
  WorkerPoolOptions pool_options = options.pool;
  pool_options.workers = 1;
  ASSIGN_OR_RETURN(pool_options, ClientPoolOptions(std::move(pool_options)));
  ExecutorPoolOptions executor_options;
  executor_options.process.threads = options.threads;
  auto starting =
      std::async(std::launch::async, [&] { return ExecutorPool::Create(executor_options); });
  ASSIGN_OR_RETURN(const std::unique_ptr<WorkerPool> pool, WorkerPool::Start(pool_options));
  ASSIGN_OR_RETURN(const std::unique_ptr<ExecutorPool> executors, starting.get());
  const absl::Time began = absl::Now();
  ASSIGN_OR_RETURN(const std::unique_ptr<ExecutorSession> session,
                   executors->Acquire(began + options.time_limit));
  ExecLimits limits = pool->limits();
  limits.set_wall_seconds(absl::ToDoubleSeconds(options.time_limit));
  ASSIGN_OR_RETURN(const std::unique_ptr<ClientJob> job,
                   ClientJob::Start(pool.get(), options.entry, options.source, limits,
                                    began + options.time_limit + absl::Seconds(10)));
  const absl::StatusOr<SessionResult> served =
      session->Run(Options(options), /*shared=*/nullptr, job->socket());
  if (!served.ok()) job->Cancel();
  const JobReport report = job->Finish();
  ProgramResult result;
  result.seconds = absl::ToDoubleSeconds(absl::Now() - began);
  result.printed = report.output;
  result.launches = LaunchesOf(session->recording());
  if (!served.ok()) {
    // The process ended before its last word: how, its report says.
    result.error = absl::IsUnavailable(served.status())
                       ? MessageOf(Classify(report, limits, JobRole::kRunner).outcome())
                       : Message(served.status());
    return result;
  }
  result.findings = served->findings;
  DescribeFailure(*served, &result);
  if (!served->outputs.empty()) DescribeOutputs(served->outputs[0], &result.outputs);
  return result;
}

}  // namespace tritonrl
