// Measures generation for reinforcement learning: groups of samples with log-normal lengths and a
// weight update after each step. Reports tokens per second and the share of idle batch slots,
// strictly on-policy and with sampling.async_rollout (trainer/config/config.proto).
#include <ATen/Context.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "bench/rollout/scripted_runner.h"
#include "model/testing/test_util.h"
#include "model/weights/weights_load.h"
#include "rollout/factory/engine_flags.h"
#include "rollout/factory/make_engine.h"

ABSL_FLAG(std::string, shape, "",
          "Random bf16 weights on the GPU in the shape of one of model/configs; empty: the mini "
          "policy.");
ABSL_FLAG(int, steps, 4, "Training steps.");
ABSL_FLAG(int, samples, 256, "Samples of a step.");
ABSL_FLAG(int, group, 8, "Samples of a prompt.");
ABSL_FLAG(int, prompt_tokens, 64, "Length of each prompt.");
ABSL_FLAG(double, median, 100, "Median length of a sample.");
ABSL_FLAG(double, sigma, 0.9, "Standard deviation of the logarithm of lengths.");
ABSL_FLAG(int64_t, longest, 640, "Maximum length of a sample.");
ABSL_FLAG(std::vector<std::string>, modes,
          std::vector<std::string>({"strict", "invalidate", "keep"}),
          "strict: on-policy; invalidate, keep: async rollout with the KV cache recomputed or kept "
          "after an update.");
ABSL_FLAG(bool, enable_sleep_mode, false,
          "Sleep before each weight update and wake after it, except in the mode keep.");
ABSL_FLAG(bool, always_speculate, false,
          "Propose draft tokens even when the engine expects no gain from them.");
ABSL_FLAG(double, repeat_share, 0,
          "Share of a sample's tokens that are copied from its prompt, as in kernels. The n-gram "
          "proposer finds draft tokens in such copies.");
ABSL_FLAG(int64_t, repeat_length, 32, "Tokens of each copied stretch.");

namespace tritonrl {
namespace {

constexpr int32_t kStopId = 0;
constexpr int kDraftRows = 256;  // maximum number of rows in a step with draft tokens

struct Mode {
  const char *flag, *name;
  std::optional<Engine::KvPolicy> async_policy;  // async rollout; nullopt: strictly on-policy
};
constexpr Mode kModes[] = {
    {"strict", "strict", std::nullopt},
    {"invalidate", "async rollout, KV cache recomputed", Engine::KvPolicy::kInvalidate},
    {"keep", "async rollout, KV cache kept", Engine::KvPolicy::kKeep}};

absl::StatusOr<Mode> ParseMode(const std::string& flag) {
  for (const Mode& mode : kModes) {
    if (flag == mode.flag) return mode;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--modes: \"", flag, "\" is none of strict, invalidate, keep"));
}

int64_t LengthOf(uint64_t stream) {
  Philox random(MixKeys({stream, 0x6c656e677468}));
  return LogNormalLength(absl::GetFlag(FLAGS_median), absl::GetFlag(FLAGS_sigma),
                         absl::GetFlag(FLAGS_longest), &random);
}

absl::StatusOr<std::shared_ptr<Weights>> LoadBenchWeights(const std::string& flag) {
  const std::string shape = absl::GetFlag(FLAGS_shape);
  if (!shape.empty()) {
    ASSIGN_OR_RETURN(const ModelConfig config, ReadModelShape(shape));
    if (at::getNumGPUs() == 0) return absl::FailedPreconditionError("--shape needs a GPU");
    return RandomWeights(config, at::Device(at::kCUDA, 0), at::kBFloat16);
  }
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(flag));
  ASSIGN_OR_RETURN(const std::string folder, Runfile("model/mini"));
  return LoadWeights(folder, device, device.is_cuda() ? at::kBFloat16 : at::kFloat);
}

// The groups of all steps. Immutable, so that the engine's thread may read it too.
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
  const int groups_;  // per step
  std::vector<std::vector<int32_t>> prompts_;
  absl::flat_hash_map<uint64_t, size_t> of_stream_;
};

// Runs the steps of one mode on an otherwise idle engine.
class Load {
 public:
  // first_version: version of the current weights.
  Load(Mode mode, const Prompts& prompts, uint64_t first_version, Engine* engine)
      : mode_(mode), prompts_(prompts), first_version_(first_version), engine_(engine) {}

