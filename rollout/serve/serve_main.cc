// bazel run //rollout:serve -- --model=DIR: OpenAI's HTTP API for a Hugging Face folder.
//
// Exit codes: 0 ended by SIGTERM or SIGINT, 1 the engine failed or the server cannot listen on the
// address, 2 invalid flags or an invalid --model.

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "model/chat/chat_template.h"
#include "rollout/distributed/tensor_parallel.h"
#include "rollout/factory/engine_flags.h"
#include "rollout/factory/make_engine.h"
#include "rollout/serve/http/http_server.h"
#include "rollout/serve/server.h"

ABSL_FLAG(std::string, model, "", "Folder with config.json, model.safetensors, tokenizer.json.");
ABSL_FLAG(std::string, served_model_name, "", "Name in requests; the folder's if empty.");
ABSL_FLAG(std::string, chat_template, "auto",
          "auto (the model folder's own), none, or the path of a Jinja file.");
ABSL_FLAG(std::optional<bool>, enable_thinking, std::nullopt,
          "The template's variable enable_thinking where a request does not set it; not given: the "
          "template's own default.");
ABSL_FLAG(std::string, chat_arguments, "",
          "More variables of the template, a JSON object; those of a request win.");
ABSL_FLAG(std::string, device, "auto", "cpu, cuda, cuda:N or auto.");
ABSL_FLAG(int, tensor_parallel, 1,
          "Number of tensor-parallel ranks, one GPU each: mpirun --bind-to none -n N serve "
          "--tensor_parallel=N ...");
ABSL_FLAG(int64_t, max_length, 0, "Most tokens of prompt and answer together; 0: the model's.");
ABSL_FLAG(int, threads, 0, "Threads on the CPU; 0: all.");
ABSL_FLAG(std::string, host, "127.0.0.1", "Address to listen on; other than loopback needs a key.");
ABSL_FLAG(int, port, 8000, "0: any free one, which is printed.");
ABSL_FLAG(std::string, api_key_file, "",
          "File (mode 600) with the key that clients must give; else $TRITONRL_API_KEY.");
ABSL_FLAG(int64_t, max_body_bytes, 4 << 20, "Maximum size of a request body.");
ABSL_FLAG(int, max_concurrent, 256, "Maximum number of concurrent requests; more get HTTP 429.");
ABSL_FLAG(int, max_tokens_limit, 0,
          "Maximum number of tokens in a completion; 0: limited by the context.");
ABSL_FLAG(absl::Duration, request_timeout, absl::Minutes(10), "Time limit of a request.");
ABSL_FLAG(absl::Duration, read_timeout, absl::Seconds(30), "Time limit for reading a request.");
ABSL_FLAG(absl::Duration, write_timeout, absl::Seconds(30),
          "Time limit for each write of a response.");
ABSL_FLAG(double, drain_seconds, 30, "Grace period for running requests after SIGTERM.");

