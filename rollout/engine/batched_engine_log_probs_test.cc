// Log-probabilities of prompts and of alternatives.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

using PromptLogProbs = GenerateRequest::PromptLogProbs;

void ExpectEqual(const TokenLogProbs& found, const TokenLogProbs& expected) {
  EXPECT_EQ(found.token.token, expected.token.token);
  EXPECT_EQ(found.token.log_prob, expected.token.log_prob);
  EXPECT_EQ(found.rank, expected.rank);
  ASSERT_EQ(found.top.size(), expected.top.size());
  for (size_t k = 0; k < found.top.size(); ++k) {
    EXPECT_EQ(found.top[k].token, expected.top[k].token);
    EXPECT_EQ(found.top[k].log_prob, expected.top[k].log_prob);
  }
}

// Expects the definition's values, computed from the model alone.
void ExpectPrompt(const PromptLogProbs& found, const GenerateRequest& request) {
  ASSERT_EQ(found.size(), request.prompt.size() - 1);
  Sampler sampler;
  for (size_t t = 1; t < request.prompt.size(); ++t) {
    const std::vector<int32_t> before(request.prompt.begin(), request.prompt.begin() + t);
    ExpectEqual(
        found[t - 1],
        sampler.LogProbs(FakeLogits(before), request.prompt[t], request.top_prompt_log_probs)
            .value());
  }
}

// Prompts of many lengths that share prefixes; every third request wants no log-probabilities.
std::map<uint64_t, GenerateRequest> Requests(std::map<uint64_t, PromptLogProbs>* told) {
  std::map<uint64_t, GenerateRequest> requests;
  for (uint64_t id = 0; id < 15; ++id) {
    GenerateRequest request = Request(id, 1 + static_cast<int>(id % 3), 10);
    request.prompt.clear();
    for (uint64_t t = 0; t < 1 + id * 7 % 40; ++t) {
      request.prompt.push_back(static_cast<int32_t>((t * 5 + (t > 20 ? id : 0)) % kVocab));
    }
    if (id % 3 != 2) {
      request.top_prompt_log_probs = static_cast<int>(id % 4);
      request.on_prompt_log_probs = [told, id](std::shared_ptr<const PromptLogProbs> prompt) {
        EXPECT_TRUE(told->emplace(id, *prompt).second) << "told twice";
      };
      if (id % 2 == 0) request.sampling.max_tokens = 0;
    }
    requests[id] = std::move(request);
  }
  return requests;
}

EngineStats RunPrompts(const FakeModelRunner::Options& options, const std::string& config) {
  SCOPED_TRACE(testing::Message() << options.num_pages << " pages, steps of "
                                  << options.max_num_batched_tokens << ", " << options.in_flight
                                  << " in flight, " << options.max_prompt_logits << " logits, "
                                  << config);
  std::map<uint64_t, PromptLogProbs> told;
  const auto requests = Requests(&told);
  EngineStats stats;
  {
    BatchedEngine engine(std::make_unique<FakeModelRunner>(options), MakeEngineConfig(config));
    for (const auto& [id, request] : requests) EXPECT_TRUE(engine.Submit(request).ok());
    while (engine.Outstanding() > 0) {
      const absl::StatusOr<Sample> sample = engine.Next(Soon());
      if (!sample.ok()) {
        ADD_FAILURE() << sample.status();
        break;
      }
      ExpectSame(*sample, Reference(requests.at(sample->request_id), sample->index));
    }
    stats = engine.Stats();
  }
  for (const auto& [id, request] : requests) {
    EXPECT_EQ(told.count(id), request.on_prompt_log_probs ? 1u : 0u);
    if (told.count(id) > 0) ExpectPrompt(told[id], request);
  }
  return stats;
}

TEST(BatchedEngineLogProbs, OfPromptsInAnyChunksAndMemory) {
  for (const char* config :
       {"", "enable_prefix_caching: true", "num_speculative_tokens: 4 always_speculate: true"}) {
    for (const int in_flight : {1, 2}) {
      RunPrompts({.in_flight = in_flight}, config);
      RunPrompts({.max_num_seqs = 3, .max_num_batched_tokens = 7, .in_flight = in_flight}, config);
      RunPrompts({.in_flight = in_flight, .max_prompt_logits = 3}, config);
      const EngineStats little =
          RunPrompts({.max_num_seqs = 8, .num_pages = 14, .in_flight = in_flight}, config);
      EXPECT_GT(little.preemptions + little.recomputed_tokens, 0);
    }
  }
}

TEST(BatchedEngineLogProbs, ThePrefixCacheDoesNotSwallowThem) {
  BatchedEngine engine(std::make_unique<FakeModelRunner>(FakeModelRunner::Options{}),
                       MakeEngineConfig("enable_prefix_caching: true"));
  std::vector<PromptLogProbs> told;
  GenerateRequest request = Request(1, 1, 5);
  request.prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (const bool wanted : {false, true, false}) {
    request.on_prompt_log_probs = nullptr;
    if (wanted) {
      request.on_prompt_log_probs = [&told](std::shared_ptr<const PromptLogProbs> prompt) {
        told.push_back(*prompt);
      };
    }
    ASSERT_TRUE(engine.Submit(request).ok());
    ASSERT_TRUE(engine.Next(Soon()).ok());
    EXPECT_EQ(engine.Stats().cached_tokens, told.empty() || wanted ? 0 : 8);
  }
  ASSERT_EQ(told.size(), 1u);
  ExpectPrompt(told[0], request);
}

