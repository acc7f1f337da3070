// Labels tasks with their difficulty level, 1 to 3, by a model's responses. Example:
//   bazel run //tools:label_difficulty -- --tasks=data/kernelbook/tasks --votes=3
//       --endpoint=http://host:8000/v1 --model=Qwen3-235B-A22B-Instruct-2507
//       --out=data/kernelbook/labelled
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/endpoint/client.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "tools/endpoint/data_tool.h"
#include "tools/endpoint/endpoint_flags.h"
#include "tools/label_difficulty/label.h"

ABSL_FLAG(std::string, tasks, "", "Folder of tasks in KernelBench form.");
ABSL_FLAG(std::string, out, "",
          "Folder for level1/, level2/, level3/ and labels.jsonl; the same command goes on in it.");
ABSL_FLAG(std::string, prompt_file, "",
          "Prompt with the placeholder {task}; empty: tools/label_difficulty/prompt.txt.");
ABSL_FLAG(int, votes, 1, "Answers for each task, of which the majority counts; 1 to 15.");
ABSL_FLAG(double, temperature, tritonrl::LabelOptions().ask.temperature, "Sampling temperature.");
ABSL_FLAG(double, top_p, tritonrl::LabelOptions().ask.top_p, "Nucleus sampling.");
ABSL_FLAG(int, max_tokens, tritonrl::LabelOptions().ask.max_tokens, "Limit of an answer.");
ABSL_FLAG(uint64_t, seed, 0, "Of the answers' seeds.");

namespace tritonrl {
namespace {

constexpr char kUsage[] =
    "Labels tasks with their difficulty level, 1 to 3, by a model's answers.\n"
    "Exit codes: 0 done, 1 failed, 2 bad flag or input, 75 stopped by a signal.";

absl::StatusOr<LabelOptions> OptionsFromFlags() {
  LabelOptions options;
  options.votes = absl::GetFlag(FLAGS_votes);
  options.ask.temperature = absl::GetFlag(FLAGS_temperature);
  options.ask.top_p = absl::GetFlag(FLAGS_top_p);
  options.ask.max_tokens = absl::GetFlag(FLAGS_max_tokens);
  options.ask.seed = absl::GetFlag(FLAGS_seed);
  options.ask.extra = EndpointExtraFlag();
  options.ask.model = EndpointModelFlag();
  if (options.votes < 1 || options.votes > 15) {
    return absl::InvalidArgumentError("--votes must be 1 to 15");
  }
  RETURN_IF_ERROR(CheckAskSettings(options.ask));
  ASSIGN_OR_RETURN(options.prompt, ReadTaskPrompt(absl::GetFlag(FLAGS_prompt_file),
                                                  "tools/label_difficulty/prompt.txt"));
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
  ASSIGN_OR_RETURN(LabelOptions options, OptionsFromFlags());
  options.stop = [&stop] { return stop.requested(); };
  ASSIGN_OR_RETURN(const EndpointOptions endpoint, EndpointOptionsFromFlags());
  ASSIGN_OR_RETURN(const std::unique_ptr<EndpointClient> client, EndpointClient::Make(endpoint));
  ASSIGN_OR_RETURN(const LabelSummary summary, LabelTasks(options, client.get()));
  if (summary.interrupted) return false;
  std::printf("%s", LabelTable(summary).c_str());
  std::printf("Written to %s: %s\n", options.out.c_str(), LabelFiles(summary).c_str());
  RETURN_IF_ERROR(summary.ended);
  RETURN_IF_ERROR(FailedRequestsError(summary.failed));
  return true;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  const std::vector<char*> rest = tritonrl::StartProgram(tritonrl::kUsage, argc, argv);
  return tritonrl::RunDataTool("label_difficulty", [&] { return tritonrl::Run(rest); });
}
