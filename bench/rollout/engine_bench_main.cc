// Generated tokens per second of the engine on a GPU at the shapes of real models, with random
// weights and prompts, beside what the memory's bandwidth allows; and where the time of a step that
// only decodes goes.
//
//   ./run engine_bench '--cases=256x1024x1024;1x512x512'
#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/status.h"
#include "bench/model/step_measures.h"
#include "bench/rollout/bench_engine_steps.h"
#include "model/testing/test_util.h"
#include "model/weights/weights.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/distributed/tensor_parallel.h"
#include "rollout/engine/batched_engine.h"

ABSL_FLAG(std::string, shape, "qwen3_8b", "One of model/configs, or a config.json.");
ABSL_FLAG(std::string, cases, "256x1024x1024;128x4096x1024;32x2048x2048;1x512x512",
          "Requests x prompt tokens x generated tokens, divided by semicolons.");
ABSL_FLAG(int, max_num_batched_tokens, 0,
          "Maximum number of tokens in a step; 0: the engine's choice.");
ABSL_FLAG(int, prefill_budget, 256,
          "Prefill budget of a step while requests wait; 0: --max_num_batched_tokens.");
ABSL_FLAG(double, temperature, 1.0, "Of the draws.");
ABSL_FLAG(double, gb_per_s, 4250, "Bandwidth that the bounds are for.");
ABSL_FLAG(double, step_seconds, 4, "Steps that only decode are timed for so long.");
ABSL_FLAG(int, chunk_tokens, 0, "If not 0: steps beside so many tokens of a prompt are timed too.");
ABSL_FLAG(int, kernels, 10, "Kernels to name, by time.");
ABSL_FLAG(bool, fused_decode, true, "Persistent fused kernel for steps of at most 32 rows.");
ABSL_FLAG(bool, batch_invariant, false,
          "Whether samples' bits must not depend on what else is in the batch.");
ABSL_FLAG(bool, fp8_kv_cache, false, "FP8 KV cache.");
ABSL_FLAG(bool, fp8_weights, false, "FP8 GEMMs.");
ABSL_FLAG(int, tensor_parallel, 1,
          "Tensor-parallel ranks: mpirun -n N ./run engine_bench --tensor_parallel=N "
          "... (each rank draws its part of the random weights for itself).");
ABSL_FLAG(
    bool, warm_up, true,
    "Generate a little before the measured run, which makes its graphs, and time prompts alone.");
ABSL_FLAG(bool, profile, true, "Whether to profile steps that only decode.");