TEST(BatchedEngineLogProbs, OfDrawnTokensComeBeforeThem) {
  for (const char* config : {"", "num_speculative_tokens: 4 always_speculate: true"}) {
    BatchedEngine engine(
        std::make_unique<FakeModelRunner>(FakeModelRunner::Options{.in_flight = 2}),
        MakeEngineConfig(config));
    GenerateRequest request = Request(5, 3, 40);
    request.sampling.temperature = 0.3;
    request.top_log_probs = 3;
    std::map<int, std::vector<TokenLogProbs>> told;
    std::map<int, size_t> tokens;
    request.on_log_probs = [&](int index, std::shared_ptr<const TokenLogProbs> log_probs) {
      EXPECT_EQ(told[index].size(), tokens[index]);
      told[index].push_back(*log_probs);
    };
    request.on_token = [&](int index, int32_t token, float) {
      EXPECT_EQ(told[index].size(), ++tokens[index]);
      EXPECT_EQ(told[index].back().token.token, token);
    };
    ASSERT_TRUE(engine.Submit(request).ok());
    for (int i = 0; i < 3; ++i) {
      const Sample sample = engine.Next(Soon()).value();
      ExpectSame(sample, Reference(request, sample.index));
      std::vector<int32_t> sequence = request.prompt;
      Sampler sampler;
      for (size_t t = 0; t < sample.tokens.size(); ++t) {
        ExpectEqual(told[sample.index].at(t),
                    sampler.LogProbs(FakeLogits(sequence), sample.tokens[t], 3).value());
        sequence.push_back(sample.tokens[t]);
      }
    }
  }
}

TEST(BatchedEngineLogProbs, DamagedLogitsFailTheSamplesWithoutThem) {
  auto runner = std::make_unique<FakeModelRunner>(FakeModelRunner::Options{});
  runner->damaged = [](const std::vector<int32_t>& before) { return before.size() == 3; };
  BatchedEngine engine(std::move(runner), {});
  GenerateRequest request = Request(1, 2, 5);
  request.prompt = {1, 2, 3, 4, 5, 6};
  request.on_prompt_log_probs = [](std::shared_ptr<const PromptLogProbs>) {
    ADD_FAILURE() << "told";
  };
  ASSERT_TRUE(engine.Submit(request).ok());
  for (int i = 0; i < 2; ++i) {
    const Sample sample = engine.Next(Soon()).value();
    EXPECT_EQ(sample.finish_reason, FinishReason::kFailed);
    EXPECT_TRUE(sample.tokens.empty());
  }
}

TEST(BatchedEngineLogProbs, OneMoreTokenOfPromptFitsWithoutAnAnswer) {
  BatchedEngine engine(std::make_unique<FakeModelRunner>(FakeModelRunner::Options{}), {});
  GenerateRequest request = Request(1, 1, 0);
  request.prompt.assign(100, 3);  // the runner's max_length
  EXPECT_TRUE(absl::IsInvalidArgument(engine.Submit(request)))
      << "max_tokens 0 needs log-probabilities of the prompt";
  size_t told = 0;
  request.on_prompt_log_probs = [&told](std::shared_ptr<const PromptLogProbs> prompt) {
    told = prompt->size();
  };
  ASSERT_TRUE(engine.Submit(request).ok());
  const Sample sample = engine.Next(Soon()).value();
  EXPECT_EQ(told, 99u);
  EXPECT_TRUE(sample.tokens.empty());
  EXPECT_EQ(sample.finish_reason, FinishReason::kLength);
  request.sampling.max_tokens = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(engine.Submit(request)));
}

TEST(BatchedEngineLogProbs, BadRequestsAreNamed) {
  BatchedEngine engine(std::make_unique<FakeModelRunner>(FakeModelRunner::Options{}), {});
  const auto says = [&](const GenerateRequest& request, const std::string& part) {
    const absl::Status status = engine.Submit(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << part;
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status;
  };
  GenerateRequest request = Request(1, 1);
  request.top_log_probs = 21;
  says(request, "from 0 to 20, not 21");
  request = Request(1, 1);
  request.top_prompt_log_probs = -1;
  says(request, "from 0 to 20, not -1");
  request = Request(1, 1);
  request.sampling.logit_bias = {{kVocab, 1.0f}};
  says(request, "logit_bias has token 40, outside");
  request.sampling.logit_bias = {{-1, 1.0f}};
  says(request, "logit_bias has token -1, outside");
  request = Request(1, 1);
  request.sampling.min_p = 2;
  says(request, "min_p is 2");
}

}  // namespace
}  // namespace tritonrl
