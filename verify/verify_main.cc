// Checks one candidate program against one reference program and prints the verdict, or many and
// writes a line for each.
//
//   bazel run //verify:verify -- --reference=a.py --candidate=b.py [--json] [--html=page.html]
//   bazel run //verify:verify -- --in=cases.jsonl|FOLDER --out=verdicts.jsonl [--html=page.html]
//   bazel run //verify:verify -- --preflight --tasks=FOLDER|reference.py [--out=preflight.jsonl]
//
// Exit codes of one pair: 0 the candidate is correct; 1 the candidate failed a layer; 2 a mistake
// in the call or in the reference (missing file, unknown value, a reference that does not run); 3
// no verdict for a reason of ours (no sandbox on this machine, a lost worker, a judge that does not
// answer). Of a batch: 0 every case has a verdict, whichever; 2 a mistake in the call, or broken
// cases in the input (the others are checked); 3 cases without a verdict, or a file that cannot be
// written; 130 and 143 stopped by SIGINT or SIGTERM: the same command goes on. Of a preflight: 0
// every task is sound; 1 some are unsound; 2 a mistake in the call, or references that do not run;
// 3 tasks that could not be checked; 130 and 143 stopped.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/interrupts.h"
#include "base/status.h"
#include "exec/make_backend.h"
#include "exec/remote_backend.h"
#include "tasks/loader.h"
#include "verify/batch.h"
#include "verify/cases.h"
#include "verify/exec_mode.h"
#include "verify/html_page.h"
#include "verify/judge.h"
#include "verify/parse_flags.h"
#include "verify/preflight_report.h"
#include "verify/report.h"
#include "verify/verdict.h"
#include "verify/verifier.h"

ABSL_FLAG(std::string, reference, "", "Python file with Model, get_inputs and get_init_inputs");
ABSL_FLAG(std::string, candidate, "", "Python file with ModelNew and its Triton kernels");
ABSL_FLAG(std::string, in, "",
          "many cases: a JSONL file (id, reference_source, candidate_source) or a folder "
          "(NAME_reference.py beside NAME_*.py, or NAME/reference.py beside NAME/*.py)");
ABSL_FLAG(std::string, out, "", "JSONL file for the verdicts on --in; goes on where it stopped");
ABSL_FLAG(std::string, html, "", "also write a web page with every verdict to this file");
ABSL_FLAG(
    std::string, servers, "",
    "run candidates at servers (//exec:server): the folder they --register in, written with a "
    "'/', or HOST:PORT,HOST:PORT with --token_file");
ABSL_FLAG(std::string, token_file, "", "file with the token of --servers given by address");
ABSL_FLAG(int, workers, 0, "candidates run at the same time; 0: as the backend likes");
ABSL_FLAG(bool, json, false, "print the verdict as one JSON object");
ABSL_FLAG(std::string, backend, "auto",
          "auto, interpreter (no GPU needed, times are modelled) or cuda");
ABSL_FLAG(std::string, sandbox, "bubblewrap",
          "bubblewrap, or none: run the candidate without confinement");
ABSL_FLAG(std::string, device_model, "l40s",
          "figures of modelled times: l40s, or l40s_mini for tiny tasks");
ABSL_FLAG(uint64_t, seed, 0, "keys weights and random inputs");
ABSL_FLAG(int, trials, 5, "random inputs on which both must agree");
ABSL_FLAG(double, tolerance, 1e-2, "absolute and relative tolerance");
ABSL_FLAG(std::string, mode, "paper",
          "paper (its rules exactly), or robust: against float64 with a tolerance made of the "
          "reference's own error, on further inputs");
ABSL_FLAG(
    bool, preflight, false,
    "check the tasks of --tasks themselves: results that ought not to pass are tried on them");
ABSL_FLAG(std::string, tasks, "", "folder of task files, or one of them, for --preflight");
ABSL_FLAG(double, time_limit, 0,
          "seconds for the whole run of the candidate; 0: the backend's own (interpreter 30, cuda "
          "180)");
