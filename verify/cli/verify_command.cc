#include "verify/cli/verify_command.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "exec/backend/backend_factory.h"
#include "exec/device_backend.h"
#include "exec/service/remote_backend.h"
#include "tasks/loader.h"
#include "tasks/response_style.h"
#include "verify/cli/batch.h"
#include "verify/cli/case_reader.h"
#include "verify/cli/html_page.h"
#include "verify/cli/verdict_report.h"
#include "verify/pipeline/verifier.h"
#include "verify/preflight/preflight.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

namespace {

absl::StatusOr<std::string> ReadProgram(const std::string& flag, const std::string& path) {
  if (path.empty())
    return absl::InvalidArgumentError(absl::StrCat("--", flag, " is missing: give a Python file"));
  absl::StatusOr<std::string> text = ReadFile(UserPath(path));
  const absl::Status status = text.ok() ? CheckNoFence(path, *text) : text.status();
  if (!status.ok()) return AddContext(status, absl::StrCat("--", flag));
  return text;
}

absl::Status CheckMode(const VerifyCommand& command) {
  const bool pair = !command.reference.empty() || !command.candidate.empty();
  if (command.preflight) {
    if (pair || !command.in.empty() || !command.html.empty()) {
      return absl::InvalidArgumentError("--preflight goes with --tasks and --out alone");
    }
    if (!command.tasks.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--tasks is missing: a folder of task files, or one of them");
  }
  if (!command.tasks.empty() && command.in.empty()) {
    return absl::InvalidArgumentError("--tasks goes with --preflight or --in");
  }
  if (command.in.empty()) {
    if (command.out.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--out needs --in; the verdict on one pair is printed");
  }
  if (pair) {
    return absl::InvalidArgumentError("give either --in, or --reference and --candidate");
  }
  if (command.out.empty()) {
    return absl::InvalidArgumentError("--out is missing: the JSONL file for the verdicts");
  }
  if (UserPath(command.in) == UserPath(command.out)) {
    return absl::InvalidArgumentError("--in and --out are the same file");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateCommand(const VerifyCommand& command) {
  RETURN_IF_ERROR(CheckMode(command));
  const absl::Status style = CheckResponseStyleNames(command.response_style, command.code_block);
  if (!style.ok()) return absl::InvalidArgumentError("--" + Message(style));
  if (const auto rules = ParseRules(command.rules); !rules.ok()) {
    return AddContext(rules.status(), "--rules");
  }
  if (command.workers < 0 || command.workers > 1024) {
    return absl::InvalidArgumentError("--workers must be 0 to 1024");
  }
  if (command.trials < 1 || command.trials > 1000) {
    return absl::InvalidArgumentError("--trials must be 1 to 1000");
  }
  if (!(command.tolerance > 0)) return absl::InvalidArgumentError("--tolerance must be above 0");
  if (!(command.time_limit >= 0))
    return absl::InvalidArgumentError("--time_limit must not be negative");
  const std::string model = command.device_model;
  if (model != "l40s" && model != "l40s_mini") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device_model=", model, " is unknown: l40s or l40s_mini"));
  }
  if (!command.judge_url.empty() && command.judge_model.empty()) {
    return absl::InvalidArgumentError("--judge_url needs --judge_model");
  }
  return absl::OkStatus();
}

absl::StatusOr<CommandInputs> ReadCommandInputs(const VerifyCommand& command) {
  CommandInputs inputs;
  if (command.preflight) {
    auto set = LoadTasks(UserPath(command.tasks));
    if (!set.ok()) return AddContext(set.status(), "--tasks");
    for (const std::string& problem : set->problems) {
      std::fprintf(stderr, "left out: %s\n", problem.c_str());
    }
    inputs.tasks = std::move(set->tasks);
  } else if (!command.in.empty()) {
    std::vector<std::string> problems;
    auto cases = MakeCaseOptions(command.response_style, command.code_block,
                                 command.tasks.empty() ? "" : UserPath(command.tasks), &problems);
    if (!cases.ok()) return AddContext(cases.status(), "--tasks");
    for (const std::string& problem : problems) {
      std::fprintf(stderr, "left out: %s\n", problem.c_str());
    }
    inputs.cases = *std::move(cases);
    const absl::Status readable = CaseReader::Open(UserPath(command.in), inputs.cases).status();
    if (!readable.ok()) return AddContext(readable, "--in");
  } else {
    ASSIGN_OR_RETURN(inputs.reference, ReadProgram("reference", command.reference));
    ASSIGN_OR_RETURN(inputs.candidate, ReadProgram("candidate", command.candidate));
  }
  return inputs;
}

absl::StatusOr<std::unique_ptr<Judge>> MakeCommandJudge(const VerifyCommand& command) {
  if (command.judge_url.empty()) return std::unique_ptr<Judge>();
  return MakeHttpJudge({.url = command.judge_url,
                        .model = command.judge_model,
                        .api_key_variable = command.judge_key_variable});
}

absl::StatusOr<std::unique_ptr<DeviceBackend>> StartCommandBackend(const VerifyCommand& command) {
  if (!command.servers.empty()) {
    auto remote = ConnectToServers(
        command.servers, command.token_file,
        [](const std::string& text) { std::fprintf(stderr, "verify: %s\n", text.c_str()); });
    if (!remote.ok()) return AddContext(remote.status(), "--servers");
    return *std::move(remote);
  }
  BackendOptions options;
  auto kind = ParseBackendKind(command.backend);
  if (!kind.ok()) return AddContext(kind.status(), "--backend");
  options.kind = *kind;
  // One candidate needs one worker.
  const bool many = !command.in.empty() || command.preflight;
  options.workers = many || command.workers > 0 ? command.workers : 1;
  options.sandbox = command.sandbox;
  if (command.time_limit > 0) {
    options.pool.limits.set_wall_seconds(command.time_limit);
  }
  if (command.memory_gb > 0) {
    options.pool.limits.set_memory_bytes(static_cast<int64_t>(command.memory_gb * (1 << 30)));
  }
  return MakeBackend(options);
}

VerifierOptions MakeVerifierOptions(const VerifyCommand& command, const DeviceBackend& backend) {
  VerifierOptions options;
  // More servers may register later, so --workers may exceed the current concurrency.
  const int asked = command.servers.empty() ? 0 : command.workers;
  options.parallel = asked > 0 ? asked : backend.concurrency();
  options.seed = command.seed;
  options.trials = command.trials;
  options.atol = options.rtol = command.tolerance;
  options.rules = *ParseRules(command.rules);
  options.run_limit = absl::Seconds(command.time_limit);
  options.device_model = command.device_model;
  options.check_functionality = command.functionality;
  options.ablation = command.ablation;
  options.measure_time = command.timing;
  options.judge_parallel = command.judge_parallel;
  options.judge_cache = UserPath(command.judge_cache);
  options.cache = false;  // its memory would grow with the number of cases
  return options;
}

namespace {

constexpr int kSignalled = 128;

int Complain(int code, const std::string& sentence) {
  std::fprintf(stderr, "verify: %s\n", sentence.c_str());
  return code;
}

int Report(const VerifyCommand& command, const Verdict& verdict, const std::string& source) {
  if (command.json) {
    std::cout << VerdictToJson(verdict) << std::endl;
  } else {
    std::cout << VerdictText(verdict, source) << std::flush;
  }
  if (!IsInfraError(verdict))
    return verdict.failed_layer() == LAYER_NONE ? kExitCorrect : kExitCandidateFailed;
  const bool reference = verdict.outcome().status() == Outcome::STATUS_TASK_FAILED;
  return Complain(reference ? kExitUserError : kExitInfraError, verdict.outcome().message());
}

int RunPair(const VerifyCommand& command, DeviceBackend* backend, Judge* judge,
            const std::string& reference, const std::string& candidate) {
  Verifier verifier(MakeVerifierOptions(command, *backend), backend, judge);
  if (const absl::Status opened = verifier.Open(); !opened.ok()) {
    return Complain(kExitUserError, Message(opened));
  }
  const std::string task = command.reference;
  const Verdict verdict = verifier
                              .Submit({.task = {.id = task, .path = task, .source = reference},
                                       .code = candidate,
                                       .key = command.candidate})
                              .get();
  const int code = Report(command, verdict, candidate);
  const std::string page = command.html;
  if (page.empty()) return code;
  const absl::Status written = WritePairPage(verdict, reference, candidate, UserPath(page));
  return written.ok() ? code
                      : Complain(kExitInfraError, absl::StrCat("--html: ", Message(written)));
}

int RunMany(const VerifyCommand& command, const CaseOptions& cases, DeviceBackend* backend,
            Judge* judge) {
  const SignalHandler interrupts;
  const VerifierOptions verifier_options = MakeVerifierOptions(command, *backend);
  Verifier verifier(verifier_options, backend, judge);
  if (const absl::Status opened = verifier.Open(); !opened.ok()) {
    return Complain(kExitUserError, Message(opened));
  }
  BatchOptions options;
  options.in = UserPath(command.in);
  options.cases = cases;
  options.out = UserPath(command.out);
  options.max_in_flight = std::max(64, 8 * verifier_options.parallel);
  options.stop = [&interrupts] { return interrupts.received() != 0; };
  const absl::StatusOr<BatchSummary> summary = RunBatch(options, &verifier);
  if (!summary.ok()) {
    const bool writing =
        absl::IsUnavailable(summary.status()) || absl::IsResourceExhausted(summary.status());
    return Complain(writing ? kExitInfraError : kExitUserError, Message(summary.status()));
  }
  std::cout << SummaryText(*summary) << std::flush;
  if (const absl::Status kept = verifier.JournalStatus(); !kept.ok()) {
    return Complain(kExitInfraError, absl::StrCat("--judge_cache: ", Message(kept)));
  }
  const std::string page = command.html;
  if (!page.empty()) {
    const absl::Status written =
        WriteBatchPage(options.in, options.out, UserPath(page), kMaxPageCases, cases);
    if (!written.ok()) return Complain(kExitInfraError, absl::StrCat("--html: ", Message(written)));
  }
  if (summary->interrupted) return kSignalled + interrupts.received();
  if (summary->totals.input_errors > 0) return kExitUserError;
  return summary->totals.infra_errors > 0 ? kExitInfraError : kExitCorrect;
}

int CheckTheTasks(const VerifyCommand& command, DeviceBackend* backend,
                  const std::vector<Task>& tasks) {
  const SignalHandler interrupts;
  PreflightOptions options = PreflightOptionsFrom(MakeVerifierOptions(command, *backend));
  options.stop = [&interrupts] { return interrupts.received() != 0; };
  const std::string out = command.out;
  const auto checks = RunPreflight(tasks, backend, options, out.empty() ? "" : UserPath(out));
  if (!checks.ok()) return Complain(kExitInfraError, "--out: " + Message(checks.status()));
  std::cout << PreflightTable(*checks, options.rules) << std::flush;
  if (interrupts.received() != 0) return kSignalled + interrupts.received();
  const PreflightTotals totals = Count(*checks);
  if (totals.broken > 0) return kExitUserError;
  if (totals.not_checked > 0) return kExitInfraError;
  return totals.unsound > 0 ? kExitCandidateFailed : kExitCorrect;
}

}  // namespace

int ReportCommandError(const absl::Status& status) {
  return Complain(kExitUserError, Message(status));
}

int RunCommand(const VerifyCommand& command) {
  if (const absl::Status checked = ValidateCommand(command); !checked.ok())
    return ReportCommandError(checked);
  const absl::StatusOr<CommandInputs> inputs = ReadCommandInputs(command);
  if (!inputs.ok()) return ReportCommandError(inputs.status());
  auto judge = MakeCommandJudge(command);
  if (!judge.ok()) return ReportCommandError(judge.status());
  auto backend = StartCommandBackend(command);
  if (!backend.ok()) {
    const absl::Status& status = backend.status();
    const bool user = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                      absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);
    return Complain(user ? kExitUserError : kExitInfraError, Message(backend.status()));
  }
  if (command.preflight) return CheckTheTasks(command, backend->get(), inputs->tasks);
  if (!command.in.empty()) return RunMany(command, inputs->cases, backend->get(), judge->get());
  return RunPair(command, backend->get(), judge->get(), inputs->reference, inputs->candidate);
}

absl::Status ParseFlags(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (!absl::ConsumePrefix(&argument, "--")) {
      return absl::InvalidArgumentError(
          absl::StrCat("unexpected argument '", argv[i],
                       "': programs are given by --reference and --candidate"));
    }
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    std::string value =
        equals == absl::string_view::npos ? "" : std::string(argument.substr(equals + 1));
    if (flag == nullptr && absl::StartsWith(name, "no") && equals == absl::string_view::npos) {
      flag = absl::FindCommandLineFlag(name.substr(2));
      if (flag != nullptr && !flag->IsOfType<bool>()) flag = nullptr;
      value = "false";
    } else if (flag != nullptr && equals == absl::string_view::npos) {
      if (flag->IsOfType<bool>()) {
        value = "true";
      } else if (i + 1 < argc) {
        value = argv[++i];
      } else {
        return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
      }
    }
    if (flag == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("unknown flag --", name, "; see --help"));
    std::string error;
    if (!flag->ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, "='", value, "' is not a value it can take: ", error));
    }
  }
  return absl::OkStatus();
}

std::string FlagsHelp(absl::string_view source_file) {
  std::map<absl::string_view, absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::EndsWith(flag->Filename(), source_file)) flags[name] = flag;
  }
  std::string text;
  for (const auto& [name, flag] : flags) {
    absl::StrAppend(&text, "  --", name, ": ", flag->Help(), " (default '", flag->DefaultValue(),
                    "')\n");
  }
  return text;
}

}  // namespace tritonrl
