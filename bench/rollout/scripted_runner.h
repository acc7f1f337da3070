// Realistic samples for benches with random weights, which draw neither stop tokens nor
// repetitions: log-normal lengths, and a model runner that replaces drawn tokens by a script.
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

// Draws a length in [1, longest] from a log-normal distribution; `sigma` is the standard deviation
// of the logarithm. Takes one normal number from `random`.
inline int64_t LogNormalLength(double median, double sigma, int64_t longest, Philox* random) {
  return std::clamp<int64_t>(std::llround(median * std::exp(sigma * random->Normal())), 1, longest);
}

// The script of samples, which are identified by the stream that they draw from (StepDraw). Called
// on the engine's thread.
struct TextScript {
  int32_t stop_id = 0;
  // Number of tokens of a sample. Its last token becomes stop_id; a stop_id drawn earlier is
  // replaced.
  std::function<int64_t(uint64_t stream)> length;
  // Samples repeat parts of their prompts, as generated kernels do: with this probability a run of
  // repeat_length tokens is a copy of the prompt from a uniformly drawn position.
  double repeat_share = 0;
  int64_t repeat_length = 32;
  // Returns the sample's prompt; called only if repeat_share > 0.
  std::function<std::span<const int32_t>(uint64_t stream)> prompt;

  // Returns the sample's token at a position where the model drew `drawn`. It depends on nothing
  // else, so the acceptance of a draft token does not depend on earlier draft tokens.
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

// Runs all steps by `runner` and replaces the tokens that it returns. The KV cache and the slots
// keep the model's own tokens: that changes only the logits, which are meaningless with random
// weights, and not the cost of a step.
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
