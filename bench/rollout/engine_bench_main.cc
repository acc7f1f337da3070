// Measures generated tokens per second of the engine on a GPU at the shapes of real models, with
// random weights and prompts, beside the bound of the memory's bandwidth, and splits the time of a
// decode step by kernel.
#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "bench/model/step_measures.h"
#include "model/testing/test_util.h"
#include "model/weights/weights.h"
#include "rollout/cuda/cuda_kv_cache.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/distributed/tensor_parallel.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/factory/engine_flags.h"

ABSL_FLAG(std::string, shape, "qwen3_8b", "One of model/configs, or a config.json.");
ABSL_FLAG(std::string, cases, "256x1024x1024;128x4096x1024;32x2048x2048;1x512x512",
          "Requests x prompt tokens x generated tokens, divided by semicolons.");
ABSL_FLAG(double, temperature, 1.0, "Sampling temperature.");
ABSL_FLAG(double, gb_per_s, 4250, "Memory bandwidth in GB/s for which the bounds are computed.");
ABSL_FLAG(double, step_seconds, 4, "Seconds for which decode-only steps are timed.");
ABSL_FLAG(int, chunk_tokens, 0,
          "If not 0: also time steps that carry a prompt chunk of this many tokens.");
ABSL_FLAG(int, kernels, 10, "Number of kernels to list, by time.");
ABSL_FLAG(bool, fused_decode, true, "Persistent fused kernel for steps of at most 32 rows.");
ABSL_FLAG(int, tensor_parallel, 1,
          "Tensor-parallel ranks: mpirun -n N ./run engine_bench --tensor_parallel=N "
          "... (each rank draws its part of the random weights for itself).");
ABSL_FLAG(bool, profile, true, "Profile decode-only steps.");

namespace tritonrl {
namespace {

// The bytes that a step must read: the weights and the KV cache of its rows, once each.
struct StepBound {
  double weight_bytes = 0, token_bytes = 0;  // per step; per cached token
  double gb_per_s = 0;
  double Milliseconds(int rows, double context) const {
    return (weight_bytes + rows * context * token_bytes) / gb_per_s / 1e6;
  }
};

StepBound BoundOf(const ModelConfig& config, const EngineConfig& engine) {
  const int64_t embedding = config.vocab_size * config.hidden_size;
  const int64_t read = config.NumParameters() - (config.tie_word_embeddings ? 0 : embedding);
  const int64_t in_layers = config.NumParameters() - config.hidden_size -
                            embedding * (config.tie_word_embeddings ? 1 : 2);
  const int64_t bytes = 2 * read - (engine.fp8_weights() ? in_layers : 0);
  const CacheType type = engine.fp8_kv_cache() ? CacheType::kE4M3 : CacheType::kBFloat16;
  return {.weight_bytes = static_cast<double>(bytes),
          .token_bytes = static_cast<double>(CudaKvCache::PageBytes(config, type)) / kPageTokens,
          .gb_per_s = absl::GetFlag(FLAGS_gb_per_s)};
}

// Shape of a step: `rows` sequences of `context` tokens decode one token each, and `chunk` tokens
// of a prompt are prefilled, whose first context / 2 tokens are cached.
struct StepLoad {
  int rows = 0;
  int64_t context = 0, chunk = 0;
};

constexpr int32_t kPromptTokens = 1000;  // number of different token ids in prompts

// Repeats the same step. Page tables list the pages in a random permutation.
class LoadSteps {
 public:
  LoadSteps(const StepLoad& load, int num_pages) : load_(load) {
    std::vector<int32_t> order(num_pages);
    for (int i = 0; i < num_pages; ++i) order[i] = i;
    Philox(5).Shuffle(&order);
    auto next = order.begin();
    const auto take = [&next](int64_t tokens) {
      const auto begin = next;
      next += PagesFor(tokens);
      return std::vector<int32_t>(begin, next);
    };
    for (int row = 0; row < load.rows; ++row) pages_.push_back(take(load.context + 1));
    if (load.chunk > 0) pages_.push_back(take(load.context / 2 + load.chunk));
    for (int64_t i = 0; i < load.chunk; ++i) {
      prompt_.push_back(static_cast<int32_t>(i % kPromptTokens));
    }
    sampling_.temperature = absl::GetFlag(FLAGS_temperature);
  }

