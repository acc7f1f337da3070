// Benchmarks a checkpoint on a folder of tasks, or judges generations that somebody made before:
//   bazel run //eval:kernelbench -- --generations=RUN_FOLDER --tasks=KernelBench/level1
//   bazel run //eval:kernelbench -- --model=runs/grpo_hrd_mini/model --tasks=tasks/mini/heldout
//       --prompt_style=mini --k=10 --set device_model=l40s_mini
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/benchmark.h"
#include "eval/run/stored_run.h"
#include "rollout/distributed/tensor_parallel.h"
#include "rollout/factory/engine_flags.h"
#include "tasks/prompt_format.h"
#include "tasks/response_style.h"
#include "trainer/config/text_proto.h"
#include "trainer/program/training_program.h"

ABSL_FLAG(std::string, model, "",
          "folder of the checkpoint (config.json, tokenizer.json, weights)");
ABSL_FLAG(std::string, generations, "",
          "judge these generations instead of a checkpoint's: a folder of a KernelBench run or of "
          "its published samples, the --output of an earlier call, or a JSONL file "
          "(docs/evaluation.md)");
ABSL_FLAG(std::string, generations_model, "",
          "the model whose generations are taken from a folder with several");
ABSL_FLAG(bool, without_robust, false,
          "with --generations: also the figures without functionality checks; candidates that were "
          "refused before they were compared run once more, untimed");
ABSL_FLAG(std::string, tasks, "",
          "folder of task files in KernelBench form; with --generations several, with commas");
ABSL_FLAG(std::optional<int>, k, std::nullopt,
          "samples for each task; not given: 10, or as many as --generations has");
ABSL_FLAG(
    std::string, prompt_style, "full",
    "full (language models: an instruction with one worked example) or mini (the mini policy)");
ABSL_FLAG(std::string, prompt_file, "",
          "a prompt file (tasks/prompt_format.h describes it) instead of --prompt_style");
ABSL_FLAG(
    std::string, response_style, "auto",
    "how responses are read: thinking (a plan up to </think> is needed), plain, or auto: what "
    "the checkpoint's chat template or tokenizer says");
ABSL_FLAG(
    std::string, code_block, "auto",
    "the code blocks that are the program: only (several are malformed), first, last, joined, "
    "or auto: only for thinking, first for plain");
ABSL_FLAG(std::string, chat_template, "auto",
          "the chat template of the prompts: auto (the checkpoint's own), none, or a Jinja file");
ABSL_FLAG(std::optional<bool>, enable_thinking, std::nullopt,
          "the template's variable enable_thinking; not given: the template's own default");
ABSL_FLAG(std::string, chat_arguments, "", "more variables of the template, a JSON object");
ABSL_FLAG(double, temperature, 1.0, "sampling temperature; 0 takes the likeliest token");
ABSL_FLAG(double, top_p, 1.0, "nucleus sampling; 1 is off");
ABSL_FLAG(int, max_prompt_tokens, 0,
          "tasks with a longer prompt are left out, with their names; 0: 2048, or a quarter of the "
          "checkpoint's positions");
ABSL_FLAG(int, max_response_tokens, 0,
          "a response is cut off after so many tokens; 0: 16384, or what the checkpoint holds");
ABSL_FLAG(int, max_tasks, 0, "only the first so many tasks; 0: all");
ABSL_FLAG(bool, preflight, false,
          "first try results that ought not to pass (zeros, a constant, the input, ...) on every "
          "task, and leave out, with their names, those on which one passes");
ABSL_FLAG(int, threads, 0, "CPU threads; 0: all cores");
ABSL_FLAG(uint64_t, seed, 0, "seed of all draws");
ABSL_FLAG(std::string, device, "auto", "auto, cpu, cuda or cuda:N");
ABSL_FLAG(
    int, tensor_parallel, 1,
    "number of tensor-parallel ranks, one GPU each (in bfloat16 there): mpirun --bind-to none -n "
    "N kernelbench --tensor_parallel=N ...");
ABSL_FLAG(
    std::string, rules, "strict",
    "strict, robust, or paper: the paper's rules and nothing else (docs/verifier.md); the same "
    "as --set rules=RULES");
ABSL_FLAG(
    std::string, output, "",
    "folder for results.json, samples.jsonl and verdicts.jsonl; generated.jsonl keeps each sample "
    "as it is generated, and the same command goes on from there");
