// Samples responses to a prompt with the model of a Hugging Face folder, and prints each when it
// ends.

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "model/chat/chat_template.h"
#include "rollout/distributed/tensor_parallel.h"
#include "rollout/factory/engine_flags.h"
#include "rollout/factory/make_engine.h"

ABSL_FLAG(std::string, model, "", "Folder with config.json, model.safetensors, tokenizer.json.");
ABSL_FLAG(std::string, prompt, "", "The prompt's text.");
ABSL_FLAG(std::string, prompt_file, "", "File that holds the prompt, instead of --prompt.");
ABSL_FLAG(bool, chat, false, "Puts the prompt into a user's turn of the chat template.");
ABSL_FLAG(std::string, chat_template, "auto",
          "With --chat: auto (the model folder's own) or the path of a Jinja file.");
ABSL_FLAG(std::optional<bool>, enable_thinking, std::nullopt,
          "With --chat: the template's variable enable_thinking; not given: its own default.");
ABSL_FLAG(std::string, chat_arguments, "",
          "With --chat: more variables of the template, a JSON object.");
ABSL_FLAG(int, n, 1, "Number of samples.");
ABSL_FLAG(double, temperature, 1.0, "0 takes the most likely token each time.");
ABSL_FLAG(double, top_p, 1.0, "Smallest set of tokens that holds this probability.");
ABSL_FLAG(int, top_k, 0, "Number of most likely tokens drawn from; 0: all.");
ABSL_FLAG(int, max_tokens, 512, "Maximum number of tokens in a sample.");
ABSL_FLAG(uint64_t, seed, 0, "The same seed gives the same samples.");
ABSL_FLAG(std::string, device, "auto", "cpu, cuda, cuda:N or auto.");
ABSL_FLAG(int, tensor_parallel, 1,
          "Number of tensor-parallel ranks, one GPU each: mpirun --bind-to none -n N generate "
          "--tensor_parallel=N ...");
ABSL_FLAG(bool, quiet, false, "Prints the samples' text alone.");