  absl::Status Launch(ModelRunner* runner) {
    ModelStep step;
    for (int row = 0; row < load_.rows; ++row) {
      step.slices.push_back(
          {.slot = row, .first = load_.context, .count = 1, .pages = pages_[row], .draws = 1});
      if (number_ == 0) step.slices.back().tokens = {&first_token_, 1};
      step.draws.push_back({row, &sampling_, static_cast<uint64_t>(row), number_});
    }
    if (load_.chunk > 0) {
      step.slices.push_back({.tokens = prompt_,
                             .first = load_.context / 2,
                             .count = load_.chunk,
                             .pages = pages_.back()});
    }
    ++number_;
    return runner->Launch(step);
  }

 private:
  const StepLoad load_;
  const int32_t first_token_ = 1;
  std::vector<std::vector<int32_t>> pages_;  // by row; the last one is the chunk's
  std::vector<int32_t> prompt_;
  SamplingSettings sampling_;
  int64_t number_ = 0;
};

struct StepTimes {
  double seconds = 0, watts = 0, megahertz = 0;  // per step; power and clock are 0 if unknown
};

// Runs `count` steps, two in flight at a time. `power` may be null; it needs at least a second.
absl::StatusOr<StepTimes> Steps(int count, LoadSteps* steps, ModelRunner* runner,
                                GpuPower* power = nullptr) {
  StepTimes times;
  if (power != nullptr) power->Begin();
  const absl::Time start = absl::Now();
  for (int i = 0; i < count; ++i) {
    RETURN_IF_ERROR(steps->Launch(runner));
    if (i > 0) RETURN_IF_ERROR(runner->Collect().status());
    if (power != nullptr && i == count / 2) times.megahertz = power->Megahertz();
  }
  RETURN_IF_ERROR(runner->Collect().status());
  times.seconds = absl::ToDoubleSeconds(absl::Now() - start) / count;
  if (power != nullptr) times.watts = power->Watts();
  return times;
}

// Times the steps and their kernels. `runner` must be idle. Measures nothing if its pages do not
// suffice for two rows.
absl::Status ProfileSteps(Bench* bench, const StepLoad& wanted, const StepBound& bound,
                          ModelRunner* runner) {
  constexpr int kSteps = 8;
  StepLoad load = wanted;
  const int64_t of_chunk = load.chunk > 0 ? PagesFor(load.context / 2 + load.chunk) : 0;
  const int64_t left = runner->num_pages() - of_chunk;
  load.rows = static_cast<int>(std::min<int64_t>(load.rows, left / PagesFor(load.context + 1)));
  if (load.rows < std::min(wanted.rows, 2)) {
    std::fprintf(stderr, "steps of %ld tokens of context do not fit the cache\n", load.context);
    return absl::OkStatus();
  }
  LoadSteps steps(load, runner->num_pages());
  // Long enough for the GPU to reach its sustained clock.
  RETURN_IF_ERROR(Steps(4, &steps, runner).status());
  ASSIGN_OR_RETURN(const StepTimes first, Steps(4 * kSteps, &steps, runner));
  const int many = static_cast<int>(absl::GetFlag(FLAGS_step_seconds) / first.seconds) + 1;
  GpuPower power(c10::cuda::current_device());
  ASSIGN_OR_RETURN(const StepTimes times, Steps(many, &steps, runner, &power));
  absl::Status status;
  const StepProfile profile =
      ProfileStep([&] { status = Steps(kSteps, &steps, runner).status(); }, 1, kSteps);
  RETURN_IF_ERROR(status);
  const std::string setting = absl::StrCat(
      "steps of ", load.rows, " rows, context ", load.context,
      load.chunk > 0 ? absl::StrCat(", beside ", load.chunk, " tokens of a prompt") : "");
  Figure step = {"step", 1000 * times.seconds, "ms"};
  if (load.chunk == 0)
    step.bound = bound.Milliseconds(load.rows, static_cast<double>(load.context));
  bench->Add(setting, {step, {"first steps", 1000 * first.seconds, "ms"}});
  bench->Add(setting, profile.Figures());
  bench->Add(setting, {{"power", times.watts, "W"}, {"clock", times.megahertz, "MHz"}});
  bench->PrintTable();
  PrintKernels(profile, absl::GetFlag(FLAGS_kernels));
  return absl::OkStatus();
}

constexpr absl::Duration kLookEach = absl::Seconds(5);
constexpr absl::Duration kMaxPause = absl::Minutes(5);  // longest wait for a token

struct Case {
  int requests = 0;
  int64_t prompt = 0, output = 0;
  std::string Name() const { return absl::StrCat(requests, "x", prompt, "x", output); }
};

absl::StatusOr<std::vector<Case>> ParseCases(const std::string& text) {
  std::vector<Case> cases;
  for (const auto part : absl::StrSplit(text, ';', absl::SkipEmpty())) {
    const std::vector<std::string> numbers = absl::StrSplit(part, 'x');
    Case& next = cases.emplace_back();
    if (numbers.size() != 3 || !absl::SimpleAtoi(numbers[0], &next.requests) ||
        !absl::SimpleAtoi(numbers[1], &next.prompt) ||
        !absl::SimpleAtoi(numbers[2], &next.output) || next.requests < 1 || next.prompt < 1 ||
        next.output < 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--cases: \"", part, "\" is not REQUESTSxPROMPTxOUTPUT, with an output of at least 2"));
    }
  }
  if (cases.empty()) return absl::InvalidArgumentError("--cases is empty");
  return cases;
}

