// Generation for reinforcement learning: groups of samples whose lengths are log-normal, a few of
// them much longer than the rest, and an update of the weights after each step. Tokens a second and
// the share of places that stood idle, strictly on-policy and with the next step begun ahead
// (SamplingConfig.ahead in trainer/config.proto). With --repeat_share samples copy stretches of
// their prompts, as kernels do, which is what speculative decoding lives on.
//
//   bazel run //rollout:load_bench                                        # the mini policy
//   ./run load_bench --shape=qwen3_8b --prompt_tokens=1024 --median=3000 --longest=16384
//   ./run load_bench --shape=qwen3_8b --samples=8 --steps=1 --prompt_tokens=1024 --median=1000
//       --sigma=0 --longest=2048 --repeat_share=0.5 --max_guesses=8
//
// With --release_memory each update gives the cache's memory back and takes it again; an old cache
// that is kept stays.
#include <ATen/Context.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "model/bench_inputs.h"
#include "rollout/load_model.h"
#include "rollout/log_normal_length.h"
#include "rollout/make_engine.h"
#include "rollout/planned_text_runner.h"

ABSL_FLAG(std::string, shape, "",
          "Random bf16 weights on the GPU in the shape of one of model/configs; empty: the mini "
          "policy.");
ABSL_FLAG(std::string, device, "auto", "Of the mini policy: cpu, cuda, cuda:N or auto.");
ABSL_FLAG(int, steps, 4, "Training steps.");
ABSL_FLAG(int, samples, 256, "Samples of a step.");
ABSL_FLAG(int, group, 8, "Samples of a prompt.");
ABSL_FLAG(int, prompt_tokens, 64, "Length of each prompt.");
ABSL_FLAG(double, median, 100, "Median length of a sample.");
ABSL_FLAG(double, sigma, 0.9, "Standard deviation of the logarithm of lengths.");
ABSL_FLAG(int64_t, longest, 640, "Samples are cut off after so many tokens.");
ABSL_FLAG(int, max_running, 0,
          "Rows of a step: samples that run side by side, and guesses; 0: for all samples of a "
          "step, with --max_guesses for theirs too up to 256.");
ABSL_FLAG(int64_t, cache_bytes, 0, "The engine's memory for keys and values; 0: its choice.");
ABSL_FLAG(bool, warm_up, true, "Run once before, unmeasured: a GPU makes its graphs.");
ABSL_FLAG(std::vector<std::string>, modes, std::vector<std::string>({"strict", "forget", "keep"}),
          "strict: on-policy; forget, keep: the next step is begun ahead, and after an update the "
          "cache of what runs is computed anew, or kept.");
ABSL_FLAG(bool, release_memory, false,
          "Give the cache's memory back in each update (EngineOptions::release_memory).");
ABSL_FLAG(int, max_guesses, 0, "Tokens that speculative decoding guesses at a time; 0: off.");
ABSL_FLAG(bool, always_guess, false, "Guess also where it does not pay.");
ABSL_FLAG(double, repeat_share, 0,
          "Share of a sample's tokens that are copied from its prompt, so that guesses can hold.");
ABSL_FLAG(int64_t, repeat_length, 32, "Tokens of each stretch that is copied.");

namespace tritonrl {
namespace {

constexpr int32_t kStopId = 0;
constexpr int kGuessRows = 256;  // with guesses, of a step

enum class Mode { kStrict, kAheadForget, kAheadKeep };

const char* ModeName(Mode mode) {
  switch (mode) {
    case Mode::kStrict:
      return "strict";
    case Mode::kAheadForget:
      return "ahead, cache computed anew";
    case Mode::kAheadKeep:
      return "ahead, old cache kept";
  }
  return "";
}

absl::StatusOr<Mode> ParseMode(const std::string& name) {
  if (name == "strict") return Mode::kStrict;
  if (name == "forget") return Mode::kAheadForget;
  if (name == "keep") return Mode::kAheadKeep;
  return absl::InvalidArgumentError(
      absl::StrCat("--modes: \"", name, "\" is none of strict, forget, keep"));
}

int64_t LengthOf(uint64_t stream) {
  Philox random(MixKeys({stream, 0x6c656e677468}));
  return LogNormalLength(absl::GetFlag(FLAGS_median), absl::GetFlag(FLAGS_sigma),
                         absl::GetFlag(FLAGS_longest), &random);
}

absl::StatusOr<std::shared_ptr<Weights>> LoadWeights() {
  const std::string shape = absl::GetFlag(FLAGS_shape);
  if (!shape.empty()) {
    ASSIGN_OR_RETURN(const ModelConfig config, ShapeOf(shape));
    if (at::getNumGPUs() == 0) return absl::FailedPreconditionError("--shape needs a GPU");
    return RandomWeights(config, at::Device(at::kCUDA, 0), at::kBFloat16);
  }
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(absl::GetFlag(FLAGS_device)));
  ASSIGN_OR_RETURN(const std::string folder, Runfile("model/mini"));
  return Weights::Load(folder, device, device.is_cuda() ? at::kBFloat16 : at::kFloat);
}

// Of all steps' groups; nothing of it changes, so that the engine's thread may read it too.
class Prompts {
 public:
  explicit Prompts(int64_t vocab) : groups_(absl::GetFlag(FLAGS_samples) / GroupSize()) {
    for (int step = 0; step < absl::GetFlag(FLAGS_steps); ++step) {
      for (int group = 0; group < groups_; ++group) {
        std::vector<int32_t>& prompt = prompts_.emplace_back();
        Philox random(Id(step, group));
        for (int t = 0; t < absl::GetFlag(FLAGS_prompt_tokens); ++t) {
          prompt.push_back(static_cast<int32_t>(random.Below(vocab)));
        }
        for (int i = 0; i < GroupSize(); ++i) {
          of_stream_[SampleStream(Key(step, group), i)] = prompts_.size() - 1;
        }
      }
    }
  }

