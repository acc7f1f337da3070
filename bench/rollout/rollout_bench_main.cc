// Measures generated tokens per second of the engine and of `transformers` generate, with the same
// weights, prompts and lengths, one after the other on the same machine.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "model/weights/weights_load.h"
#include "rollout/factory/engine_flags.h"
#include "rollout/factory/make_engine.h"

ABSL_FLAG(std::string, model, "", "Hugging Face folder; empty: the committed mini policy.");
ABSL_FLAG(int, groups, 8, "Prompts.");
ABSL_FLAG(int, samples, 8, "Samples for each prompt.");
ABSL_FLAG(int, prompt_tokens, 64, "Length of each prompt.");
ABSL_FLAG(int, tokens, 256, "Length of each sample.");
ABSL_FLAG(int, threads, 0, "CPU threads of both; 0: all.");

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

// Returns the seconds for all samples.
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

// Returns the seconds of each round. The warm-up generates 8 tokens per sample.
absl::StatusOr<std::vector<double>> MeasureEngine(Bench* bench, const Setup& setup) {
  ASSIGN_OR_RETURN(const EngineConfig config, EngineConfigFromFlags());
  const EngineContext context = {
      .max_length = absl::GetFlag(FLAGS_prompt_tokens) + absl::GetFlag(FLAGS_tokens),
      .cpu_threads = setup.threads};
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   MakeBatchedEngine(setup.weights, config, context));
  ASSIGN_OR_RETURN(auto seconds, bench->Measure({[&](bool measured) {
    return RunEngine(setup, measured ? absl::GetFlag(FLAGS_tokens) : 8, engine.get());
  }}));
  const EngineStats stats = engine->Stats();
  bench->Add(
      "engine, all rounds",
      {Count("steps", stats.decode_steps), Count("prompt tokens computed", stats.prompt_tokens),
       Count("prompt tokens shared", stats.shared_tokens),
       Count("recomputed tokens", stats.recomputed_tokens), Count("preemptions", stats.preemptions),
       Count("most pages in use", stats.peak_pages), Count("pages", stats.num_pages)});
  return seconds[0];
}

absl::StatusOr<double> MeasureTransformers(Bench* bench, const Setup& setup,
                                           const std::string& device) {
  const nlohmann::json job = {{"model", setup.dir},
                              {"prompts", setup.prompts},
                              {"samples", absl::GetFlag(FLAGS_samples)},
                              {"tokens", absl::GetFlag(FLAGS_tokens)},
                              {"threads", setup.threads},
                              {"repeats", bench->repeats()},
                              {"device", device}};
  ASSIGN_OR_RETURN(const auto lines,
                   RunPeer({.script = "bench/rollout/transformers_peer.py", .input = job.dump()}));
  return lines.front().at("seconds").get<double>();
}

absl::Status Run(Bench* bench) {
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(bench->device()));
  ASSIGN_OR_RETURN(const Setup setup, Prepare(device));
  ASSIGN_OR_RETURN(const std::vector<double> seconds, MeasureEngine(bench, setup));
  const double tokens = 1.0 * absl::GetFlag(FLAGS_groups) * absl::GetFlag(FLAGS_samples) *
                        absl::GetFlag(FLAGS_tokens);
  Figure time = {"time", Fastest(seconds), "s", std::nullopt, std::nullopt, seconds};
  Figure rate = {"generation rate", tokens / time.value, "tokens/s",
                 std::nullopt,      std::nullopt,        Rates(tokens, seconds)};
  if (!bench->peer().empty()) {
    bench->set_peer_name("transformers generate");
    ASSIGN_OR_RETURN(time.peer, MeasureTransformers(bench, setup, device.str()));
    rate.peer = tokens / *time.peer;
  }
  bench->set_subject(absl::StrCat("generation, ", setup.weights->config().NumParameters(),
                                  " parameters, ", device.str(), ", ", setup.threads, " threads"));
  bench->Add(
      absl::StrCat(absl::GetFlag(FLAGS_groups), " prompts of ", absl::GetFlag(FLAGS_prompt_tokens),
                   " tokens, ", absl::GetFlag(FLAGS_samples), " samples of ",
                   absl::GetFlag(FLAGS_tokens), " tokens each"),
      {time, rate});
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::EngineConfig defaults;
  defaults.set_max_num_seqs(64);
  tritonrl::SetEngineFlagDefaults(defaults);
  tritonrl::RunBench({.usage = "Generated tokens per second against transformers generate.",
                      .warmup = 1,
                      .repeats = 3,
                      .peer = "true",
                      .device = "auto"},
                     argc, argv, tritonrl::Run);
}