// Returns the seconds from the first request to the last sample.
absl::StatusOr<double> Generate(const Case& c, int64_t output, int64_t vocab, uint64_t seed,
                                Engine* engine) {
  Philox random(seed);
  std::vector<GenerateRequest> requests(c.requests);
  for (int i = 0; i < c.requests; ++i) {
    requests[i].id = i;
    for (int64_t t = 0; t < c.prompt; ++t) {
      requests[i].prompt.push_back(static_cast<int32_t>(random.Below(vocab)));
    }
    requests[i].sampling.max_tokens = static_cast<int>(output);
    requests[i].sampling.temperature = absl::GetFlag(FLAGS_temperature);
    requests[i].key = {.run_seed = seed, .task = static_cast<uint64_t>(i)};
  }
  const absl::Time start = absl::Now();
  const int64_t before = engine->Stats().generated_tokens;
  for (GenerateRequest& request : requests) RETURN_IF_ERROR(engine->Submit(std::move(request)));
  Progress progress({.label = c.Name() + ", tokens ",
                     .total = c.requests * output,
                     .quiet_interval = absl::Seconds(20)});
  absl::Time moved = start;
  int64_t tokens = 0;
  while (engine->Outstanding() > 0) {
    const absl::Status next = engine->Next(absl::Now() + kLookEach).status();
    if (!next.ok() && !absl::IsDeadlineExceeded(next)) return next;
    const absl::Time now = absl::Now();
    const int64_t before_now = std::exchange(tokens, engine->Stats().generated_tokens - before);
    if (next.ok() || tokens > before_now) moved = now;
    if (now > moved + kMaxPause) return next;
    progress.Tick(
        tokens,
        absl::StrCat(tokens / std::max<int64_t>(1, absl::ToInt64Seconds(now - start)), "/s"));
  }
  return absl::ToDoubleSeconds(absl::Now() - start);
}

// `runner` is rank 0's. The warm-up generates a few tokens, which captures the CUDA graphs, and
// times the prefill alone.
absl::Status MeasureEngine(Bench* bench, const Case& c, const StepBound& bound, int64_t vocab,
                           const CudaRunner& runner, Engine* engine) {
  const int64_t prefill_steps = c.requests * c.prompt / runner.max_num_batched_tokens() + 1;
  double prefill = 0, watts = 0;
  EngineStats before;
  const auto generate = [&](bool measured) -> absl::StatusOr<double> {
    if (!measured) {
      // Long enough that all samples decode together before the first one ends.
      const int64_t output = std::min(c.output, prefill_steps + 8);
      RETURN_IF_ERROR(Generate(c, output, vocab, 1, engine).status());
      ASSIGN_OR_RETURN(prefill, Generate(c, 1, vocab, 2, engine));
      return prefill;
    }
    before = engine->Stats();
    GpuPower power(c10::cuda::current_device());
    power.Begin();
    ASSIGN_OR_RETURN(const double seconds, Generate(c, c.output, vocab, 3, engine));
    watts = power.Watts();
    return seconds;
  };
  ASSIGN_OR_RETURN(const auto measured, bench->Measure({generate}));
  const double seconds = Mean(measured[0]), tokens = static_cast<double>(c.requests * c.output);
  const double context = static_cast<double>(c.prompt) + static_cast<double>(c.output) / 2;
  const EngineStats after = engine->Stats();
  bench->Add(c.Name(), {{"generation rate, prefill included", tokens / seconds, "tokens/s",
                         std::nullopt, std::nullopt, Rates(tokens, measured[0])},
                        {"time", seconds, "s"}});
  if (prefill > 0) {
    bench->Add(c.Name(),
               {{"prefill rate", static_cast<double>(c.requests * c.prompt) / prefill, "tokens/s"},
                {"decode step", 1000 * (seconds - prefill) / static_cast<double>(c.output - 1),
                 "ms", std::nullopt, bound.Milliseconds(c.requests, context)}});
  }
  const auto count = [&](const char* metric, int64_t EngineStats::*number) {
    return Count(metric, after.*number - before.*number);
  };
  bench->Add(c.Name(), {count("steps", &EngineStats::decode_steps),
                        count("preemptions", &EngineStats::preemptions),
                        count("recomputed tokens", &EngineStats::recomputed_tokens),
                        Count("graphs", runner.graphs()),
                        {"time to make graphs", runner.graph_seconds(), "s"},
                        {"power", watts, "W"}});
  bench->PrintTable();
  return absl::OkStatus();
}

