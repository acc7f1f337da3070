// Samples as reinforcement learning makes them, for benches: log-normal lengths, and a model runner
// that replaces drawn tokens by a script, as random weights give neither stop tokens nor
// repetitions.
#ifndef TRITONRL_BENCH_ROLLOUT_SCRIPTED_RUNNER_H_
#define TRITONRL_BENCH_ROLLOUT_SCRIPTED_RUNNER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "base/status.h"
#include "rollout/engine/model_runner.h"

namespace tritonrl {

// Tokens, from 1 to `longest`: log-normal with this median, and `sigma` as the standard deviation
// of the logarithm. Takes one normal number.
inline int64_t LogNormalLength(double median, double sigma, int64_t longest, Philox* random) {
  return std::clamp<int64_t>(std::llround(median * std::exp(sigma * random->Normal())), 1, longest);
}

// Of samples by the stream that they draw from (StepDraw). Called on the engine's thread.
struct TextScript {
  int32_t stop_id = 0;
  // Tokens of a sample, its last one included, which becomes stop_id; any other stop_id becomes
  // another token.
  std::function<int64_t(uint64_t stream)> length;
  // Samples repeat their prompts, as kernels do: each stretch of repeat_length tokens is with this
  // probability a copy of one of the prompt's, of equal chances where it begins.
  double repeat_share = 0;
  int64_t repeat_length = 32;
  // The sample's prompt; only if it is repeated.
  std::function<std::span<const int32_t>(uint64_t stream)> prompt;

  // What the sample says at a position, where the model has drawn `drawn`. It depends on nothing
  // else, so that a draft token holds or does not whatever was drafted before.
  int32_t Token(uint64_t stream, int64_t position, int32_t drawn) const {
    if (position + 1 >= length(stream)) return stop_id;
    int32_t token = drawn;
    if (repeat_share > 0) {
      Philox random(MixKeys({stream, 0x726570656174}),
                    static_cast<uint64_t>(position / repeat_length));
      if (random.Uniform() < repeat_share) {
        const std::span<const int32_t> from = prompt(stream);
        const uint64_t begin = random.Below(from.size());
        token = from[(begin + position % repeat_length) % from.size()];
      }
    }
    return token == stop_id ? (stop_id == 0 ? 1 : stop_id - 1) : token;
  }
};

// Runs all steps by `runner`, and changes the tokens that come out. What the cache has of them, and
// what a slot remembers for a step that is launched before they are known, stays the model's: that
// changes logits, which mean nothing where weights are random, and not what a step costs.
class ScriptedRunner : public ForwardingRunner {
 public:
  ScriptedRunner(std::unique_ptr<ModelRunner> runner, TextScript script)
      : ForwardingRunner(std::move(runner)), script_(std::move(script)) {}

  absl::Status Launch(const ModelStep& step) override {
    std::vector<DrawPosition>& places = in_flight_.emplace_back();
    for (const StepDraw& draw : step.draws) places.push_back({draw.stream, draw.position});
    return ForwardingRunner::Launch(step);
  }

  absl::StatusOr<std::vector<TokenDraw>> Collect() override {
    ASSIGN_OR_RETURN(std::vector<TokenDraw> draws, ForwardingRunner::Collect());
    const std::vector<DrawPosition>& places = in_flight_.front();
    for (size_t i = 0; i < draws.size(); ++i) {
      if (draws[i].token < 0) continue;  // no distribution
      draws[i].token = script_.Token(places[i].stream, places[i].position, draws[i].token);
    }
    in_flight_.pop_front();
    return draws;
  }

 private:
  struct DrawPosition {
    uint64_t stream = 0;
    int64_t position = 0;
  };

  const TextScript script_;
  std::deque<std::vector<DrawPosition>> in_flight_;  // the draws of each step
};

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_ROLLOUT_SCRIPTED_RUNNER_H_