ABSL_FLAG(double, memory_gb, 0, "memory limit of the candidate in GiB; 0: the backend's own");
ABSL_FLAG(bool, functionality, true,
          "false: skip linter and run-time audit (figures without the robust verifier)");
ABSL_FLAG(bool, ablation, true, "false: do not call forward again with kernels that write nothing");
ABSL_FLAG(bool, gpu_profile, true,
          "on a GPU, one call more under a profiler; it takes seconds to start");
ABSL_FLAG(std::string, judge_url, "",
          "OpenAI-compatible chat completions endpoint of a judge; empty: no judge");
ABSL_FLAG(std::string, judge_model, "", "model name for --judge_url");
ABSL_FLAG(std::string, judge_key_variable, "",
          "environment variable that holds the endpoint's key");
ABSL_FLAG(int, judge_parallel, 16, "questions to the judge that are in flight at the same time");
ABSL_FLAG(std::string, judge_cache, "",
          "file that keeps the judge's opinions for later runs; empty: none is kept");

namespace tritonrl {
namespace {

constexpr int kCorrect = 0, kCandidateFailed = 1, kUserError = 2, kFaultOfOurs = 3;
constexpr int kSignalled = 128;

int Complain(int code, const std::string& sentence) {
  std::fprintf(stderr, "verify: %s\n", sentence.c_str());
  return code;
}

absl::StatusOr<std::string> ReadProgram(const std::string& flag, const std::string& path) {
  if (path.empty())
    return absl::InvalidArgumentError(absl::StrCat("--", flag, " is missing: give a Python file"));
  absl::StatusOr<std::string> text = ReadFile(UserPath(path));
  if (!text.ok()) return AddContext(text.status(), absl::StrCat("--", flag));
  return text;
}

// What is to be checked, read before workers are started: mistakes in the call are told first.
struct Inputs {
  std::string reference, candidate;  // of one pair
  std::vector<Task> tasks;           // of a preflight
};

absl::StatusOr<Inputs> ReadInputs() {
  Inputs inputs;
  if (absl::GetFlag(FLAGS_preflight)) {
    auto set = LoadTasks(UserPath(absl::GetFlag(FLAGS_tasks)));
    if (!set.ok()) return AddContext(set.status(), "--tasks");
    for (const std::string& problem : set->problems) {
      std::fprintf(stderr, "left out: %s\n", problem.c_str());
    }
    inputs.tasks = std::move(set->tasks);
  } else if (!absl::GetFlag(FLAGS_in).empty()) {
    const absl::Status readable = CaseReader::Open(UserPath(absl::GetFlag(FLAGS_in))).status();
    if (!readable.ok()) return AddContext(readable, "--in");
  } else {
    ASSIGN_OR_RETURN(inputs.reference, ReadProgram("reference", absl::GetFlag(FLAGS_reference)));
    ASSIGN_OR_RETURN(inputs.candidate, ReadProgram("candidate", absl::GetFlag(FLAGS_candidate)));
  }
  return inputs;
}

constexpr char kUsage[] =
    "Checks a Triton program against its PyTorch reference and prints the verdict.\n"
    "  bazel run //verify:verify -- --reference=a.py --candidate=b.py [--json] [--html=page.html]\n"
    "  bazel run //verify:verify -- --in=cases.jsonl|FOLDER --out=verdicts.jsonl "
    "[--html=page.html]\n"
    "  bazel run //verify:verify -- --preflight --tasks=FOLDER|reference.py [--mode=robust] "
    "[--out=preflight.jsonl]\n"
    "Exit codes: 0 correct, 1 the candidate failed, 2 wrong call or broken reference, 3 no verdict "
    "(fault of ours).\n"
    "With --in: 0 all have a verdict, 2 wrong call or broken cases, 3 some have no verdict, 130 "
    "interrupted.\n"
    "With --preflight: 0 all tasks are sound, 1 some are unsound, 2 wrong call or broken "
    "references, 3 some not checked, 130 interrupted.\n"
    "Flags:\n";

int PrintHelp() {
  std::cout << kUsage << FlagsHelp("verify/verify_main.cc");
  return kCorrect;
}

absl::Status CheckMode() {
  const bool pair =
      !absl::GetFlag(FLAGS_reference).empty() || !absl::GetFlag(FLAGS_candidate).empty();
  if (absl::GetFlag(FLAGS_preflight)) {
    if (pair || !absl::GetFlag(FLAGS_in).empty() || !absl::GetFlag(FLAGS_html).empty()) {
      return absl::InvalidArgumentError("--preflight goes with --tasks and --out alone");
    }
    if (!absl::GetFlag(FLAGS_tasks).empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--tasks is missing: a folder of task files, or one of them");
  }
  if (!absl::GetFlag(FLAGS_tasks).empty()) {
    return absl::InvalidArgumentError("--tasks goes with --preflight");
  }
  if (absl::GetFlag(FLAGS_in).empty()) {
    if (absl::GetFlag(FLAGS_out).empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--out needs --in; the verdict on one pair is printed");
  }
  if (pair) {
    return absl::InvalidArgumentError("give either --in, or --reference and --candidate");
  }
  if (absl::GetFlag(FLAGS_out).empty()) {
    return absl::InvalidArgumentError("--out is missing: the JSONL file for the verdicts");
  }
  if (UserPath(absl::GetFlag(FLAGS_in)) == UserPath(absl::GetFlag(FLAGS_out))) {
    return absl::InvalidArgumentError("--in and --out are the same file");
  }
  return absl::OkStatus();
}

absl::Status CheckFlags() {
  RETURN_IF_ERROR(CheckMode());
  if (const auto mode = ParseExecMode(absl::GetFlag(FLAGS_mode)); !mode.ok()) {
    return AddContext(mode.status(), "--mode");
  }
  if (absl::GetFlag(FLAGS_workers) < 0 || absl::GetFlag(FLAGS_workers) > 1024) {
    return absl::InvalidArgumentError("--workers must be 0 to 1024");
  }
  if (absl::GetFlag(FLAGS_trials) < 1 || absl::GetFlag(FLAGS_trials) > 1000) {
    return absl::InvalidArgumentError("--trials must be 1 to 1000");
  }
  if (!(absl::GetFlag(FLAGS_tolerance) >= 0))
    return absl::InvalidArgumentError("--tolerance must not be negative");
  if (!(absl::GetFlag(FLAGS_time_limit) >= 0))
    return absl::InvalidArgumentError("--time_limit must not be negative");
  const std::string model = absl::GetFlag(FLAGS_device_model);
  if (model != "l40s" && model != "l40s_mini") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device_model=", model, " is unknown: l40s or l40s_mini"));
  }
  if (!absl::GetFlag(FLAGS_judge_url).empty() && absl::GetFlag(FLAGS_judge_model).empty()) {
    return absl::InvalidArgumentError("--judge_url needs --judge_model");
  }
  return absl::OkStatus();
}

int Report(const Verdict& verdict, const std::string& source) {
  if (absl::GetFlag(FLAGS_json)) {
    std::cout << VerdictJson(verdict) << std::endl;
  } else {
    std::cout << VerdictText(verdict, source) << std::flush;
  }
  if (!IsFaultOfOurs(verdict))
    return verdict.failed_layer() == LAYER_NONE ? kCorrect : kCandidateFailed;
  const bool reference = verdict.fault_of_ours().kind() == FaultOfOurs::REFERENCE_FAILED;
  return Complain(reference ? kUserError : kFaultOfOurs, verdict.fault_of_ours().text());
}

// Null when none is asked for.
absl::StatusOr<std::unique_ptr<Judge>> MakeJudge() {
  if (absl::GetFlag(FLAGS_judge_url).empty()) return std::unique_ptr<Judge>();
  return MakeHttpJudge({.url = absl::GetFlag(FLAGS_judge_url),
                        .model = absl::GetFlag(FLAGS_judge_model),
                        .api_key_variable = absl::GetFlag(FLAGS_judge_key_variable)});
}

absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeBackendFromFlags(int workers) {
  if (!absl::GetFlag(FLAGS_servers).empty()) {
    auto remote = ConnectToServers(absl::GetFlag(FLAGS_servers), absl::GetFlag(FLAGS_token_file));
    if (!remote.ok()) return AddContext(remote.status(), "--servers");
    return *std::move(remote);
  }
  BackendOptions options;
  auto kind = ParseBackendKind(absl::GetFlag(FLAGS_backend));
  if (!kind.ok()) return AddContext(kind.status(), "--backend");
  options.kind = *kind;
  options.workers = workers;
  options.sandbox = absl::GetFlag(FLAGS_sandbox);
  if (absl::GetFlag(FLAGS_time_limit) > 0) {
    options.pool.limits.set_wall_seconds(absl::GetFlag(FLAGS_time_limit));
  }
  if (absl::GetFlag(FLAGS_memory_gb) > 0) {
    options.pool.limits.set_memory_bytes(
        static_cast<int64_t>(absl::GetFlag(FLAGS_memory_gb) * (1 << 30)));
  }
  return MakeBackend(options);
}

VerifierOptions OptionsFromFlags(const DeviceBackend& backend) {
  VerifierOptions options;
  // More servers may come later, so that a larger number can make sense.
  const int asked = absl::GetFlag(FLAGS_servers).empty() ? 0 : absl::GetFlag(FLAGS_workers);
  options.parallel = asked > 0 ? asked : backend.concurrency();
  options.seed = absl::GetFlag(FLAGS_seed);
  options.trials = absl::GetFlag(FLAGS_trials);
  options.atol = options.rtol = absl::GetFlag(FLAGS_tolerance);
  options.mode = *ParseExecMode(absl::GetFlag(FLAGS_mode));
  options.run_limit = absl::Seconds(absl::GetFlag(FLAGS_time_limit));
  options.device_model = absl::GetFlag(FLAGS_device_model);
  options.check_functionality = absl::GetFlag(FLAGS_functionality);
  options.ablation = absl::GetFlag(FLAGS_ablation);
  options.gpu_profile = absl::GetFlag(FLAGS_gpu_profile);
  options.judge_parallel = absl::GetFlag(FLAGS_judge_parallel);
  options.judge_cache = UserPath(absl::GetFlag(FLAGS_judge_cache));
  options.cache = false;  // would grow with the number of cases
  return options;
}

int RunPair(DeviceBackend* backend, Judge* judge, const std::string& reference,
            const std::string& candidate) {
  Verifier verifier(OptionsFromFlags(*backend), backend, judge);
  if (const absl::Status opened = verifier.Open(); !opened.ok()) {
    return Complain(kUserError, Message(opened));
  }
  const std::string task = absl::GetFlag(FLAGS_reference);
  const Verdict verdict = verifier
                              .Submit({.task = {.id = task, .path = task, .source = reference},
                                       .code = candidate,
                                       .key = absl::GetFlag(FLAGS_candidate)})
                              .get();
  const int code = Report(verdict, candidate);
  const std::string page = absl::GetFlag(FLAGS_html);
  if (page.empty()) return code;
  const absl::Status written =
      WritePairPage(VerdictJson(verdict), reference, candidate, UserPath(page));
  return written.ok() ? code : Complain(kFaultOfOurs, absl::StrCat("--html: ", Message(written)));
}

int RunMany(DeviceBackend* backend, Judge* judge) {
  const Interrupts interrupts;
  const VerifierOptions verifier_options = OptionsFromFlags(*backend);
  Verifier verifier(verifier_options, backend, judge);
  if (const absl::Status opened = verifier.Open(); !opened.ok()) {
    return Complain(kUserError, Message(opened));
  }
  BatchOptions options;
  options.in = UserPath(absl::GetFlag(FLAGS_in));
  options.out = UserPath(absl::GetFlag(FLAGS_out));
  options.window = std::max(64, 8 * verifier_options.parallel);
  options.stop = [&interrupts] { return interrupts.received() != 0; };
  const absl::StatusOr<BatchSummary> summary = RunBatch(options, &verifier);
  if (!summary.ok()) {
    const bool writing =
        absl::IsUnavailable(summary.status()) || absl::IsResourceExhausted(summary.status());
    return Complain(writing ? kFaultOfOurs : kUserError, Message(summary.status()));
  }
  std::cout << SummaryText(*summary) << std::flush;
  if (const absl::Status kept = verifier.JournalStatus(); !kept.ok()) {
    return Complain(kFaultOfOurs, absl::StrCat("--judge_cache: ", Message(kept)));
  }
  const std::string page = absl::GetFlag(FLAGS_html);
  if (!page.empty()) {
    const absl::Status written = WriteBatchPage(options.in, options.out, UserPath(page));
    if (!written.ok()) return Complain(kFaultOfOurs, absl::StrCat("--html: ", Message(written)));
  }
  if (summary->interrupted) return kSignalled + interrupts.received();
  if (summary->totals.input_errors > 0) return kUserError;
  return summary->totals.inconclusive > 0 ? kFaultOfOurs : kCorrect;
}

int CheckTheTasks(DeviceBackend* backend, const std::vector<Task>& tasks) {
  const Interrupts interrupts;
  PreflightOptions options = PreflightLike(OptionsFromFlags(*backend));
  options.stop = [&interrupts] { return interrupts.received() != 0; };
  const std::string out = absl::GetFlag(FLAGS_out);
  const auto checks = RunPreflight(tasks, backend, options, out.empty() ? "" : UserPath(out));
  if (!checks.ok()) return Complain(kFaultOfOurs, "--out: " + Message(checks.status()));
  std::cout << PreflightTable(*checks, options.mode) << std::flush;
  if (interrupts.received() != 0) return kSignalled + interrupts.received();
  const PreflightTotals totals = Count(*checks);
  if (totals.broken > 0) return kUserError;
  if (totals.not_checked > 0) return kFaultOfOurs;
  return totals.unsound > 0 ? kCandidateFailed : kCorrect;
}

int Main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (absl::string_view(argv[i]) == "--help") return PrintHelp();
  }
  absl::Status flags = ParseFlags(argc, argv);
  if (flags.ok()) flags = CheckFlags();
  if (!flags.ok()) return Complain(kUserError, Message(flags));
  const absl::StatusOr<Inputs> inputs = ReadInputs();
  if (!inputs.ok()) return Complain(kUserError, Message(inputs.status()));
  auto judge = MakeJudge();
  if (!judge.ok()) return Complain(kUserError, Message(judge.status()));
  const bool many = !absl::GetFlag(FLAGS_in).empty(), tasks = absl::GetFlag(FLAGS_preflight);
  const int workers = absl::GetFlag(FLAGS_workers);
  auto backend = MakeBackendFromFlags(many || tasks || workers > 0 ? workers : 1);
  if (!backend.ok()) {
    const bool user = absl::IsInvalidArgument(backend.status());
    return Complain(user ? kUserError : kFaultOfOurs, Message(backend.status()));
  }
  if (tasks) return CheckTheTasks(backend->get(), inputs->tasks);
  return many ? RunMany(backend->get(), judge->get())
              : RunPair(backend->get(), judge->get(), inputs->reference, inputs->candidate);
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return tritonrl::Main(argc, argv); }