// Returns null on all ranks but the first, after the first has measured.
absl::StatusOr<std::unique_ptr<ModelRunner>> Spread(std::unique_ptr<CudaRunner> own,
                                                    RankChannels links, ProcessGroup* ranks) {
  if (ranks->size() == 1) return own;
  return MakeTensorParallelRunner(std::move(own), std::move(links), ranks);
}

absl::Status Run(Bench* bench, ProcessGroup* ranks) {
  ASSIGN_OR_RETURN(const std::vector<Case> cases, ParseCases(absl::GetFlag(FLAGS_cases)));
  ASSIGN_OR_RETURN(const ModelConfig whole, ReadModelShape(absl::GetFlag(FLAGS_shape)));
  ASSIGN_OR_RETURN(const ModelConfig config, ShardConfig(whole, ranks->size()));
  if (at::getNumGPUs() <= ranks->local_rank()) {
    return absl::FailedPreconditionError("this bench needs a GPU for each rank");
  }
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(ranks->local_rank()));
  const auto weights = RandomWeights(config, device, at::kBFloat16);
  ASSIGN_OR_RETURN(EngineConfig engine_config, EngineConfigFromFlags());
  EngineContext context;
  engine_config.set_fused_decode(absl::GetFlag(FLAGS_fused_decode));
  for (const Case& c : cases) {
    engine_config.set_max_num_seqs(std::max(engine_config.max_num_seqs(), c.requests));
    context.max_length = std::max(context.max_length, c.prompt + c.output);
  }
  RankChannels links;
  if (ranks->size() > 1) {
    ASSIGN_OR_RETURN(links, MakeRankChannels(device, ranks));
    context.ranks = links.collectives.get();
  }
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(std::unique_ptr<CudaRunner> runner,
                   CudaRunner::Create(weights, engine_config, context));
  std::fprintf(stderr, "%d pages of %d tokens, made in %.2f s\n", runner->num_pages(),
               runner->page_size(), absl::ToDoubleSeconds(absl::Now() - start));
  const StepBound bound = BoundOf(config, engine_config);
  const CudaRunner* const own = runner.get();
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> all,
                   Spread(std::move(runner), std::move(links), ranks));
  if (all == nullptr) return absl::OkStatus();
  ModelRunner* const kept = all.get();
  BatchedEngine engine(std::move(all), engine_config);
  bench->set_subject(
      absl::StrCat("generation, ", absl::GetFlag(FLAGS_shape), " shape, ranks: ", ranks->size()));
  for (const Case& c : cases) {
    RETURN_IF_ERROR(MeasureEngine(bench, c, bound, config.vocab_size, *own, &engine));
    // Uses the engine's runner while the engine is idle, because its pages hold keys and values of
    // real steps: constant data takes less power, and the GPU would keep a higher clock.
    if (!absl::GetFlag(FLAGS_profile)) continue;
    StepLoad load = {.rows = c.requests, .context = c.prompt + c.output / 2};
    RETURN_IF_ERROR(ProfileSteps(bench, load, bound, kept));
    load.chunk = absl::GetFlag(FLAGS_chunk_tokens);
    if (load.chunk > 0) RETURN_IF_ERROR(ProfileSteps(bench, load, bound, kept));
  }
  return absl::OkStatus();
}

absl::Status RunOnRanks(Bench* bench) {
  std::unique_ptr<ProcessGroup> ranks;
  absl::Status status = InitTensorParallel(absl::GetFlag(FLAGS_tensor_parallel), &ranks);
  if (status.ok()) status = Run(bench, ranks.get());
  if (ranks == nullptr || !ranks->is_root()) bench->Mute();
  if (!status.ok()) std::exit(ExitWithError(status, "engine_bench", 1, ranks.get()));
  return status;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench(
      {.usage = "Tokens per second of the generation engine on a GPU.", .warmup = 1, .repeats = 1},
      argc, argv, tritonrl::RunOnRanks);
}
