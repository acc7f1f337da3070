// A model runner for engine tests whose language model is a hash of the tokens in its KV cache.

#ifndef TRITONRL_ROLLOUT_TESTING_FAKE_MODEL_RUNNER_H_
#define TRITONRL_ROLLOUT_TESTING_FAKE_MODEL_RUNNER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/testing/engine_config_text.h"

namespace tritonrl {

inline constexpr int kVocab = 40;
inline constexpr int32_t kStopToken = 7;

// The cache entry of a token that was computed with weights version `weights`.
inline int32_t CacheEntry(int32_t token, int weights) { return token + kVocab * weights; }

// The value of `weights` in the cache entries of decoded tokens, with Options::mark_decoded.
inline constexpr int kDecoded = 1000;

// The model's logits after a sequence of cache entries: random numbers keyed by a hash of all
// entries, or of the last `memory` entries. With a small `memory` and a low temperature the model
// repeats itself.
inline std::vector<float> FakeLogits(const std::vector<int32_t>& sequence, size_t memory = 0) {
  uint64_t key = 1;
  const size_t first = memory == 0 || memory > sequence.size() ? 0 : sequence.size() - memory;
  for (size_t i = first; i < sequence.size(); ++i) {
    key = MixKeys({key, static_cast<uint64_t>(sequence[i])});
  }
  Philox random(key);
  std::vector<float> logits;
  for (int i = 0; i < kVocab; ++i) logits.push_back(static_cast<float>(random.Normal()));
  return logits;
}

// A model runner whose pages hold an entry for each token. It computes each draw from these
// entries, so a page that is wrongly shared, reused or not filled changes samples. A step that
// reads entries lost by Sleep fails the test. A step runs when it is collected, which is the latest
// permitted time.
class FakeModelRunner : public ModelRunner {
 public:
  struct Options {
    int max_num_seqs = 64;
    int num_pages = 10000;
    int max_num_batched_tokens = 1024;
    int in_flight = 1;
    int prefill_budget = 0;
    size_t memory = 0;  // of FakeLogits
    // A decoded token's cache entry differs from that of a prefilled one, as on a GPU.
    bool mark_decoded = false;
    bool batch_invariant = false;  // the result of batch_invariant()
    int64_t max_prompt_logits = 1000;
  };
  static constexpr int kPage = 4;

  explicit FakeModelRunner(const Options& options)
      : options_(options),
        pages_(options.num_pages, std::vector<int32_t>(kPage, -1)),
        last_token_(options.max_num_seqs, -1) {}

  int64_t vocab_size() const override { return kVocab; }
  int64_t max_length() const override { return 100; }
  int num_pages() const override { return options_.num_pages; }
  int page_size() const override { return kPage; }
  int max_num_seqs() const override { return options_.max_num_seqs; }
  int max_num_batched_tokens() const override { return options_.max_num_batched_tokens; }
  bool batch_invariant() const override { return options_.batch_invariant; }
  int prefill_budget() const override { return options_.prefill_budget; }
  int max_in_flight() const override { return options_.in_flight; }

  absl::Status Sleep() override {
    ExpectOneThread();
    EXPECT_TRUE(flights_.empty()) << "steps are in flight";
    if (!held) return absl::OkStatus();
    if (fail_release) return absl::InternalError("the memory cannot be given back");
    for (std::vector<int32_t>& page : pages_) page.assign(kPage, kLost);
    held = false;
    ++releases;
    return absl::OkStatus();
  }

  absl::Status Wake() override {
    ExpectOneThread();
    ++takes;
    if (taken_by_others != 0) {
      if (taken_by_others > 0) --taken_by_others;
      return absl::ResourceExhaustedError("others have it");
    }
    held = true;
    return absl::OkStatus();
  }