  static int GroupSize() { return absl::GetFlag(FLAGS_group); }
  static uint64_t Id(int step, int group) {
    return static_cast<uint64_t>(step) << 32 | static_cast<uint64_t>(group);
  }
  static SampleKey Key(int step, int group) {
    return {.step = static_cast<uint64_t>(step), .task = static_cast<uint64_t>(group)};
  }
  int groups() const { return groups_; }
  const std::vector<int32_t>& Of(int step, int group) const {
    return prompts_[step * groups_ + group];
  }
  const std::vector<int32_t>& OfStream(uint64_t stream) const {
    return prompts_[of_stream_.at(stream)];
  }

 private:
  const int groups_;  // of a step
  std::vector<std::vector<int32_t>> prompts_;
  absl::flat_hash_map<uint64_t, size_t> of_stream_;
};

// Steps of one mode, on an engine that has nothing else to do.
class Load {
 public:
  // first_version: of the weights now.
  Load(Mode mode, const Prompts& prompts, uint64_t first_version, Engine* engine)
      : mode_(mode), prompts_(prompts), first_version_(first_version), engine_(engine) {}

  absl::StatusOr<nlohmann::ordered_json> Run(int max_running) {
    const EngineStats before = engine_->Stats();
    const absl::Time start = absl::Now();
    const int steps = absl::GetFlag(FLAGS_steps);
    std::vector<double> first, half, last;  // seconds of a step until samples are out
    left_.assign(steps, absl::GetFlag(FLAGS_samples));
    RETURN_IF_ERROR(Submit(0));
    for (int step = 0; step < steps; ++step) {
      const absl::Time began = absl::Now();
      if (mode_ == Mode::kStrict && step > 0) RETURN_IF_ERROR(Submit(step));
      if (mode_ != Mode::kStrict && step + 1 < steps) RETURN_IF_ERROR(Submit(step + 1));
      const int all = left_[step];
      while (left_[step] > 0) {
        RETURN_IF_ERROR(Take());
        const double seconds = absl::ToDoubleSeconds(absl::Now() - began);
        if (left_[step] == all - 1) first.push_back(seconds);
        if (left_[step] <= all / 2 && half.size() <= static_cast<size_t>(step)) {
          half.push_back(seconds);
        }
      }
      last.push_back(absl::ToDoubleSeconds(absl::Now() - began));
      RETURN_IF_ERROR(Update(static_cast<uint64_t>(step) + 1));
    }
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    const EngineStats after = engine_->Stats();
    return nlohmann::ordered_json{
        {"mode", ModeName(mode_)},
        {"tokens_per_s", static_cast<double>(tokens_) / seconds},
        {"seconds", seconds},
        {"idle_share", 1 - (after.sample_seconds - before.sample_seconds) / max_running / seconds},
        {"stale_share", static_cast<double>(stale_) / static_cast<double>(tokens_)},
        {"longest_sample", longest_},
        {"model_steps", after.decode_steps - before.decode_steps},
        {"recomputed_tokens", after.recomputed_tokens - before.recomputed_tokens},
        {"preemptions", after.preemptions - before.preemptions},
        {"guessed_tokens", after.guessed_tokens - before.guessed_tokens},
        {"guessed_right", after.guessed_right - before.guessed_right},
        {"release_s", after.release_seconds - before.release_seconds},
        {"take_s", after.take_seconds - before.take_seconds},
        {"first_out_s", first},
        {"half_out_s", half},
        {"last_out_s", last}};
  }