namespace tritonrl {
namespace {

constexpr absl::Duration kLookEach = absl::Seconds(5);
constexpr absl::Duration kMaxPause = absl::Minutes(5);  // without a token

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

// Seconds from the first request to the last sample.
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

// `runner`: rank 0's own.
absl::Status MeasureEngine(const Case& c, const StepBound& bound, int64_t vocab,
                           const CudaRunner& runner, Engine* engine) {
  // For so long that all of them decode side by side before the first ends: its graphs are then
  // those that the measured run needs.
  const int64_t prefill_steps = c.requests * c.prompt / runner.max_num_batched_tokens() + 1;
  double prefill = 0;
  if (absl::GetFlag(FLAGS_warm_up)) {
    RETURN_IF_ERROR(Generate(c, std::min(c.output, prefill_steps + 8), vocab, 1, engine).status());
    ASSIGN_OR_RETURN(prefill, Generate(c, 1, vocab, 2, engine));
  }
  const EngineStats before = engine->Stats();
  GpuPower power(c10::cuda::current_device());
  power.Begin();
  ASSIGN_OR_RETURN(const double seconds, Generate(c, c.output, vocab, 3, engine));
  const double watts = power.Watts();
  const EngineStats after = engine->Stats();
  const double tokens = static_cast<double>(c.requests * c.output);
  const double mean = static_cast<double>(c.prompt) + static_cast<double>(c.output) / 2;
  nlohmann::ordered_json line{
      {"case", c.Name()}, {"tokens_per_s", tokens / seconds}, {"seconds", seconds}};
  if (prefill > 0) {
    line["prefill_tokens_per_s"] = static_cast<double>(c.requests * c.prompt) / prefill;
    line["step_ms"] = 1000 * (seconds - prefill) / static_cast<double>(c.output - 1);
  }
  line.update({{"bound_ms", bound.Milliseconds(c.requests, mean)},
               {"steps", after.decode_steps - before.decode_steps},
               {"preemptions", after.preemptions - before.preemptions},
               {"recomputed_tokens", after.recomputed_tokens - before.recomputed_tokens},
               {"graphs", runner.graphs()},
               {"graph_s", runner.graph_seconds()},
               {"watts", watts}});
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

// Null on ranks but the first, once that has measured.
absl::StatusOr<std::unique_ptr<ModelRunner>> Spread(std::unique_ptr<CudaRunner> own,
                                                    RankChannels links, ProcessGroup* ranks) {
  if (ranks->size() == 1) return own;
  return MakeTensorParallelRunner(std::move(own), std::move(links), ranks);
}

absl::Status Run(ProcessGroup* ranks) {
  ASSIGN_OR_RETURN(const std::vector<Case> cases, ParseCases(absl::GetFlag(FLAGS_cases)));
  ASSIGN_OR_RETURN(const ModelConfig whole, ReadModelShape(absl::GetFlag(FLAGS_shape)));
  ASSIGN_OR_RETURN(const ModelConfig config, ShardConfig(whole, ranks->size()));
  if (at::getNumGPUs() <= ranks->local_rank()) {
    return absl::FailedPreconditionError("this bench needs a GPU for each rank");
  }
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(ranks->local_rank()));
  const auto weights = RandomWeights(config, device, at::kBFloat16);
  CudaRunner::Options options;
  options.max_num_seqs = 1;
  options.max_num_batched_tokens = absl::GetFlag(FLAGS_max_num_batched_tokens);
  options.prefill_budget = absl::GetFlag(FLAGS_prefill_budget);
  options.batch_invariant = absl::GetFlag(FLAGS_batch_invariant);
  options.fp8_kv_cache = absl::GetFlag(FLAGS_fp8_kv_cache);
  options.fp8_weights = absl::GetFlag(FLAGS_fp8_weights);
  options.fused_decode = absl::GetFlag(FLAGS_fused_decode);
  for (const Case& c : cases) {
    options.max_num_seqs = std::max(options.max_num_seqs, c.requests);
    options.max_length = std::max(options.max_length, c.prompt + c.output);
  }
  RankChannels links;
  if (ranks->size() > 1) {
    ASSIGN_OR_RETURN(links, MakeRankChannels(device, ranks));
    options.ranks = links.collectives.get();
  }
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(std::unique_ptr<CudaRunner> runner, CudaRunner::Create(weights, options));
  std::fprintf(stderr, "%d pages of %d tokens, made in %.2f s\n", runner->num_pages(),
               runner->page_size(), absl::ToDoubleSeconds(absl::Now() - start));
  const StepBound bound = BoundOf(config, options, absl::GetFlag(FLAGS_gb_per_s));
  const StepTiming timing = {.seconds = absl::GetFlag(FLAGS_step_seconds),
                             .temperature = absl::GetFlag(FLAGS_temperature),
                             .kernels = absl::GetFlag(FLAGS_kernels)};
  const CudaRunner* const own = runner.get();
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> all,
                   Spread(std::move(runner), std::move(links), ranks));
  if (all == nullptr) return absl::OkStatus();
  ModelRunner* const kept = all.get();
  BatchedEngine engine(std::move(all), {});
  for (const Case& c : cases) {
    RETURN_IF_ERROR(MeasureEngine(c, bound, config.vocab_size, *own, &engine));
    // By the engine's runner while the engine has nothing to do, so that pages hold what layers
    // wrote: numbers that are all alike take less power, and the card keeps a higher clock.
    if (!absl::GetFlag(FLAGS_profile)) continue;
    StepLoad load = {.rows = c.requests, .context = c.prompt + c.output / 2};
    RETURN_IF_ERROR(ProfileSteps(load, timing, bound, kept));
    load.chunk = absl::GetFlag(FLAGS_chunk_tokens);
    if (load.chunk > 0) RETURN_IF_ERROR(ProfileSteps(load, timing, bound, kept));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Tokens per second of the generation engine on a GPU.", argc, argv);
  std::unique_ptr<tritonrl::ProcessGroup> ranks;
  absl::Status status = tritonrl::InitTensorParallel(absl::GetFlag(FLAGS_tensor_parallel), &ranks);
  if (status.ok()) status = tritonrl::Run(ranks.get());
  const int code =
      status.ok() ? 0 : tritonrl::ExitWithError(status, "engine_bench", 1, ranks.get());
  ranks.reset();
  std::fflush(nullptr);
  // Not by exit(): see bench/model/step_bench_main.cc.
  std::_Exit(code);
}
