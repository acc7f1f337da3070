// Generated tokens per second of the engine and of `transformers` generate, with the same weights,
// prompts and lengths, one after the other on the same machine.

#include <algorithm>
#include <iostream>
#include <string>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/random.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "model/weights/weights_load.h"
#include "nlohmann/json.hpp"
#include "rollout/factory/load_model.h"
#include "rollout/factory/make_engine.h"

ABSL_FLAG(std::string, model, "", "Hugging Face folder; empty: the committed mini policy.");
ABSL_FLAG(int, groups, 8, "Prompts.");
ABSL_FLAG(int, samples, 8, "Samples for each prompt.");
ABSL_FLAG(int, prompt_tokens, 64, "Length of each prompt.");
ABSL_FLAG(int, tokens, 256, "Length of each sample.");
ABSL_FLAG(int, max_num_seqs, 64, "Maximum number of sequences in a batch of the engine.");
ABSL_FLAG(int64_t, cache_bytes, 0, "Bytes of the KV cache; 0: enough.");
ABSL_FLAG(int, max_num_batched_tokens, 0,
          "Maximum number of tokens in a step of the engine; 0: chosen.");
ABSL_FLAG(int, threads, 0, "CPU threads of both; 0: all.");
ABSL_FLAG(int, repeats, 3, "Measurements of each; the fastest counts.");
ABSL_FLAG(std::string, device, "auto", "cpu, cuda, cuda:N or auto.");
ABSL_FLAG(bool, transformers, true, "Whether to run transformers too.");