  absl::StatusOr<std::vector<Figure>> Run(int max_num_seqs) {
    const EngineStats before = engine_->Stats();
    const absl::Time start = absl::Now();
    const int steps = absl::GetFlag(FLAGS_steps);
    // Seconds of a step until its first sample, half of its samples, and its last sample end.
    std::vector<double> first, half, last;
    left_.assign(steps, absl::GetFlag(FLAGS_samples));
    RETURN_IF_ERROR(Submit(0));
    for (int step = 0; step < steps; ++step) {
      const absl::Time began = absl::Now();
      if (!mode_.async_policy && step > 0) RETURN_IF_ERROR(Submit(step));
      if (mode_.async_policy && step + 1 < steps) RETURN_IF_ERROR(Submit(step + 1));
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
    const double idle = 1 - (after.sample_seconds - before.sample_seconds) / max_num_seqs / seconds;
    const double tokens = static_cast<double>(tokens_);
    const auto count = [&](const char* metric, int64_t EngineStats::*number) {
      return Count(metric, after.*number - before.*number);
    };
    return std::vector<Figure>{
        {"generation rate", tokens / seconds, "tokens/s"},
        {"time", seconds, "s"},
        {"idle batch slots", 100 * idle, "%"},
        {"tokens of old weights", 100 * static_cast<double>(stale_) / tokens, "%"},
        Count("longest sample", longest_, "tokens"),
        count("model steps", &EngineStats::decode_steps),
        count("recomputed tokens", &EngineStats::recomputed_tokens),
        count("preemptions", &EngineStats::preemptions),
        count("draft tokens", &EngineStats::draft_tokens),
        count("accepted draft tokens", &EngineStats::accepted_tokens),
        {"time to sleep", after.sleep_seconds - before.sleep_seconds, "s"},
        {"time to wake", after.wake_seconds - before.wake_seconds, "s"},
        {"first sample out, mean of steps", Mean(first), "s", std::nullopt, std::nullopt, first},
        {"half of them out, mean of steps", Mean(half), "s", std::nullopt, std::nullopt, half},
        {"last sample out, mean of steps", Mean(last), "s", std::nullopt, std::nullopt, last}};
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
    for (const WeightVersionSpan& run : sample.versions) {
      stale_ += run.version < first_version_ + step ? run.tokens : 0;
    }
    return absl::OkStatus();
  }

  // The weights do not change, because only the engine's cost of an update is measured.
  absl::Status Update(uint64_t version) {
    RETURN_IF_ERROR(mode_.async_policy ? engine_->PauseForWeightUpdate(*mode_.async_policy)
                                       : engine_->BeginWeightUpdate());
    engine_->EndWeightUpdate(first_version_ + version);
    return absl::OkStatus();
  }

  const Mode mode_;
  const Prompts& prompts_;
  const uint64_t first_version_;
  Engine* const engine_;
  std::vector<int> left_;  // unfinished samples of each step
  int64_t tokens_ = 0, stale_ = 0, longest_ = 0;
};

absl::Status Run(Bench* bench) {
  const int samples = absl::GetFlag(FLAGS_samples), group = absl::GetFlag(FLAGS_group);
  if (group < 1 || samples < group || samples % group != 0) {
    return absl::InvalidArgumentError("--samples must be a multiple of --group");
  }
  const double share = absl::GetFlag(FLAGS_repeat_share);
  if (share < 0 || share > 1 || absl::GetFlag(FLAGS_repeat_length) < 1 ||
      absl::GetFlag(FLAGS_prompt_tokens) < 1) {
    return absl::InvalidArgumentError(
        "--repeat_share must be in [0, 1], --repeat_length and --prompt_tokens at least 1");
  }
  std::vector<Mode> modes;
  for (const std::string& name : absl::GetFlag(FLAGS_modes)) {
    ASSIGN_OR_RETURN(modes.emplace_back(), ParseMode(name));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Weights> weights, LoadBenchWeights(bench->device()));
  ASSIGN_OR_RETURN(EngineConfig config, EngineConfigFromFlags());
  if (config.max_num_seqs() == 0) {
    // All samples of a step fit; rows with draft tokens are at most kDraftRows.
    config.set_max_num_seqs(
        std::max(samples, std::min(kDraftRows, samples * (1 + config.num_speculative_tokens()))));
  }
  config.set_enable_sleep_mode(absl::GetFlag(FLAGS_enable_sleep_mode));
  config.set_always_speculate(absl::GetFlag(FLAGS_always_speculate));
  const EngineContext context = {.max_length = absl::GetFlag(FLAGS_prompt_tokens) +
                                               absl::GetFlag(FLAGS_longest)};
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, MakeModelRunner(weights, config, context));
  const Prompts prompts(weights->config().vocab_size);
  const TextScript script = {
      .stop_id = kStopId,
      .length = LengthOf,
      .repeat_share = share,
      .repeat_length = absl::GetFlag(FLAGS_repeat_length),
      .prompt = [&prompts](uint64_t stream) { return std::span(prompts.OfStream(stream)); }};
  BatchedEngine engine(std::make_unique<ScriptedRunner>(std::move(runner), script), config);
  uint64_t version = 0;
  // The warm-up runs only the first case, strictly on-policy, to capture the CUDA graphs.
  std::vector<std::vector<Figure>> figures(modes.size());
  std::vector<BenchCase> cases;
  for (size_t i = 0; i < modes.size(); ++i) {
    cases.push_back([&, i](bool measured) -> absl::StatusOr<double> {
      if (!measured && i > 0) return 0;
      Load load(measured ? modes[i] : kModes[0], prompts, version, &engine);
      ASSIGN_OR_RETURN(figures[i], load.Run(config.max_num_seqs()));
      version += absl::GetFlag(FLAGS_steps);
      return figures[i].front().value;
    });
  }
  ASSIGN_OR_RETURN(const auto rates, bench->Measure(cases));
  bench->set_subject("asynchronous rollout");
  for (size_t i = 0; i < modes.size(); ++i) {
    // The rate is the mean over the rounds; all other figures are those of the last round.
    figures[i].front().value = Mean(rates[i]);
    figures[i].front().rounds = rates[i];
    bench->Add(absl::StrCat(samples, " samples a step in groups of ", group, ", ",
                            absl::GetFlag(FLAGS_steps), " steps, ", modes[i].name),
               figures[i]);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "Generation with lengths as in reinforcement learning. --device is "
                               "for the mini policy; --shape=NAME runs on a GPU.",
                      .warmup = 1,
                      .repeats = 1,
                      .device = "auto"},
                     argc, argv, tritonrl::Run);
}
