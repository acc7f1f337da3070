// Checks one candidate program against one reference program and prints the verdict, checks many
// pairs and writes a line for each, or checks tasks (preflight).
//
//   bazel run //verify:verify -- --reference=a.py --candidate=b.py [--json] [--html=page.html]
//   bazel run //verify:verify -- --in=cases.jsonl|FOLDER --out=verdicts.jsonl [--html=page.html]
//   bazel run //verify:verify -- --in=samples.jsonl --tasks=FOLDER --out=verdicts.jsonl
//   bazel run //verify:verify -- --preflight --tasks=FOLDER|reference.py [--out=preflight.jsonl]
//
// Exit codes for one pair: 0 the candidate is correct; 1 the candidate failed a layer; 2 a mistake
// in the call or in the reference (missing file, unknown value, a reference that does not run);
// 3 no verdict because of an infrastructure error (no sandbox on this machine, a lost worker, a
// judge that does not answer).
// For a batch: 0 every case has a verdict, passed or failed; 2 a mistake in the call, or broken
// cases in the input (the other cases are checked); 3 cases without a verdict, or a file that
// cannot be written; 130 or 143 stopped by SIGINT or SIGTERM (the same command continues it).
// For a preflight: 0 every task is sound; 1 some tasks are unsound; 2 a mistake in the call, or
// references that do not run; 3 tasks that could not be checked; 130 or 143 stopped by a signal.
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/string_view.h"
#include "base/program.h"
#include "verify/cli/verify_command.h"

ABSL_FLAG(std::string, reference, "", "Python file with Model, get_inputs and get_init_inputs");
ABSL_FLAG(std::string, candidate, "", "Python file with ModelNew and its Triton kernels");
ABSL_FLAG(
    std::string, in, "",
    "many cases: a JSONL file (id, reference_source, candidate_source or response), samples of "
    "a run with --tasks, or a folder (NAME_reference.py beside NAME_*.py, or "
    "NAME/reference.py beside NAME/*.py)");
ABSL_FLAG(std::string, response_style, "auto",
          "how responses of --in are read: thinking (a plan up to </think> is needed), plain, or "
          "auto: as recorded with each, else thinking");
ABSL_FLAG(
    std::string, code_block, "auto",
    "the code blocks that are the program: only (several are malformed), first, last, joined, "
    "or auto: as recorded, else only for thinking, first for plain");
ABSL_FLAG(std::string, out, "", "JSONL file for the verdicts on --in; goes on where it stopped");
ABSL_FLAG(std::string, html, "", "also write a web page with every verdict to this file");
ABSL_FLAG(
    std::string, servers, "",
    "run candidates at servers (//exec:server): the folder they --register in, written with a "
    "'/', or HOST:PORT,HOST:PORT with --token_file");
ABSL_FLAG(std::string, token_file, "", "file with the token of --servers given by address");
ABSL_FLAG(int, workers, 0, "candidates run at the same time; 0: the backend's default");
ABSL_FLAG(bool, json, false, "print the verdict as one JSON object");
ABSL_FLAG(std::string, backend, "auto", "auto, native (no GPU needed, times are modelled) or cuda");
ABSL_FLAG(std::string, sandbox, "bubblewrap",
          "bubblewrap, or none: run the candidate without confinement");
ABSL_FLAG(std::string, device_model, "l40s",
          "figures of modelled times: l40s, or l40s_mini for tiny tasks");
ABSL_FLAG(uint64_t, seed, 0, "keys weights and random inputs");
ABSL_FLAG(int, trials, 5, "random inputs on which both must agree");
ABSL_FLAG(double, tolerance, 1e-2, "absolute and relative tolerance");
ABSL_FLAG(
    std::string, rules, "strict",
    "strict; robust: also against float64 with a tolerance made of the reference's own error, "
    "on further inputs; or paper: the paper's rules and nothing else (docs/verifier.md)");
ABSL_FLAG(bool, preflight, false,
          "check the tasks of --tasks themselves: try results that must not pass on each of them");
ABSL_FLAG(std::string, tasks, "",
          "folder of task files, or one of them, for --preflight, or for the samples of --in");
ABSL_FLAG(double, time_limit, 0,
          "seconds for the whole run of the candidate; 0: the backend's own (native 30, cuda "
          "180)");
