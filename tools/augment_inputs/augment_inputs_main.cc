// Makes variants of tasks with other input shapes by a model's responses. Examples:
//   bazel run //tools:augment_inputs -- --tasks=data/kernelbook/labelled
//       --out=data/kernelbook/augmented --endpoint=http://host:8000/v1 --model=openai/gpt-oss-120b
// KernelBench with five input shapes for each task:
//   bazel run //tools:augment_inputs -- --tasks=data/kernelbench --out=data/kernelbench_shapes
//       --rounds=4 --time_limit=120 --endpoint=http://host:8000/v1 --model=openai/gpt-oss-120b
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/endpoint/client.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "tools/augment_inputs/augment.h"
#include "tools/endpoint/data_tool.h"
#include "tools/endpoint/endpoint_flags.h"

ABSL_FLAG(std::string, tasks, "", "Folder of tasks in KernelBench form.");
ABSL_FLAG(std::string, out, "",
          "Folder for the variants TASK_v1.py, ...; the same command goes on in it.");
ABSL_FLAG(std::string, prompt_file, "",
          "Prompt with the placeholders {task} and {variants}; empty: "
          "tools/augment_inputs/prompt.txt.");
ABSL_FLAG(std::string, prompt_again_file, "",
          "Prompt of later rounds with the placeholders {task}, {variants}, {shapes}, {failed} and "
          "{limits}; empty: tools/augment_inputs/prompt_again.txt.");
ABSL_FLAG(int, variants, 5, "Variants of each task, at most; 1 to 10.");
ABSL_FLAG(
    int, rounds, 1,
    "Answers for a task, at most, 1 to 10: above 1 a task with fewer than --variants variants "
    "after the checks is asked again, with what failed and why.");
ABSL_FLAG(bool, with_originals, false, "Also write the tasks themselves.");
ABSL_FLAG(double, temperature, 1.0, "Sampling temperature.");
ABSL_FLAG(double, top_p, 1.0, "Nucleus sampling.");
ABSL_FLAG(int, max_tokens, 16384, "Limit of an answer.");
ABSL_FLAG(uint64_t, seed, 0, "Of the answers' seeds.");
ABSL_FLAG(int, workers, 0, "Checks that run at the same time; 0: one for each core.");
ABSL_FLAG(double, time_limit, 30, "Seconds for the check of a variant: four runs.");
ABSL_FLAG(double, memory_gb, 4, "Memory for the check of a variant, in GiB.");
ABSL_FLAG(std::string, sandbox, "bubblewrap",
          "bubblewrap, or none: run the tasks without confinement.");

namespace tritonrl {
namespace {

constexpr char kUsage[] =
    "Makes variants of tasks with other input shapes by a model's answers, and keeps those that "
    "pass the checks of imported tasks.\n"
    "Exit codes: 0 done, 1 failed, 2 bad flag or input, 75 stopped by a signal.";

absl::Status SetChecks(AugmentOptions* options) {
  const int workers = absl::GetFlag(FLAGS_workers);
  if (workers < 0 || workers > 1024) {
    return absl::InvalidArgumentError("--workers must be 0 to 1024");
  }
  options->check.workers =
      workers > 0 ? workers : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options->check.sandbox = absl::GetFlag(FLAGS_sandbox);
  options->check.wall_seconds = absl::GetFlag(FLAGS_time_limit);
  if (!(options->check.wall_seconds > 0)) {
    return absl::InvalidArgumentError("--time_limit must be above 0");
  }
  const double memory = absl::GetFlag(FLAGS_memory_gb);
  if (!(memory > 0 && memory < 1e6)) {
    return absl::InvalidArgumentError("--memory_gb must be above 0");
  }
  options->check.memory_bytes = static_cast<int64_t>(memory * (int64_t{1} << 30));
  return absl::OkStatus();
}

absl::StatusOr<AugmentOptions> OptionsFromFlags() {
  AugmentOptions options;
  options.variants = absl::GetFlag(FLAGS_variants);
  options.rounds = absl::GetFlag(FLAGS_rounds);
  options.with_originals = absl::GetFlag(FLAGS_with_originals);
  options.ask.temperature = absl::GetFlag(FLAGS_temperature);
  options.ask.top_p = absl::GetFlag(FLAGS_top_p);
  options.ask.max_tokens = absl::GetFlag(FLAGS_max_tokens);
  options.ask.seed = absl::GetFlag(FLAGS_seed);
  options.ask.extra = EndpointExtraFlag();
  options.ask.model = EndpointModelFlag();
  if (options.variants < 1 || options.variants > 10) {
    return absl::InvalidArgumentError("--variants must be 1 to 10");
  }
  if (options.rounds < 1 || options.rounds > 10) {
    return absl::InvalidArgumentError("--rounds must be 1 to 10");
  }
  RETURN_IF_ERROR(CheckAskSettings(options.ask));
  RETURN_IF_ERROR(SetChecks(&options));
  ASSIGN_OR_RETURN(options.prompt, ReadTaskPrompt(absl::GetFlag(FLAGS_prompt_file),
                                                  "tools/augment_inputs/prompt.txt"));
  ASSIGN_OR_RETURN(options.prompt_again, ReadTaskPrompt(absl::GetFlag(FLAGS_prompt_again_file),
                                                        "tools/augment_inputs/prompt_again.txt"));
  ASSIGN_OR_RETURN(options.tasks, LoadTasksFlag(absl::GetFlag(FLAGS_tasks)));
  ASSIGN_OR_RETURN(options.out,
                   OutFolderFlag(absl::GetFlag(FLAGS_out), absl::GetFlag(FLAGS_tasks)));
  return options;
}

absl::StatusOr<bool> Run(const std::vector<char*>& rest) {
  const SignalHandler stop;
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", rest[1], "' is no flag; see --help"));
  }
  ASSIGN_OR_RETURN(AugmentOptions options, OptionsFromFlags());
  options.stop = [&stop] { return stop.requested(); };
  ASSIGN_OR_RETURN(const EndpointOptions endpoint, EndpointOptionsFromFlags());
  ASSIGN_OR_RETURN(const std::unique_ptr<EndpointClient> client, EndpointClient::Make(endpoint));
  ASSIGN_OR_RETURN(const AugmentSummary summary, AugmentInputs(options, client.get()));
  if (summary.interrupted) return false;
  std::printf("%s", AugmentTable(summary).c_str());
  std::printf("Written to %s: %svariants.jsonl, left_out.jsonl, summary.json\n",
              options.out.c_str(), summary.kept > 0 ? "the tasks, " : "no variant is kept; ");
  if (options.rounds > 1) {
    std::printf("%s%s\n", CompleteTasksText(summary).c_str(),
                summary.incomplete.empty() ? "" : "; left_out.jsonl says why");
  }
  RETURN_IF_ERROR(summary.ended);
  RETURN_IF_ERROR(FailedRequestsError(summary.failed));
  if (summary.lost > 0) {
    return absl::UnavailableError(absl::StrCat("the workers that checked ", summary.lost,
                                               summary.lost == 1 ? " task" : " tasks",
                                               " were lost; the same command checks again"));
  }
  return true;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  const std::vector<char*> rest = tritonrl::StartProgram(tritonrl::kUsage, argc, argv);
  return tritonrl::RunDataTool("augment_inputs", [&] { return tritonrl::Run(rest); });
}
