// Asks a teacher for responses to tasks, checks them, and writes a set for SFT. Examples:
//   bazel run //tools:distill -- --tasks=data/kernelbook/tasks --teacher=r1 --samples=5
//       --endpoint=https://api.deepseek.com/v1 --model=deepseek-reasoner
//       --api_key_variable=DEEPSEEK_API_KEY --out=data/kernelbook/traces_r1
//   bazel run //tools:distill -- --tasks=tasks/mini/train --policy=model/mini
//       --prompt_file=mini --temperature=1 --top_p=1 --max_tokens=512 --out=data/distill_mini
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/endpoint/client.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "model/chat/template_files.h"
#include "model/tokenizer/tokenizer.h"
#include "parallel/process_group.h"
#include "tasks/prompt_format.h"
#include "tasks/response_style.h"
#include "tools/distill/distill.h"
#include "tools/distill/policy_server.h"
#include "tools/distill/sample.h"
#include "tools/endpoint/data_tool.h"
#include "tools/endpoint/endpoint_flags.h"
#include "trainer/config/text_proto.h"
#include "trainer/program/training_program.h"

ABSL_FLAG(std::string, tasks, "", "Folder of tasks in KernelBench form.");
ABSL_FLAG(std::string, out, "", "Folder for the results; the same command goes on in it.");
ABSL_FLAG(std::string, policy, "",
          "Folder of a model that //rollout:serve serves as the teacher, instead of --endpoint.");
ABSL_FLAG(std::string, policy_flags, "",
          "Further flags of serve for --policy, separated by spaces.");
ABSL_FLAG(std::string, teacher, "",
          "Preset of --temperature and --top_p: r1 (0.6, 0.95) or gpt-oss-120b (1.0, 1.0).");
ABSL_FLAG(std::string, prompt_file, "train",
          "train (the instruction without an example), eval (with one), mini (the mini policy), or "
          "the path of a prompt file.");
ABSL_FLAG(std::string, api, "chat",
          "chat (the prompt is a user's message) or completions (the bare prompt).");
ABSL_FLAG(int, samples, 1, "Samples of each task, 1 to 10.");
ABSL_FLAG(double, temperature, -1, "Sampling temperature; below 0: the teacher's, else 0.6.");
ABSL_FLAG(double, top_p, -1, "Nucleus sampling; below 0: the teacher's, else 0.95.");
ABSL_FLAG(int, max_tokens, 16384, "Limit of an answer; a longer one is cut off and not taught.");
ABSL_FLAG(uint64_t, seed, 0, "Of the samples' seeds and of the evaluation split.");
ABSL_FLAG(double, eval_share, 0.02, "Share of the tasks whose samples go to sft_eval.jsonl.");
ABSL_FLAG(
    std::string, response_style, "thinking",
    "how responses are read: thinking (a plan up to </think> is needed), plain, or auto: what "
    "the chat template or tokenizer of --policy says");
ABSL_FLAG(std::string, verify, "syntax",
          "none, syntax (syntax and linter, without a run) or full (all layers of the verifier).");
ABSL_FLAG(std::string, keep, "",
          "What a sample needs to be written: all, response (its form), syntax, valid or correct; "
          "empty: the strictest that --verify decides.");
ABSL_FLAG(std::string, set, "",
          "path=value overrides a field of VerifierConfig (trainer/config/config.proto) for "
          "--verify=full, as in workers=4; may be repeated.");