namespace tritonrl {
namespace {

// Connections in addition to those of generating requests: health checks, refused requests, idle
// ones.
constexpr int kConnectionsBeside = 64;

absl::StatusOr<ServerOptions> OptionsFromFlags() {
  ServerOptions options;
  options.http.host = absl::GetFlag(FLAGS_host);
  options.http.port = absl::GetFlag(FLAGS_port);
  options.http.max_body_bytes = absl::GetFlag(FLAGS_max_body_bytes);
  options.http.read_timeout = absl::GetFlag(FLAGS_read_timeout);
  options.http.write_timeout = absl::GetFlag(FLAGS_write_timeout);
  options.max_concurrent = absl::GetFlag(FLAGS_max_concurrent);
  options.max_tokens_limit = absl::GetFlag(FLAGS_max_tokens_limit);
  options.request_timeout = absl::GetFlag(FLAGS_request_timeout);
  if (options.http.port < 0 || options.http.port > 65535) {
    return absl::InvalidArgumentError("--port must be 0 to 65535");
  }
  if (options.max_concurrent < 1 || options.max_concurrent > 16384) {
    return absl::InvalidArgumentError("--max_concurrent must be 1 to 16384");
  }
  if (options.http.max_body_bytes < 1 || options.http.max_body_bytes > (int64_t{1} << 30)) {
    return absl::InvalidArgumentError("--max_body_bytes must be 1 to 1 GiB");
  }
  if (options.max_tokens_limit < 0 || !(absl::GetFlag(FLAGS_drain_seconds) >= 0) ||
      absl::GetFlag(FLAGS_max_length) < 0) {
    return absl::InvalidArgumentError(
        "--max_tokens_limit, --drain_seconds and --max_length must not be below 0");
  }
  for (const absl::Duration timeout :
       {options.request_timeout, options.http.read_timeout, options.http.write_timeout}) {
    if (timeout <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(
          "--request_timeout, --read_timeout and --write_timeout must be above 0, such as 30s");
    }
  }
  options.http.max_connections = 2 * options.max_concurrent + kConnectionsBeside;
  const std::string key_file = absl::GetFlag(FLAGS_api_key_file);
  ASSIGN_OR_RETURN(options.api_key, LoadApiKey(key_file.empty() ? "" : UserPath(key_file),
                                               getenv("TRITONRL_API_KEY")));
  return options;
}

absl::StatusOr<ServedModel> Describe(const LoadedModel& model, const std::string& dir) {
  ChatOptions options;
  options.chat_template = absl::GetFlag(FLAGS_chat_template);
  options.enable_thinking = absl::GetFlag(FLAGS_enable_thinking);
  options.arguments = absl::GetFlag(FLAGS_chat_arguments);
  ASSIGN_OR_RETURN(const ChatTemplate chat, ChatTemplate::Load(dir, options, model.tokenizer));
  const ModelConfig& config = model.weights->config();
  ServedModel served{absl::GetFlag(FLAGS_served_model_name), model.tokenizer, chat,
                     chat.WithEndOfTurn(model.stop_ids), model.tokenizer.special_prefix()};
  if (served.name.empty()) served.name = BaseName(dir);
  const int64_t wanted = absl::GetFlag(FLAGS_max_length);
  if (wanted > config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("--max_length is ", wanted, ", the model has ",
                                                   config.max_positions, " positions"));
  }
  served.context = wanted > 0 ? wanted : config.max_positions;
  served.vocab_size = config.vocab_size;
  return served;
}

// The inputs that each rank prepares for itself.
struct Inputs {
  ServerOptions options;
  EngineConfig engine;
  LoadedModel model;
  ServedModel served;
};

absl::StatusOr<Inputs> ReadInputs(const ProcessGroup& ranks) {
  if (absl::GetFlag(FLAGS_model).empty()) {
    return absl::InvalidArgumentError("--model=FOLDER is needed");
  }
  // BaseName of "folder/" would be empty.
  std::string dir = UserPath(absl::GetFlag(FLAGS_model));
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  ASSIGN_OR_RETURN(const ServerOptions options, OptionsFromFlags());
  ASSIGN_OR_RETURN(const EngineConfig engine, EngineConfigFromFlags());
  ASSIGN_OR_RETURN(const at::Device device,
                   ParseDevice(absl::GetFlag(FLAGS_device), ranks.local_rank()));
  if (!DirectoryExists(dir)) {
    return absl::InvalidArgumentError(absl::StrCat("--model=", dir, " is not a folder"));
  }
  ASSIGN_OR_RETURN(LoadedModel model, LoadModel(dir, device, TensorParallelShard(ranks)));
  ASSIGN_OR_RETURN(ServedModel served, Describe(model, dir));
  return Inputs{options, engine, std::move(model), std::move(served)};
}

// Describes the served model and its devices.
std::string FirstLine(const Inputs& inputs, const ProcessGroup& ranks) {
  const int at_once = inputs.engine.max_num_seqs(), others = ranks.size() - 1;
  return absl::StrCat(inputs.served.name, " on ", inputs.model.weights->device().str(),
                      others == 0 ? ""
                                  : absl::StrCat(" and that of ", others,
                                                 others == 1 ? " other rank" : " other ranks"),
                      ", context ", inputs.served.context,
                      at_once > 0 ? absl::StrCat(", ", at_once, " at once") : "",
                      ", chat template: ", inputs.served.chat.source());
}

// Serves until a signal arrives, then drains.
absl::Status ServeUntilSignal(const SignalHandler& interrupts, Server* server) {
  while (interrupts.received() == 0) {
    RETURN_IF_ERROR(server->health());
    absl::SleepFor(absl::Milliseconds(50));
  }
  const double drain = absl::GetFlag(FLAGS_drain_seconds);
  printf("serve: signal %d; requests have %g s to end\n", interrupts.received(), drain);
  fflush(stdout);
  const bool finished = server->Drain(absl::Seconds(drain));
  printf("serve: ended%s\n", finished ? "" : "; some requests were cancelled");
  fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run(ProcessGroup* ranks) {
  const SignalHandler interrupts;  // on all ranks: only rank 0 acts on a signal to the whole job
  absl::StatusOr<Inputs> inputs = ReadInputs(*ranks);
  RETURN_IF_ERROR(SyncStartup(inputs.status(), ranks));
  const EngineContext context = {.max_length = inputs->served.context,
                                 .cpu_threads = absl::GetFlag(FLAGS_threads)};
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   MakeTensorParallelEngine(inputs->model.weights, inputs->engine, context, ranks));
  if (engine == nullptr) return absl::OkStatus();  // rank 0 has served
  const std::string line = FirstLine(*inputs, *ranks);
  const ServerOptions& options = inputs->options;
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                   Server::Start(options, std::move(inputs->served), engine.get()));
  printf("serve: %s, http://%s:%d/v1%s\n", line.c_str(), options.http.host.c_str(), server->port(),
         options.api_key.empty() ? "" : " with a key");
  fflush(stdout);
  return ServeUntilSignal(interrupts, server.get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::EngineConfig defaults;
  defaults.set_enable_prefix_caching(true);
  defaults.set_prefill_budget(0);  // a client waits for its first token
  tritonrl::SetEngineFlagDefaults(defaults);
  tritonrl::StartProgram(
      "OpenAI's HTTP API for a model.\n  bazel run //rollout:serve -- --model=FOLDER", argc, argv);
  std::unique_ptr<tritonrl::ProcessGroup> ranks;
  absl::Status status = tritonrl::InitTensorParallel(absl::GetFlag(FLAGS_tensor_parallel), &ranks);
  if (status.ok()) status = tritonrl::Run(ranks.get());
  if (status.ok()) return 0;
  const bool mistake = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                       absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status) ||
                       absl::IsDataLoss(status);
  return tritonrl::ExitWithError(status, "serve", mistake ? 2 : 1, ranks.get());
}
