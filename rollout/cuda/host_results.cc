// Results of a step that the GPU sampler does not give: draws with penalties, biases or min_p, and
// log-probabilities of alternatives and of prompts.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rollout/cuda/cuda_runner_impl.h"
#include "rollout/cuda/gather_log_probs.h"

namespace tritonrl {
namespace {

// Rows of logits that GatherLogProbs takes at a time: it needs memory beside the engine's own.
constexpr int64_t kRowsAtOnce = 64;

at::Tensor SelectRows(const at::Tensor& logits, std::span<const int64_t> rows) {
  const at::Tensor index = at::empty({static_cast<int64_t>(rows.size())}, at::kLong);
  std::copy(rows.begin(), rows.end(), index.data_ptr<int64_t>());
  return at::index_select(logits, 0, index.to(logits.device()));
}

}  // namespace

bool NeedsHost(const ModelStep& step) {
  return !step.prompt_targets.empty() ||
         std::any_of(step.draws.begin(), step.draws.end(), [](const StepDraw& draw) {
           return draw.top_log_probs >= 0 || draw.sampling->draws_on_host();
         });
}

void CudaRunner::Impl::AddHostResults(const ModelStep& step, const PackedStep& packed,
                                      const SamplingRow* sampled, InFlightStep* result) {
  result->on_host = true;
  const auto* drawn_tokens = static_cast<const DrawnToken*>(result->drawn.data_ptr());
  for (int64_t i = 0; i < result->draws; ++i) {
    result->host_draws.push_back(
        {.token = drawn_tokens[i].token, .log_prob = drawn_tokens[i].log_prob, .log_probs = {}});
  }
  DrawOnHost(step, sampled, result);
  AddDrawLogProbs(step, sampled, result);
  AddPromptLogProbs(step, packed, result);  // last: it overwrites the logits of the draws
}

void CudaRunner::Impl::DrawOnHost(const ModelStep& step, const SamplingRow* sampled,
                                  InFlightStep* result) {
  std::vector<int64_t> rows;
  std::vector<size_t> draws;
  for (size_t i = 0; i < step.draws.size(); ++i) {
    if (!step.draws[i].sampling->draws_on_host()) continue;
    rows.push_back(sampled[i].logits_row);
    draws.push_back(i);
  }
  if (rows.empty()) return;
  const at::Tensor logits = SelectRows(layers.logits(), rows).cpu();
  const auto vocab = static_cast<size_t>(layers.vocab());
  for (size_t k = 0; k < draws.size(); ++k) {
    const StepDraw& draw = step.draws[draws[k]];
    const absl::StatusOr<TokenDraw> found =
        sampler.Draw({logits.const_data_ptr<float>() + k * vocab, vocab}, *draw.sampling,
                     TokenUniform(draw.stream, draw.position), draw.history);
    result->host_draws[draws[k]] = found.ok() ? *found : TokenDraw{.token = -1};
  }
}

void CudaRunner::Impl::AddDrawLogProbs(const ModelStep& step, const SamplingRow* sampled,
                                       InFlightStep* result) {
  std::vector<int64_t> rows;
  std::vector<int32_t> tokens;
  std::vector<size_t> draws;
  const auto flush = [&] {
    if (rows.empty()) return;
    int top = 0;
    for (const size_t draw : draws) top = std::max(top, step.draws[draw].top_log_probs);
    std::vector<TokenLogProbs> found =
        GatherLogProbs(SelectRows(layers.logits(), rows), tokens, top);
    for (size_t k = 0; k < draws.size(); ++k) {
      const size_t wanted = step.draws[draws[k]].top_log_probs;
      if (found[k].top.size() > wanted) found[k].top.resize(wanted);
      result->host_draws[draws[k]].log_probs = std::make_shared<TokenLogProbs>(std::move(found[k]));
    }
    rows.clear();
    tokens.clear();
    draws.clear();
  };
  for (size_t i = 0; i < step.draws.size(); ++i) {
    if (step.draws[i].top_log_probs < 0 || result->host_draws[i].token < 0) continue;
    rows.push_back(sampled[i].logits_row);
    tokens.push_back(result->host_draws[i].token);
    draws.push_back(i);
    if (static_cast<int64_t>(rows.size()) == kRowsAtOnce) flush();
  }
  flush();
}

void CudaRunner::Impl::AddPromptLogProbs(const ModelStep& step, const PackedStep& packed,
                                         InFlightStep* result) {
  const int64_t block = std::min(kRowsAtOnce, layers.logits().size(0));
  // Chunks follow the decode rows, in the order of slices.
  int64_t row = packed.decode == nullptr ? 0 : packed.decode->rows();
  size_t next = 0;
  for (const SequenceSlice& slice : step.slices) {
    if (StepPacker::Decodes(slice)) continue;
    if (slice.all_logits) {
      const PromptTargets& wanted = step.prompt_targets.at(next++);
      const auto count = static_cast<int64_t>(wanted.targets.size());
      for (int64_t first = 0; first < count; first += block) {
        const int64_t rows = std::min(block, count - first);
        for (TokenLogProbs& found :
             GatherLogProbs(layers.RowLogits(row + first, rows),
                            wanted.targets.subspan(first, rows), wanted.top)) {
          result->prompt_log_probs.push_back(std::move(found));
        }
      }
    }
    row += slice.count;
  }
}

}  // namespace tritonrl