namespace tritonrl {
namespace {

struct Setup {
  std::string dir;
  std::shared_ptr<Weights> weights;
  int threads = 0;
  std::vector<std::vector<int32_t>> prompts;
};

absl::StatusOr<Setup> Prepare(at::Device device) {
  Setup setup;
  const at::ScalarType dtype = device.is_cuda() ? at::kBFloat16 : at::kFloat;
  if (absl::GetFlag(FLAGS_model).empty()) {
    ASSIGN_OR_RETURN(setup.dir, Runfile("model/mini"));
  } else {
    setup.dir = UserPath(absl::GetFlag(FLAGS_model));
  }
  ASSIGN_OR_RETURN(setup.weights, LoadWeights(setup.dir, device, dtype));
  const int threads = absl::GetFlag(FLAGS_threads);
  setup.threads = threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
  Philox random(7);
  for (int group = 0; group < absl::GetFlag(FLAGS_groups); ++group) {
    std::vector<int32_t>& prompt = setup.prompts.emplace_back();
    for (int i = 0; i < absl::GetFlag(FLAGS_prompt_tokens); ++i) {
      prompt.push_back(static_cast<int32_t>(random.Below(setup.weights->config().vocab_size)));
    }
  }
  return setup;
}

// Seconds for all samples.
absl::StatusOr<double> RunEngine(const Setup& setup, int tokens, Engine* engine) {
  const absl::Time start = absl::Now();
  for (size_t group = 0; group < setup.prompts.size(); ++group) {
    GenerateRequest request;
    request.id = group;
    request.prompt = setup.prompts[group];
    request.n = absl::GetFlag(FLAGS_samples);
    request.sampling.max_tokens = tokens;
    request.key.task = group;
    RETURN_IF_ERROR(engine->Submit(std::move(request)));
  }
  while (engine->Outstanding() > 0) {
    RETURN_IF_ERROR(engine->Next(absl::InfiniteFuture()).status());
  }
  return absl::ToDoubleSeconds(absl::Now() - start);
}

absl::StatusOr<double> MeasureEngine(const Setup& setup) {
  EngineOptions options;
  options.max_num_seqs = absl::GetFlag(FLAGS_max_num_seqs);
  options.cache_bytes = absl::GetFlag(FLAGS_cache_bytes);
  options.max_num_batched_tokens = absl::GetFlag(FLAGS_max_num_batched_tokens);
  options.cpu_threads = setup.threads;
  options.max_length = absl::GetFlag(FLAGS_prompt_tokens) + absl::GetFlag(FLAGS_tokens);
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, MakeBatchedEngine(setup.weights, options));
  RETURN_IF_ERROR(RunEngine(setup, 8, engine.get()).status());  // Warms up.
  double best = 1e30;
  for (int i = 0; i < absl::GetFlag(FLAGS_repeats); ++i) {
    ASSIGN_OR_RETURN(const double seconds,
                     RunEngine(setup, absl::GetFlag(FLAGS_tokens), engine.get()));
    best = std::min(best, seconds);
  }
  const EngineStats stats = engine->Stats();
  std::cout << absl::StreamFormat(
      "engine: %d steps, %d prompt tokens computed, %d shared, %d recomputed, %d preemptions, "
      "at most %d of %d pages\n",
      stats.decode_steps, stats.prompt_tokens, stats.shared_tokens, stats.recomputed_tokens,
      stats.preemptions, stats.peak_pages, stats.num_pages);
  return best;
}

absl::StatusOr<double> MeasureTransformers(const Setup& setup, const std::string& device) {
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  ASSIGN_OR_RETURN(const std::string script, Runfile("bench/rollout/transformers_peer.py"));
  const nlohmann::json job = {{"model", setup.dir},
                              {"prompts", setup.prompts},
                              {"samples", absl::GetFlag(FLAGS_samples)},
                              {"tokens", absl::GetFlag(FLAGS_tokens)},
                              {"threads", setup.threads},
                              {"repeats", absl::GetFlag(FLAGS_repeats)},
                              {"device", device}};
  RunCommandOptions options;
  options.input = job.dump();
  options.timeout = absl::Minutes(30);
  options.env = python.Environment();
  ASSIGN_OR_RETURN(const CommandResult result, RunCommand({python.interpreter, script}, options));
  double seconds = 0;
  if (result.exit_code != 0 || !absl::SimpleAtod(result.out, &seconds)) {
    return absl::InternalError(absl::StrCat("bench_transformers.py failed: ", result.err));
  }
  return seconds;
}

void PrintRow(const char* name, double seconds) {
  const int64_t tokens = int64_t{1} * absl::GetFlag(FLAGS_groups) * absl::GetFlag(FLAGS_samples) *
                         absl::GetFlag(FLAGS_tokens);
  std::cout << absl::StreamFormat("%-24s %8.2f s %10.0f generated tokens/s\n", name, seconds,
                                  tokens / seconds)
            << std::flush;
}

absl::Status Run() {
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(absl::GetFlag(FLAGS_device)));
  ASSIGN_OR_RETURN(const Setup setup, Prepare(device));
  std::cout << absl::StreamFormat(
      "%d prompts of %d tokens, %d samples of %d tokens for each, %d parameters, %s, %d threads\n",
      absl::GetFlag(FLAGS_groups), absl::GetFlag(FLAGS_prompt_tokens), absl::GetFlag(FLAGS_samples),
      absl::GetFlag(FLAGS_tokens), setup.weights->config().NumParameters(), device.str(),
      setup.threads);
  ASSIGN_OR_RETURN(const double ours, MeasureEngine(setup));
  PrintRow("engine", ours);
  if (absl::GetFlag(FLAGS_transformers)) {
    ASSIGN_OR_RETURN(const double theirs, MeasureTransformers(setup, device.str()));
    PrintRow("transformers generate", theirs);
    std::cout << absl::StreamFormat("the engine is %.1f times as fast\n", theirs / ours);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram(
      "Measures generated tokens per second against transformers generate.\n"
      "  bazel run //bench/rollout:rollout_bench -- [--model=FOLDER]",
      argc, argv);
  const absl::Status status = tritonrl::Run();
  if (!status.ok()) {
    std::cerr << "bench: " << tritonrl::Message(status) << "\n";
    return 1;
  }
  return 0;
}
