#include "bench/rollout/bench_engine_steps.h"

#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "base/status.h"
#include "bench/model/step_measures.h"
#include "rollout/cuda/cuda_kv_cache.h"

namespace tritonrl {
namespace {

constexpr int32_t kPromptTokens = 1000;  // different ones

// The same load step after step. Pages lie in the order of a permutation.
class LoadSteps {
 public:
  LoadSteps(const StepLoad& load, double temperature, int num_pages) : load_(load) {
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
    sampling_.temperature = temperature;
  }

  absl::Status Launch(ModelRunner* runner) {
    ModelStep step;
    for (int row = 0; row < load_.rows; ++row) {
      SequenceSlice& slice = step.slices.emplace_back();
      if (number_ == 0) slice.tokens = {&first_token_, 1};
      slice.slot = row;
      slice.first = load_.context;
      slice.count = 1;
      slice.pages = pages_[row];
      slice.draws = 1;
      step.draws.push_back({row, &sampling_, static_cast<uint64_t>(row), number_});
    }
    if (load_.chunk > 0) {
      SequenceSlice& slice = step.slices.emplace_back();
      slice.tokens = prompt_;
      slice.first = load_.context / 2;
      slice.count = load_.chunk;
      slice.pages = pages_.back();
    }
    ++number_;
    return runner->Launch(step);
  }

 private:
  const StepLoad load_;
  const int32_t first_token_ = 1;
  std::vector<std::vector<int32_t>> pages_;  // of rows, and of the chunk
  std::vector<int32_t> prompt_;
  SamplingSettings sampling_;
  int64_t number_ = 0;
};

struct StepTimes {
  double seconds = 0;               // of one
  double watts = 0, megahertz = 0;  // 0 where this machine cannot say
};

// `count` steps, two under way at a time. power: null, or for many steps, in the midst of which it
// is asked.
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

}  // namespace

StepBound BoundOf(const ModelConfig& config, const CudaRunner::Options& options, double gb_per_s) {
  const int64_t embedding = config.vocab_size * config.hidden_size;
  const int64_t read = config.NumParameters() - (config.tie_word_embeddings ? 0 : embedding);
  const int64_t in_layers = config.NumParameters() - config.hidden_size -
                            embedding * (config.tie_word_embeddings ? 1 : 2);
  const int64_t bytes = 2 * read - (options.fp8_weights ? in_layers : 0);
  const CacheType type = options.fp8_kv_cache ? CacheType::kE4M3 : CacheType::kBFloat16;
  return {.weight_bytes = static_cast<double>(bytes),
          .token_bytes = static_cast<double>(CudaKvCache::PageBytes(config, type)) / kPageTokens,
          .gb_per_s = gb_per_s};
}

absl::Status ProfileSteps(const StepLoad& wanted, const StepTiming& timing, const StepBound& bound,
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
  LoadSteps steps(load, timing.temperature, runner->num_pages());
  // For so long that the card comes to the clock that it can keep.
  RETURN_IF_ERROR(Steps(4, &steps, runner).status());
  ASSIGN_OR_RETURN(const StepTimes first, Steps(4 * kSteps, &steps, runner));
  const int many = static_cast<int>(timing.seconds / first.seconds) + 1;
  GpuPower power(c10::cuda::current_device());
  ASSIGN_OR_RETURN(const StepTimes times, Steps(many, &steps, runner, &power));
  absl::Status status;
  const StepProfile profile =
      ProfileStep([&] { status = Steps(kSteps, &steps, runner).status(); }, 1);
  RETURN_IF_ERROR(status);
  const double ms = 1000.0 / kSteps;
  nlohmann::ordered_json line{{"decoding", load.rows},
                              {"context", load.context},
                              {"chunk", load.chunk},
                              {"first_steps_ms", 1000 * first.seconds},
                              {"step_ms", 1000 * times.seconds},
                              {"gemm_ms", ms * profile.gemm},
                              {"attention_ms", ms * profile.attention},
                              {"rest_ms", ms * profile.rest},
                              {"gaps_ms", ms * profile.gaps},
                              {"profiled_ms", ms * profile.seconds},
                              {"watts", times.watts},
                              {"megahertz", times.megahertz}};
  if (load.chunk == 0) {
    line["bound_ms"] = bound.Milliseconds(load.rows, static_cast<double>(load.context));
  }
  std::printf("%s\n", line.dump().c_str());
  PrintKernels(profile, timing.kernels);
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace tritonrl