  absl::Status Launch(const ModelStep& step) override {
    ExpectOneThread();
    EXPECT_TRUE(held) << "a step without memory";
    if (gate != nullptr) gate->WaitForNotification();
    // The weights may not change while a step is in flight: that step would see the change.
    EXPECT_TRUE(flights_.empty() || weights == weights_of_flights_);
    weights_of_flights_ = weights;
    if (fail_after >= 0 && launched >= fail_after) {
      return absl::ResourceExhaustedError("a step ran out of memory");
    }
    if (before_launch) before_launch(launched);
    ++launched;
    Copy copy;
    copy.copies.assign(step.copies.begin(), step.copies.end());
    for (const StepDraw& draw : step.draws) {
      EXPECT_TRUE(!draw.sampling->draws_on_host() || flights_.empty());
      copy.draws.push_back({draw,
                            *draw.sampling,
                            {draw.history.prompt.begin(), draw.history.prompt.end()},
                            {draw.history.generated.begin(), draw.history.generated.end()}});
    }
    for (const PromptTargets& wanted : step.prompt_targets) {
      copy.targets.push_back({{wanted.targets.begin(), wanted.targets.end()}, wanted.top});
    }
    int64_t total = 0;
    for (const SequenceSlice& slice : step.slices) {
      total += slice.count;
      speculated += slice.tokens.empty() ? 1 : 0;
      EXPECT_TRUE(slice.tokens.size() == slice.count || (slice.tokens.empty() && slice.count == 1));
      EXPECT_TRUE(slice.num_draft_tokens == 0 ||
                  (slice.draws == slice.num_draft_tokens + 1 && slice.count == slice.draws));
      EXPECT_EQ(slice.pages.size(), (slice.first + slice.count + kPage - 1) / kPage);
      copy.slices.push_back({slice,
                             {slice.tokens.begin(), slice.tokens.end()},
                             {slice.pages.begin(), slice.pages.end()}});
    }
    EXPECT_LE(total, max_num_batched_tokens());
    flights_.push_back(std::move(copy));
    EXPECT_LE(static_cast<int>(flights_.size()), options_.in_flight);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<TokenDraw>> Collect() override {
    ++collected;
    const Copy step = std::move(flights_.front());
    flights_.pop_front();
    std::vector<std::vector<int32_t>> copied;  // all pages are read before any is written
    for (const PageCopy& copy : step.copies) copied.push_back(pages_[copy.from]);
    for (size_t i = 0; i < copied.size(); ++i) pages_[step.copies[i].to] = copied[i];
    for (const Slice& slice : step.slices) Write(slice);
    std::vector<TokenDraw> tokens;
    prompt_log_probs_.clear();
    auto draw = step.draws.begin();
    auto wanted = step.targets.begin();
    for (const Slice& slice : step.slices) {
      const std::vector<int32_t> whole = Read(slice);
      if (slice.view.all_logits) ReadPrompt(whole, slice.view.first, *wanted++);
      for (int i = 0; i < slice.view.draws; ++i, ++draw) {
        const int after = slice.view.num_draft_tokens > 0 ? slice.view.draws - 1 - i : 0;
        const std::vector<int32_t> sequence(whole.begin(), whole.end() - after);
        std::vector<float> logits = FakeLogits(sequence, options_.memory);
        if (damaged && damaged(sequence)) logits.assign(kVocab, NAN);
        const absl::StatusOr<TokenDraw> drawn = sampler_.Draw(
            logits, draw->sampling, TokenUniform(draw->draw.stream, draw->draw.position),
            {draw->prompt, draw->generated});
        tokens.push_back(drawn.ok() ? *drawn : TokenDraw{.token = -1});
        if (drawn.ok() && draw->draw.top_log_probs >= 0) {
          tokens.back().log_probs = std::make_shared<TokenLogProbs>(
              sampler_.LogProbs(logits, drawn->token, draw->draw.top_log_probs).value());
        }
        if (draw->draw.slot >= 0) last_token_[draw->draw.slot] = tokens.back().token;
      }
    }
    return tokens;
  }

  int64_t max_prompt_logits() const override { return options_.max_prompt_logits; }
  std::vector<TokenLogProbs> TakePromptLogProbs() override {
    return std::exchange(prompt_log_probs_, {});
  }

  std::atomic<int> launched = 0;
  std::atomic<int> collected = 0;
  std::atomic<int> speculated = 0;  // slices whose token was not known at launch
  std::atomic<int> weights = 0;     // their version
  std::atomic<bool> held = true;    // whether the runner has its memory (is awake)
  // Times the memory was released; calls of Wake; next calls of Wake that fail for lack of memory
  // (-1: all).
  std::atomic<int> releases = 0, takes = 0, taken_by_others = 0;
  bool fail_release = false;
  int fail_after = -1;
  absl::Notification* gate = nullptr;      // Launch waits for it
  std::function<void(int)> before_launch;  // called with the number of earlier launches
  // Whether the logits after these cache entries are NaN.
  std::function<bool(const std::vector<int32_t>&)> damaged;

 private:
  struct Slice {
    SequenceSlice view;
    std::vector<int32_t> tokens, pages;
  };
  struct Draw {
    StepDraw draw;
    SamplingSettings sampling;
    std::vector<int32_t> prompt, generated;
  };
  struct Targets {
    std::vector<int32_t> tokens;
    int top = 0;
  };
  struct Copy {
    std::vector<PageCopy> copies;
    std::vector<Slice> slices;
    std::vector<Draw> draws;
    std::vector<Targets> targets;
  };

  static constexpr int32_t kLost = -2;  // an entry whose contents Sleep lost

  // Expects that all calls come from the same thread.
  void ExpectOneThread() {
    if (caller_ == std::thread::id()) caller_ = std::this_thread::get_id();
    EXPECT_EQ(caller_, std::this_thread::get_id());
  }

  void Write(const Slice& slice) {
    const bool decoded =
        slice.view.slot >= 0 && slice.view.count == 1 + slice.view.num_draft_tokens;
    const int mark = options_.mark_decoded && decoded ? kDecoded : weights.load();
    for (int64_t k = 0; k < slice.view.count; ++k) {
      const int64_t position = slice.view.first + k;
      pages_[slice.pages[position / kPage]][position % kPage] = CacheEntry(
          slice.tokens.empty() ? last_token_.at(slice.view.slot) : slice.tokens[k], mark);
    }
  }

  // Adds the log-probabilities of the tokens after positions [first, first + targets).
  void ReadPrompt(const std::vector<int32_t>& whole, int64_t first, const Targets& wanted) {
    for (size_t k = 0; k < wanted.tokens.size(); ++k) {
      const std::vector<int32_t> before(whole.begin(), whole.begin() + first + 1 + k);
      std::vector<float> logits = FakeLogits(before, options_.memory);
      if (damaged && damaged(before)) logits.assign(kVocab, NAN);
      const absl::StatusOr<TokenLogProbs> found =
          sampler_.LogProbs(logits, wanted.tokens[k], wanted.top);
      prompt_log_probs_.push_back(found.ok() ? *found
                                             : TokenLogProbs{.token = {wanted.tokens[k], NAN}});
    }
  }

  std::vector<int32_t> Read(const Slice& slice) const {
    std::vector<int32_t> sequence;
    for (int64_t p = 0; p < slice.view.first + slice.view.count; ++p) {
      sequence.push_back(pages_[slice.pages[p / kPage]][p % kPage]);
      EXPECT_NE(sequence.back(), kLost);
    }
    return sequence;
  }

  const Options options_;
  std::vector<std::vector<int32_t>> pages_;
  std::vector<int32_t> last_token_;
  std::deque<Copy> flights_;
  int weights_of_flights_ = 0;
  std::thread::id caller_;
  Sampler sampler_;
  std::vector<TokenLogProbs> prompt_log_probs_;
};

inline GenerateRequest Request(uint64_t id, int n, int max_tokens = 30) {
  GenerateRequest request;
  request.id = id;
  request.prompt = {1, 2, static_cast<int32_t>(3 + id % 30)};
  request.n = n;
  request.sampling.max_tokens = max_tokens;
  request.sampling.stop_ids = {kStopToken};
  request.key = {.run_seed = 9, .step = 4, .task = id};
  return request;
}

// The expected sample: computed alone, directly from the definition. `mark_decoded`: as Options.
inline Sample Reference(const GenerateRequest& request, int index, size_t memory = 0,
                        bool mark_decoded = false) {
  Sampler sampler;
  Sample sample;
  sample.request_id = request.id;
  sample.index = index;
  std::vector<int32_t> sequence = request.prompt;
  sample.finish_reason = FinishReason::kLength;
  for (int t = 0; t < request.sampling.max_tokens; ++t) {
    const TokenDraw draw =
        *sampler.Draw(FakeLogits(sequence, memory), request.sampling,
                      TokenUniform(request.key, index, t), {request.prompt, sample.tokens});
    sample.tokens.push_back(draw.token);
    sample.log_probs.push_back(draw.log_prob);
    sequence.push_back(CacheEntry(draw.token, mark_decoded ? kDecoded : 0));
    const std::vector<int32_t>& stops = request.sampling.stop_ids;
    if (std::find(stops.begin(), stops.end(), draw.token) != stops.end()) {
      sample.finish_reason = FinishReason::kStop;
      break;
    }
  }
  return sample;
}

inline void ExpectSame(const Sample& sample, const Sample& expected) {
  EXPECT_EQ(sample.tokens, expected.tokens);
  EXPECT_EQ(sample.log_probs, expected.log_probs);
  EXPECT_EQ(sample.finish_reason, expected.finish_reason);
}

inline absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_TESTING_FAKE_MODEL_RUNNER_H_