 private:
  absl::Status Submit(int step) {
    for (int group = 0; group < prompts_.groups(); ++group) {
      GenerateRequest request;
      request.id = Prompts::Id(step, group);
      request.prompt = prompts_.Of(step, group);
      request.n = Prompts::GroupSize();
      request.sampling.max_tokens = static_cast<int>(absl::GetFlag(FLAGS_longest));
      request.sampling.stop_ids = {kStopId};
      request.key = Prompts::Key(step, group);
      RETURN_IF_ERROR(engine_->Submit(std::move(request)));
    }
    return absl::OkStatus();
  }

  absl::Status Take() {
    ASSIGN_OR_RETURN(const Sample sample, engine_->Next(absl::Now() + absl::Minutes(10)));
    const uint64_t step = sample.request_id >> 32;
    --left_[step];
    const auto length = static_cast<int64_t>(sample.tokens.size());
    tokens_ += length;
    longest_ = std::max(longest_, length);
    for (const VersionRun& run : sample.versions) {
      stale_ += run.version < first_version_ + step ? run.tokens : 0;
    }
    return absl::OkStatus();
  }

  // The weights stay as they are: what counts is what an update costs the engine.
  absl::Status Update(uint64_t version) {
    RETURN_IF_ERROR(mode_ == Mode::kStrict
                        ? engine_->BeginWeightUpdate()
                        : engine_->PauseForWeightUpdate(mode_ == Mode::kAheadKeep
                                                            ? Engine::OldCache::kKeep
                                                            : Engine::OldCache::kForget));
    engine_->EndWeightUpdate(first_version_ + version);
    return absl::OkStatus();
  }

  const Mode mode_;
  const Prompts& prompts_;
  const uint64_t first_version_;
  Engine* const engine_;
  std::vector<int> left_;  // samples of each step
  int64_t tokens_ = 0, stale_ = 0, longest_ = 0;
};

absl::Status Run() {
  const int samples = absl::GetFlag(FLAGS_samples), group = absl::GetFlag(FLAGS_group);
  if (group < 1 || samples < group || samples % group != 0) {
    return absl::InvalidArgumentError("--samples must be a multiple of --group");
  }
  const double share = absl::GetFlag(FLAGS_repeat_share);
  const int guesses = absl::GetFlag(FLAGS_max_guesses);
  if (share < 0 || share > 1 || absl::GetFlag(FLAGS_repeat_length) < 1 || guesses < 0 ||
      absl::GetFlag(FLAGS_prompt_tokens) < 1) {
    return absl::InvalidArgumentError(
        "--repeat_share must be in [0, 1], --repeat_length and --prompt_tokens at least 1, "
        "--max_guesses at least 0");
  }
  std::vector<Mode> modes;
  for (const std::string& name : absl::GetFlag(FLAGS_modes)) {
    ASSIGN_OR_RETURN(modes.emplace_back(), ParseMode(name));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Weights> weights, LoadWeights());
  EngineOptions options;
  options.max_running = absl::GetFlag(FLAGS_max_running);
  if (options.max_running == 0) {
    options.max_running = std::max(samples, std::min(kGuessRows, samples * (1 + guesses)));
  }
  options.cache_bytes = absl::GetFlag(FLAGS_cache_bytes);
  options.max_length = absl::GetFlag(FLAGS_prompt_tokens) + absl::GetFlag(FLAGS_longest);
  options.release_memory = absl::GetFlag(FLAGS_release_memory);
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, MakeModelRunner(weights, options));
  const Prompts prompts(weights->config().vocab_size);
  const TextPlan plan = {
      .stop_id = kStopId,
      .length = LengthOf,
      .repeat_share = share,
      .repeat_length = absl::GetFlag(FLAGS_repeat_length),
      .prompt = [&prompts](uint64_t stream) { return std::span(prompts.OfStream(stream)); }};
  BatchedEngine engine(std::make_unique<PlannedTextRunner>(std::move(runner), plan),
                       WithOptionsOf(options, {.max_guesses = guesses,
                                               .always_guess = absl::GetFlag(FLAGS_always_guess)}));
  uint64_t version = 0;
  if (absl::GetFlag(FLAGS_warm_up)) {
    RETURN_IF_ERROR(
        Load(Mode::kStrict, prompts, version, &engine).Run(options.max_running).status());
    version += absl::GetFlag(FLAGS_steps);
  }
  for (const Mode mode : modes) {
    ASSIGN_OR_RETURN(const nlohmann::ordered_json line,
                     Load(mode, prompts, version, &engine).Run(options.max_running));
    version += absl::GetFlag(FLAGS_steps);
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Generation with lengths as in reinforcement learning.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = tritonrl::Run();
  if (!status.ok()) std::fprintf(stderr, "load_bench: %s\n", tritonrl::Message(status).c_str());
  std::fflush(nullptr);
  // Not by exit(): see model/step_bench_main.cc.
  std::_Exit(status.ok() ? 0 : 1);
}
