#include "verify/call.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/backend/make_backend.h"
#include "exec/service/remote_backend.h"
#include "tasks/loader.h"
#include "verify/cases.h"
#include "verify/exec_mode.h"

namespace tritonrl {
namespace {

absl::StatusOr<std::string> ReadProgram(const std::string& flag, const std::string& path) {
  if (path.empty())
    return absl::InvalidArgumentError(absl::StrCat("--", flag, " is missing: give a Python file"));
  absl::StatusOr<std::string> text = ReadFile(UserPath(path));
  if (!text.ok()) return AddContext(text.status(), absl::StrCat("--", flag));
  return text;
}

absl::Status CheckMode(const VerifyCall& call) {
  const bool pair = !call.reference.empty() || !call.candidate.empty();
  if (call.preflight) {
    if (pair || !call.in.empty() || !call.html.empty()) {
      return absl::InvalidArgumentError("--preflight goes with --tasks and --out alone");
    }
    if (!call.tasks.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--tasks is missing: a folder of task files, or one of them");
  }
  if (!call.tasks.empty()) {
    return absl::InvalidArgumentError("--tasks goes with --preflight");
  }
  if (call.in.empty()) {
    if (call.out.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--out needs --in; the verdict on one pair is printed");
  }
  if (pair) {
    return absl::InvalidArgumentError("give either --in, or --reference and --candidate");
  }
  if (call.out.empty()) {
    return absl::InvalidArgumentError("--out is missing: the JSONL file for the verdicts");
  }
  if (UserPath(call.in) == UserPath(call.out)) {
    return absl::InvalidArgumentError("--in and --out are the same file");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCall(const VerifyCall& call) {
  RETURN_IF_ERROR(CheckMode(call));
  if (const auto mode = ParseExecMode(call.mode); !mode.ok()) {
    return AddContext(mode.status(), "--mode");
  }
  if (call.workers < 0 || call.workers > 1024) {
    return absl::InvalidArgumentError("--workers must be 0 to 1024");
  }
  if (call.trials < 1 || call.trials > 1000) {
    return absl::InvalidArgumentError("--trials must be 1 to 1000");
  }
  if (!(call.tolerance >= 0)) return absl::InvalidArgumentError("--tolerance must not be negative");
  if (!(call.time_limit >= 0))
    return absl::InvalidArgumentError("--time_limit must not be negative");
  const std::string model = call.device_model;
  if (model != "l40s" && model != "l40s_mini") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device_model=", model, " is unknown: l40s or l40s_mini"));
  }
  if (!call.judge_url.empty() && call.judge_model.empty()) {
    return absl::InvalidArgumentError("--judge_url needs --judge_model");
  }
  return absl::OkStatus();
}

absl::StatusOr<CallInputs> ReadInputs(const VerifyCall& call) {
  CallInputs inputs;
  if (call.preflight) {
    auto set = LoadTasks(UserPath(call.tasks));
    if (!set.ok()) return AddContext(set.status(), "--tasks");
    for (const std::string& problem : set->problems) {
      std::fprintf(stderr, "left out: %s\n", problem.c_str());
    }
    inputs.tasks = std::move(set->tasks);
  } else if (!call.in.empty()) {
    const absl::Status readable = CaseReader::Open(UserPath(call.in)).status();
    if (!readable.ok()) return AddContext(readable, "--in");
  } else {
    ASSIGN_OR_RETURN(inputs.reference, ReadProgram("reference", call.reference));
    ASSIGN_OR_RETURN(inputs.candidate, ReadProgram("candidate", call.candidate));
  }
  return inputs;
}

absl::StatusOr<std::unique_ptr<Judge>> MakeCallJudge(const VerifyCall& call) {
  if (call.judge_url.empty()) return std::unique_ptr<Judge>();
  return MakeHttpJudge({.url = call.judge_url,
                        .model = call.judge_model,
                        .api_key_variable = call.judge_key_variable});
}

absl::StatusOr<std::unique_ptr<DeviceBackend>> StartCallBackend(const VerifyCall& call) {
  if (!call.servers.empty()) {
    auto remote = ConnectToServers(call.servers, call.token_file, [](const std::string& text) {
      std::fprintf(stderr, "verify: %s\n", text.c_str());
    });
    if (!remote.ok()) return AddContext(remote.status(), "--servers");
    return *std::move(remote);
  }
  BackendOptions options;
  auto kind = ParseBackendKind(call.backend);
  if (!kind.ok()) return AddContext(kind.status(), "--backend");
  options.kind = *kind;
  // One candidate needs one worker.
  const bool many = !call.in.empty() || call.preflight;
  options.workers = many || call.workers > 0 ? call.workers : 1;
  options.sandbox = call.sandbox;
  if (call.time_limit > 0) {
    options.pool.limits.set_wall_seconds(call.time_limit);
  }
  if (call.memory_gb > 0) {
    options.pool.limits.set_memory_bytes(static_cast<int64_t>(call.memory_gb * (1 << 30)));
  }
  return MakeBackend(options);
}

VerifierOptions VerifierOptionsOf(const VerifyCall& call, const DeviceBackend& backend) {
  VerifierOptions options;
  // More servers may come later, so that a larger number can make sense.
  const int asked = call.servers.empty() ? 0 : call.workers;
  options.parallel = asked > 0 ? asked : backend.concurrency();
  options.seed = call.seed;
  options.trials = call.trials;
  options.atol = options.rtol = call.tolerance;
  options.mode = *ParseExecMode(call.mode);
  options.run_limit = absl::Seconds(call.time_limit);
  options.device_model = call.device_model;
  options.check_functionality = call.functionality;
  options.ablation = call.ablation;
  options.gpu_profile = call.gpu_profile;
  options.measure_time = call.timing;
  options.judge_parallel = call.judge_parallel;
  options.judge_cache = UserPath(call.judge_cache);
  options.cache = false;  // would grow with the number of cases
  return options;
}

}  // namespace tritonrl