ABSL_FLAG(std::string, set, "",
          "path=value overrides a field of VerifierConfig (trainer/config/config.proto), as in "
          "workers=4 or "
          "device_model=l40s_mini; may be repeated");

namespace tritonrl {
namespace {

constexpr char kUsage[] =
    "Samples k programs for each task, or takes those of --generations, verifies them and reports\n"
    "valid / compiled / correct / fast_1 / fast_2 / mean speedup as the maximum over k.\n"
    "--rules=paper: by the paper's definitions.\n"
    "Exit codes: 0 done, 1 failed, 2 bad flag, 75 stopped by a signal.";

absl::StatusOr<PromptFormat> PromptFromFlags() {
  if (const std::string file = absl::GetFlag(FLAGS_prompt_file); !file.empty()) {
    return PromptFormat::Load(UserPath(file));
  }
  const std::string style = absl::GetFlag(FLAGS_prompt_style);
  if (style == "mini") return PromptFormat::Mini();
  if (style == "full") return PromptFormat::FromName("eval");
  return absl::InvalidArgumentError("--prompt_style \"" + style +
                                    "\" is unknown; use full or mini");
}

absl::StatusOr<VerifierConfig> VerifierFromFlags(const std::vector<std::string>& overrides) {
  VerifierConfig verifier;
  const absl::Status rules = ApplyOverride("rules=" + absl::GetFlag(FLAGS_rules), &verifier);
  if (!rules.ok()) return AddContext(rules, "--rules");
  for (const std::string& override : overrides) {
    RETURN_IF_ERROR(ApplyOverride(override, &verifier));
  }
  return verifier;
}

// An empty flag is "", else a path from where the user called.
std::string UserPathOf(const std::string& path) { return path.empty() ? "" : UserPath(path); }

absl::StatusOr<StoredOptions> StoredFromFlags(const std::vector<std::string>& overrides) {
  StoredOptions options;
  ASSIGN_OR_RETURN(options.verifier, VerifierFromFlags(overrides));
  if (!absl::GetFlag(FLAGS_model).empty()) {
    return absl::InvalidArgumentError("give --model or --generations, not both");
  }
  options.generations = UserPathOf(absl::GetFlag(FLAGS_generations));
  for (const absl::string_view folder :
       absl::StrSplit(absl::GetFlag(FLAGS_tasks), ',', absl::SkipEmpty())) {
    options.tasks.push_back(UserPathOf(std::string(folder)));
  }
  options.load.model = absl::GetFlag(FLAGS_generations_model);
  options.load.k = absl::GetFlag(FLAGS_k).value_or(0);
  options.max_tasks = absl::GetFlag(FLAGS_max_tasks);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.without_robust = absl::GetFlag(FLAGS_without_robust);
  options.output = UserPathOf(absl::GetFlag(FLAGS_output));
  return options;
}

int JudgeGenerations(const StoredOptions& options, const SignalHandler& stop) {
  const absl::StatusOr<StoredResult> result = JudgeStored(options, stop);
  if (!result.ok()) return ExitWithError(result.status(), "error", kExitFailed, nullptr);
  for (const std::string& problem : result->problems) {
    std::fprintf(stderr, "left out: %s\n", problem.c_str());
  }
  if (result->stopped) {
    std::fprintf(stderr, "stopped by a signal; with --output the same command resumes\n");
    return kExitRequeue;
  }
  std::fprintf(stderr, "Generations: %s. Tasks: %s.\n", result->layout.c_str(),
               result->version.name.c_str());
  const bool modelled = std::any_of(result->samples.begin(), result->samples.end(),
                                    [](const ScoredSample& sample) { return sample.modelled; });
  std::printf("%s", EstimatesTable(result->estimates, modelled).c_str());
  if (options.without_robust) {
    std::printf("Unchecked: without functionality checks; %d samples ran again for it.\n",
                result->run_again);
  }
  if (!options.output.empty()) {
    std::printf("Written to %s: results.json, generations.jsonl, verdicts.jsonl\n",
                options.output.c_str());
  }
  return kExitDone;
}

absl::StatusOr<BenchmarkOptions> OptionsFromFlags(const std::vector<std::string>& overrides) {
  BenchmarkOptions options;
  ASSIGN_OR_RETURN(options.verifier, VerifierFromFlags(overrides));
  if (absl::GetFlag(FLAGS_model).empty()) return absl::InvalidArgumentError("--model is missing");
  if (absl::GetFlag(FLAGS_tasks).empty()) return absl::InvalidArgumentError("--tasks is missing");
  options.policy.set_dir(absl::GetFlag(FLAGS_model));
  options.policy.set_device(absl::GetFlag(FLAGS_device));
  options.policy.mutable_chat()->set_template_(absl::GetFlag(FLAGS_chat_template));
  if (const std::optional<bool> thinking = absl::GetFlag(FLAGS_enable_thinking); thinking) {
    options.policy.mutable_chat()->set_enable_thinking(*thinking);
  }
  if (const std::string more = absl::GetFlag(FLAGS_chat_arguments); !more.empty()) {
    options.policy.mutable_chat()->set_arguments(more);
  }
  options.tasks = absl::GetFlag(FLAGS_tasks);
  ASSIGN_OR_RETURN(options.prompt, PromptFromFlags());
  options.response_style = absl::GetFlag(FLAGS_response_style);
  options.code_block = absl::GetFlag(FLAGS_code_block);
  const absl::Status named = CheckResponseStyleNames(options.response_style, options.code_block);
  if (!named.ok()) return absl::InvalidArgumentError("--" + Message(named));
  options.k = absl::GetFlag(FLAGS_k).value_or(options.k);
  options.temperature = absl::GetFlag(FLAGS_temperature);
  options.top_p = absl::GetFlag(FLAGS_top_p);
  options.max_prompt_tokens = absl::GetFlag(FLAGS_max_prompt_tokens);
  options.max_response_tokens = absl::GetFlag(FLAGS_max_response_tokens);
  ASSIGN_OR_RETURN(options.engine, EngineConfigFromFlags());
  options.max_tasks = absl::GetFlag(FLAGS_max_tasks);
  options.preflight = absl::GetFlag(FLAGS_preflight);
  options.threads = absl::GetFlag(FLAGS_threads);
  options.seed = absl::GetFlag(FLAGS_seed);
  if (const std::string output = absl::GetFlag(FLAGS_output); !output.empty()) {
    options.output = UserPath(output);
  }
  return options;
}

int Main(int argc, char** argv) {
  const SignalHandler stop = NoteStopSignals();
  EngineConfig defaults;
  defaults.set_max_num_seqs(64);
  SetEngineFlagDefaults(defaults);
  const auto overrides = ParseArguments(kUsage, argc, argv);
  if (!overrides.ok()) return ExitWithError(overrides.status(), "error", kExitBadUsage, nullptr);
  if (!absl::GetFlag(FLAGS_generations).empty()) {
    const absl::StatusOr<StoredOptions> stored = StoredFromFlags(*overrides);
    if (!stored.ok()) return ExitWithError(stored.status(), "error", kExitBadUsage, nullptr);
    return JudgeGenerations(*stored, stop);
  }
  const absl::StatusOr<BenchmarkOptions> options = OptionsFromFlags(*overrides);
  if (!options.ok()) return ExitWithError(options.status(), "error", kExitBadUsage, nullptr);
  std::unique_ptr<ProcessGroup> ranks;
  const absl::Status joined = InitTensorParallel(absl::GetFlag(FLAGS_tensor_parallel), &ranks);
  if (!joined.ok()) return ExitWithError(joined, "error", kExitBadUsage, ranks.get());
  const auto outcome = RunBenchmark(*options, stop, ranks.get());
  if (!outcome.ok()) return ExitWithError(outcome.status(), "error", kExitFailed, ranks.get());
  if (!outcome->has_value()) return kExitDone;
  const std::optional<BenchmarkResult>& result = *outcome;
  for (const std::string& problem : result->problems) {
    std::fprintf(stderr, "left out: %s\n", problem.c_str());
  }
  if (result->stopped) {
    std::fprintf(stderr, "stopped by a signal; with --output the same command resumes\n");
    return kExitRequeue;
  }
  std::printf("%s", BenchmarkTable(*result, options->k).c_str());
  if (!result->written.ok()) {
    return ExitWithError(result->written, "error", kExitFailed, ranks.get());
  }
  if (!options->output.empty()) {
    std::printf("Written to %s: results.json, samples.jsonl, verdicts.jsonl\n",
                options->output.c_str());
  }
  return kExitDone;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return tritonrl::Main(argc, argv); }