namespace tritonrl {
namespace {

constexpr char kUsage[] =
    "Asks a teacher for responses to tasks, checks them, and writes a set for SFT.\n"
    "Exit codes: 0 done, 1 failed, 2 bad flag or input, 75 stopped by a signal.";

absl::Status CheckRanges(const DistillOptions& options) {
  if (options.samples < 1 || options.samples > 10) {
    return absl::InvalidArgumentError("--samples must be 1 to 10");
  }
  RETURN_IF_ERROR(CheckAskSettings(options.ask));
  if (!(options.eval_share >= 0 && options.eval_share < 1)) {
    return absl::InvalidArgumentError("--eval_share must be 0 or more, and below 1");
  }
  return absl::OkStatus();
}

absl::Status SetSampling(DistillOptions* options) {
  TeacherPreset preset;
  if (const std::string name = absl::GetFlag(FLAGS_teacher); !name.empty()) {
    ASSIGN_OR_RETURN(preset, FindTeacher(name));
  }
  const double temperature = absl::GetFlag(FLAGS_temperature), top_p = absl::GetFlag(FLAGS_top_p);
  options->teacher = preset.name;
  options->ask.temperature = temperature < 0 ? preset.temperature : temperature;
  options->ask.top_p = top_p < 0 ? preset.top_p : top_p;
  return absl::OkStatus();
}

// Counted by the policy's tokenizer; that of an endpoint is unknown.
absl::Status SayPromptLengths(const PromptFormat& prompt, const std::vector<Task>& tasks) {
  std::string lengths = EstimatedPromptLengths(prompt, tasks);
  if (const std::string policy = absl::GetFlag(FLAGS_policy); !policy.empty()) {
    ASSIGN_OR_RETURN(const Tokenizer tokenizer,
                     Tokenizer::Load(JoinPath(UserPath(policy), "tokenizer.json")));
    lengths = PromptLengths(prompt, tasks, [&](const std::string& text) {
      return static_cast<int64_t>(tokenizer.Encode(text, /*parse_special=*/false).size());
    });
  }
  std::fprintf(stderr, "Prompts: %s.\n", lengths.c_str());
  return absl::OkStatus();
}

// The style of the samples. That of an endpoint's model cannot be detected.
absl::StatusOr<ResponseStyleChoice> StyleFromFlags() {
  const std::string name = absl::GetFlag(FLAGS_response_style),
                    policy = absl::GetFlag(FLAGS_policy);
  RETURN_IF_ERROR(CheckResponseStyleNames(name, "auto"));
  if (name == "auto" && policy.empty()) {
    return absl::InvalidArgumentError(
        "--response_style=auto needs --policy; say thinking or plain for a model behind an "
        "endpoint");
  }
  const std::string folder = UserPath(policy);
  TemplateText chat;
  if (name == "auto" && absl::GetFlag(FLAGS_api) == "chat") {
    ASSIGN_OR_RETURN(chat, FindChatTemplate(folder));
  }
  return ChooseResponseStyle(name, "auto", folder, chat.text);
}

absl::StatusOr<DistillOptions> OptionsFromFlags(const std::vector<std::string>& overrides,
                                                const PromptFormat& prompt) {
  DistillOptions options;
  options.samples = absl::GetFlag(FLAGS_samples);
  options.ask.max_tokens = absl::GetFlag(FLAGS_max_tokens);
  options.ask.seed = absl::GetFlag(FLAGS_seed);
  options.eval_share = absl::GetFlag(FLAGS_eval_share);
  options.ask.extra = EndpointExtraFlag();
  RETURN_IF_ERROR(SetSampling(&options));
  RETURN_IF_ERROR(CheckRanges(options));
  const std::string api = absl::GetFlag(FLAGS_api);
  if (api != "chat" && api != "completions") {
    return absl::InvalidArgumentError(
        absl::StrCat("--api=", api, " is unknown: chat or completions"));
  }
  options.completion = api == "completions";
  ASSIGN_OR_RETURN(options.check, ParseCheckLevel(absl::GetFlag(FLAGS_verify)));
  ASSIGN_OR_RETURN(options.keep, ParseKeepRule(absl::GetFlag(FLAGS_keep), options.check));
  for (const std::string& override : overrides) {
    RETURN_IF_ERROR(ApplyOverride(override, &options.verifier));
  }
  ASSIGN_OR_RETURN(options.tasks, LoadTasksFlag(absl::GetFlag(FLAGS_tasks)));
  options.prompt = [prompt](const Task& task) { return prompt.Build(task); };
  ASSIGN_OR_RETURN(options.out,
                   OutFolderFlag(absl::GetFlag(FLAGS_out), absl::GetFlag(FLAGS_tasks)));
  return options;
}

// The teacher: an endpoint, or a server of --policy, which `server` keeps alive.
absl::StatusOr<std::unique_ptr<EndpointClient>> Teacher(DistillOptions* options,
                                                        std::unique_ptr<PolicyServer>* server) {
  const std::string policy = absl::GetFlag(FLAGS_policy);
  if (policy.empty()) {
    ASSIGN_OR_RETURN(const EndpointOptions endpoint, EndpointOptionsFromFlags());
    options->ask.model = EndpointModelFlag();
    if (options->teacher.empty()) options->teacher = options->ask.model;
    return EndpointClient::Make(endpoint);
  }
  if (!EndpointUrlFlag().empty()) {
    return absl::InvalidArgumentError("give either --endpoint or --policy");
  }
  ASSIGN_OR_RETURN(*server, PolicyServer::Start(policy, absl::GetFlag(FLAGS_policy_flags)));
  EndpointOptions endpoint = OwnEndpointOptionsFromFlags();
  endpoint.url = (*server)->url();
  options->ask.model = (*server)->model();
  if (options->teacher.empty()) options->teacher = options->ask.model;
  return EndpointClient::Make(endpoint);
}

absl::StatusOr<bool> Run(const std::vector<std::string>& overrides) {
  const SignalHandler stop = NoteStopSignals();
  ASSIGN_OR_RETURN(const PromptFormat prompt,
                   PromptFormat::FromName(absl::GetFlag(FLAGS_prompt_file)));
  ASSIGN_OR_RETURN(DistillOptions options, OptionsFromFlags(overrides, prompt));
  ASSIGN_OR_RETURN(const ResponseStyleChoice style, StyleFromFlags());
  options.style = style.style;
  options.stop = [&stop] { return stop.requested(); };
  std::unique_ptr<PolicyServer> server;
  ASSIGN_OR_RETURN(const std::unique_ptr<EndpointClient> client, Teacher(&options, &server));
  RETURN_IF_ERROR(SayPromptLengths(prompt, options.tasks));
  std::fprintf(stderr, "%s.\n", style.Sentence().c_str());
  ASSIGN_OR_RETURN(const DistillSummary summary, Distill(options, client.get()));
  if (summary.interrupted) return false;
  std::printf("%s", DistillTable(summary, options.check).c_str());
  std::printf("Written to %s: sft_train.jsonl, sft_eval.jsonl, left_out.jsonl, summary.json\n",
              options.out.c_str());
  RETURN_IF_ERROR(summary.ended);
  RETURN_IF_ERROR(FailedRequestsError(summary.failed));
  return true;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  const auto overrides = tritonrl::ParseArguments(tritonrl::kUsage, argc, argv);
  return tritonrl::RunDataTool("distill", [&]() -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(overrides.status());
    return tritonrl::Run(*overrides);
  });
}