ABSL_FLAG(double, memory_gb, 0, "memory limit of the candidate in GiB; 0: the backend's own");
ABSL_FLAG(bool, functionality, true,
          "false: skip linter and run-time audit (figures without the robust verifier)");
ABSL_FLAG(bool, ablation, true, "false: do not call forward again with kernels that write nothing");
ABSL_FLAG(bool, timing, true,
          "false: no times and no speedup, which on a GPU is several times faster");
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

constexpr char kUsage[] =
    "Checks a Triton program against its PyTorch reference and prints the verdict.\n"
    "  bazel run //verify:verify -- --reference=a.py --candidate=b.py [--json] [--html=page.html]\n"
    "  bazel run //verify:verify -- --in=cases.jsonl|FOLDER --out=verdicts.jsonl "
    "[--html=page.html]\n"
    "  bazel run //verify:verify -- --in=samples.jsonl --tasks=FOLDER --out=verdicts.jsonl\n"
    "  bazel run //verify:verify -- --preflight --tasks=FOLDER|reference.py [--rules=robust] "
    "[--out=preflight.jsonl]\n"
    "Exit codes: 0 correct, 1 the candidate failed, 2 wrong call or broken reference, 3 no verdict "
    "(infrastructure error).\n"
    "With --in: 0 all have a verdict, 2 wrong call or broken cases, 3 some have no verdict, 130 "
    "interrupted.\n"
    "With --preflight: 0 all tasks are sound, 1 some are unsound, 2 wrong call or broken "
    "references, 3 some not checked, 130 interrupted.\n"
    "Flags:\n";

VerifyCommand CommandFromFlags() {
  VerifyCommand call;
  call.reference = absl::GetFlag(FLAGS_reference);
  call.candidate = absl::GetFlag(FLAGS_candidate);
  call.in = absl::GetFlag(FLAGS_in);
  call.out = absl::GetFlag(FLAGS_out);
  call.html = absl::GetFlag(FLAGS_html);
  call.response_style = absl::GetFlag(FLAGS_response_style);
  call.code_block = absl::GetFlag(FLAGS_code_block);
  call.servers = absl::GetFlag(FLAGS_servers);
  call.token_file = absl::GetFlag(FLAGS_token_file);
  call.workers = absl::GetFlag(FLAGS_workers);
  call.json = absl::GetFlag(FLAGS_json);
  call.backend = absl::GetFlag(FLAGS_backend);
  call.sandbox = absl::GetFlag(FLAGS_sandbox);
  call.device_model = absl::GetFlag(FLAGS_device_model);
  call.seed = absl::GetFlag(FLAGS_seed);
  call.trials = absl::GetFlag(FLAGS_trials);
  call.tolerance = absl::GetFlag(FLAGS_tolerance);
  call.rules = absl::GetFlag(FLAGS_rules);
  call.preflight = absl::GetFlag(FLAGS_preflight);
  call.tasks = absl::GetFlag(FLAGS_tasks);
  call.time_limit = absl::GetFlag(FLAGS_time_limit);
  call.memory_gb = absl::GetFlag(FLAGS_memory_gb);
  call.functionality = absl::GetFlag(FLAGS_functionality);
  call.ablation = absl::GetFlag(FLAGS_ablation);
  call.timing = absl::GetFlag(FLAGS_timing);
  call.judge_url = absl::GetFlag(FLAGS_judge_url);
  call.judge_model = absl::GetFlag(FLAGS_judge_model);
  call.judge_key_variable = absl::GetFlag(FLAGS_judge_key_variable);
  call.judge_parallel = absl::GetFlag(FLAGS_judge_parallel);
  call.judge_cache = absl::GetFlag(FLAGS_judge_cache);
  return call;
}

int Main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (absl::string_view(argv[i]) == "--help") {
      std::cout << kUsage << FlagsHelp("verify/cli/verify_main.cc") << FlagsHelp("base/program.cc");
      return 0;
    }
    if (absl::string_view(argv[i]) == "--version") {
      std::cout << VersionLine();
      return 0;
    }
  }
  absl::Status flags = ParseFlags(argc, argv);
  if (flags.ok()) flags = SetUpLogFromFlags();
  return flags.ok() ? RunCommand(CommandFromFlags()) : ReportCommandError(flags);
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return tritonrl::Main(argc, argv); }