namespace tritonrl {
namespace {

absl::StatusOr<std::string> ReadPrompt() {
  std::string prompt = absl::GetFlag(FLAGS_prompt);
  if (!absl::GetFlag(FLAGS_prompt_file).empty()) {
    ASSIGN_OR_RETURN(prompt, ReadFile(UserPath(absl::GetFlag(FLAGS_prompt_file))));
  }
  if (prompt.empty()) {
    return absl::InvalidArgumentError("--prompt=TEXT or --prompt_file=FILE is needed");
  }
  return prompt;
}

// Sets the prompt's tokens and the tokens that end a response: those of a user's turn, or of the
// bare text.
absl::Status SetPrompt(const LoadedModel& model, const std::string& prompt,
                       GenerateRequest* request) {
  request->sampling.stop_ids = model.stop_ids;
  if (!absl::GetFlag(FLAGS_chat)) {
    std::vector<int32_t>& ids = request->prompt = model.tokenizer.Encode(prompt);
    const std::vector<int32_t>& begin = model.tokenizer.special_prefix();
    // A text that has the begin tokens already does not get them twice.
    if (ids.size() < begin.size() || !std::equal(begin.begin(), begin.end(), ids.begin())) {
      ids.insert(ids.begin(), begin.begin(), begin.end());
    }
    return absl::OkStatus();
  }
  ChatOptions options;
  options.chat_template = absl::GetFlag(FLAGS_chat_template);
  options.enable_thinking = absl::GetFlag(FLAGS_enable_thinking);
  options.arguments = absl::GetFlag(FLAGS_chat_arguments);
  const std::string dir = UserPath(absl::GetFlag(FLAGS_model));
  ASSIGN_OR_RETURN(const ChatTemplate chat, ChatTemplate::Load(dir, options, model.tokenizer));
  if (chat.plain()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--chat: ", dir, " has no chat template; give one with --chat_template"));
  }
  request->sampling.stop_ids = chat.WithEndOfTurn(model.stop_ids);
  ASSIGN_OR_RETURN(request->prompt, chat.Encode({{"user", prompt}}, true));
  return absl::OkStatus();
}

absl::StatusOr<GenerateRequest> MakeRequest(const LoadedModel& model, const std::string& prompt) {
  GenerateRequest request;
  RETURN_IF_ERROR(SetPrompt(model, prompt, &request));
  request.n = absl::GetFlag(FLAGS_n);
  request.sampling.temperature = absl::GetFlag(FLAGS_temperature);
  request.sampling.top_p = absl::GetFlag(FLAGS_top_p);
  request.sampling.top_k = absl::GetFlag(FLAGS_top_k);
  request.sampling.max_tokens = absl::GetFlag(FLAGS_max_tokens);
  request.key.run_seed = absl::GetFlag(FLAGS_seed);
  return request;
}

absl::Status Print(const Tokenizer& tokenizer, int samples, Engine* engine) {
  const bool quiet = absl::GetFlag(FLAGS_quiet);
  for (int i = 0; i < samples; ++i) {
    ASSIGN_OR_RETURN(const Sample sample, engine->Next(absl::InfiniteFuture()));
    RETURN_IF_ERROR(FailureOf(sample));
    double log_prob = 0;
    for (float value : sample.log_probs) log_prob += value;
    if (!quiet) {
      std::cout << absl::StreamFormat(
          "--- sample %d: %d tokens, ended by %s, log-probability %.3f\n", sample.index,
          sample.tokens.size(), FinishReasonName(sample.finish_reason), log_prob);
    }
    std::cout << tokenizer.Decode(sample.tokens, /*skip_special=*/true) << std::endl;
  }
  return absl::OkStatus();
}

struct Inputs {
  EngineConfig engine;
  GenerateRequest request;
  LoadedModel model;
};

absl::StatusOr<Inputs> ReadInputs(const ProcessGroup& ranks) {
  if (absl::GetFlag(FLAGS_model).empty()) {
    return absl::InvalidArgumentError("--model=FOLDER is needed");
  }
  ASSIGN_OR_RETURN(EngineConfig engine, EngineConfigFromFlags());
  ASSIGN_OR_RETURN(const std::string prompt, ReadPrompt());
  ASSIGN_OR_RETURN(const at::Device device,
                   ParseDevice(absl::GetFlag(FLAGS_device), ranks.local_rank()));
  ASSIGN_OR_RETURN(LoadedModel model, LoadModel(UserPath(absl::GetFlag(FLAGS_model)), device,
                                                TensorParallelShard(ranks)));
  ASSIGN_OR_RETURN(GenerateRequest request, MakeRequest(model, prompt));
  return Inputs{std::move(engine), std::move(request), std::move(model)};
}

absl::Status Run(ProcessGroup* ranks) {
  const absl::StatusOr<Inputs> inputs = ReadInputs(*ranks);
  RETURN_IF_ERROR(SyncStartup(inputs.status(), ranks));
  const LoadedModel& model = inputs->model;
  GenerateRequest request = inputs->request;
  EngineConfig config = inputs->engine;
  const int num_draft_tokens = config.num_speculative_tokens();
  if (config.max_num_seqs() > 0) {
    // Draft tokens take batch slots in addition to those of the samples.
    const int64_t slots = int64_t{std::max(request.n, 1)} * (1 + num_draft_tokens);
    config.set_max_num_seqs(static_cast<int>(std::min<int64_t>(slots, config.max_num_seqs())));
  }
  const EngineContext context = {.max_length =
                                     std::min<int64_t>(static_cast<int64_t>(request.prompt.size()) +
                                                           std::max(request.sampling.max_tokens, 1),
                                                       model.weights->config().max_positions)};
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   MakeTensorParallelEngine(model.weights, config, context, ranks));
  if (engine == nullptr) return absl::OkStatus();  // rank 0 has printed the samples
  const absl::Time start = absl::Now();
  const int samples = request.n;
  RETURN_IF_ERROR(engine->Submit(std::move(request)));
  RETURN_IF_ERROR(Print(model.tokenizer, samples, engine.get()));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const EngineStats stats = engine->Stats();
  if (!absl::GetFlag(FLAGS_quiet)) {
    std::cerr << absl::StreamFormat(
        "%d samples, %d prompt and %d generated tokens in %.2f s: %.0f tokens/s\n", samples,
        stats.prompt_tokens, stats.generated_tokens, seconds, stats.generated_tokens / seconds);
    if (num_draft_tokens > 0) {
      std::cerr << absl::StreamFormat("%d steps; of %d draft tokens %d were accepted\n",
                                      stats.decode_steps, stats.draft_tokens,
                                      stats.accepted_tokens);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::EngineConfig defaults;
  defaults.set_max_num_seqs(64);
  tritonrl::SetEngineFlagDefaults(defaults);
  tritonrl::StartProgram(
      "Samples responses to a prompt.\n"
      "  bazel run //rollout:generate -- --model=FOLDER --prompt=TEXT [--n=4]",
      argc, argv);
  std::unique_ptr<tritonrl::ProcessGroup> ranks;
  absl::Status status = tritonrl::InitTensorParallel(absl::GetFlag(FLAGS_tensor_parallel), &ranks);
  if (status.ok()) status = tritonrl::Run(ranks.get());
  if (status.ok()) return 0;
  const int code = status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
  return tritonrl::ExitWithError(status, "generate", code, ranks.get());
}
