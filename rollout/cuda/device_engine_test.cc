// The engine on a GPU: its log-probabilities are the learner's, with little memory and much, and
// the same steps give the same draws, with graphs and without.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "model/layers/packed_batch.h"
#include "model/transformer.h"
#include "rollout/cuda/cuda_kv_cache.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/cuda/testing/device_fixture.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/testing/engine_config_text.h"

namespace tritonrl {
namespace {

ModelConfig SmallConfig(bool tied) {
  ModelConfig config = RunnerConfig();
  config.tie_word_embeddings = tied;
  return config;
}

// A model whose sizes the megakernel supports.
ModelConfig WideConfig() {
  ModelConfig config = SmallConfig(true);
  config.hidden_size = 512;
  config.intermediate_size = 1536;
  config.head_dim = 128;
  return config;
}

using Samples = std::map<std::pair<uint64_t, int>, Sample>;

// Tolerance of log-probabilities: logits differ from each other by about 0.3, and intermediate
// results are rounded to bf16.
constexpr double kTolerance = 0.02;

class CudaEngineTest : public DeviceTest {
 protected:
  void MakeModel(bool tied) { MakeModel(SmallConfig(tied)); }
  void MakeModel(const ModelConfig& config) {
    weights_ = Weights::RandomInit(config, 5, device(), at::kBFloat16);
    prompts_.clear();
    Philox random(11);
    for (const int length : {5, 16, 33, 200, 700, 1500}) {
      std::vector<int32_t>& prompt = prompts_.emplace_back();
      for (int i = 0; i < length; ++i) prompt.push_back(static_cast<int32_t>(random.Below(512)));
    }
  }

  // Two samples for each prompt.
  Samples Generate(int max_num_seqs, int64_t pages, int max_num_batched_tokens, int tokens,
                   int num_speculative_tokens = 0) {
    const EngineConfig config = MakeEngineConfig(
        "max_num_seqs: ", max_num_seqs,
        " cache_bytes: ", pages * CudaKvCache::PageBytes(weights_->config()),
        " max_num_batched_tokens: ", max_num_batched_tokens, " fused_decode: ", fused_decode_,
        " num_speculative_tokens: ", num_speculative_tokens, " always_speculate: true");
    auto runner = CudaRunner::Create(weights_, config, {.max_length = 2048});
    EXPECT_TRUE(runner.ok()) << runner.status();
    if (!runner.ok()) return {};
    BatchedEngine engine(*std::move(runner), config);
    for (size_t i = 0; i < prompts_.size(); ++i) {
      GenerateRequest request;
      request.id = i;
      request.prompt = prompts_[i];
      request.n = 2;
      request.sampling.max_tokens = tokens + static_cast<int>(i);
      request.sampling.temperature = temperature_;
      request.key = {.run_seed = 3, .task = i};
      EXPECT_TRUE(engine.Submit(std::move(request)).ok());
    }
    Samples samples;
    while (engine.Outstanding() > 0) {
      auto sample = engine.Next(absl::Now() + absl::Minutes(2));
      EXPECT_TRUE(sample.ok()) << sample.status();
      if (!sample.ok()) return samples;
      samples[{sample->request_id, sample->index}] = *std::move(sample);
    }
    stats_ = engine.Stats();
    return samples;
  }

  // The largest difference between a sample's log-probabilities and the learner's.
  double LargestDifference(const Samples& samples) const {
    const Transformer learner(weights_->config(), weights_);
    double largest = 0;
    for (const auto& [name, sample] : samples) {
      std::vector<int32_t> all = prompts_[name.first];
      const int64_t prompt = static_cast<int64_t>(all.size());
      all.insert(all.end(), sample.tokens.begin(), sample.tokens.end());
      const std::vector<std::vector<int32_t>> sequences = {all};
      const std::vector<int64_t> first = {prompt};
      const PackedBatch batch = PackSequences(sequences, device());
      const ForwardResult forward =
          learner.Forward(batch, NextTokenTargets(batch, first), 1.0, nullptr);
      const at::Tensor expected = forward.log_probs.cpu();
      for (size_t t = 0; t < sample.tokens.size(); ++t) {
        const double difference =
            std::abs(expected.const_data_ptr<float>()[prompt - 1 + static_cast<int64_t>(t)] -
                     sample.log_probs[t]);
        if (!(difference <= largest)) largest = difference;
      }
    }
    return largest;
  }

  std::shared_ptr<Weights> weights_;
  std::vector<std::vector<int32_t>> prompts_;
  EngineStats stats_;
  double temperature_ = 1.0;
  bool fused_decode_ = true;
};

TEST_P(CudaEngineTest, LogProbabilitiesAreTheLearners) {
  for (const bool tied : {true, false}) {
    MakeModel(tied);
    const Samples samples = Generate(16, 2000, 512, 40);
    ASSERT_EQ(samples.size(), 2 * prompts_.size());
    for (const auto& [name, sample] : samples) {
      EXPECT_EQ(sample.tokens.size(), 40 + name.first);
      EXPECT_EQ(sample.finish_reason, FinishReason::kLength);
    }
    const double difference = LargestDifference(samples);
    EXPECT_LT(difference, kTolerance);
    EXPECT_GT(difference, 0);  // GEMMs of other sizes round differently
  }
}

// Qwen2 has biases in query, key and value projections, Llama's configuration allows them in all.
TEST_P(CudaEngineTest, LogProbabilitiesOfModelsWithBiases) {
  ModelConfig qwen2 = SmallConfig(true), llama = SmallConfig(false);
  qwen2.family = ModelFamily::kQwen2;
  llama.family = ModelFamily::kLlama;
  llama.attention_bias = llama.mlp_bias = true;
  for (const ModelConfig& config : {qwen2, llama}) {
    MakeModel(config);
    for (const ParameterInfo& info : weights_->layout().parameters) {
      if (absl::EndsWith(info.name, ".bias"))
        weights_->Get(info.name).copy_(Numbers(info.shape, 7, 0.3));
    }
    const Samples samples = Generate(16, 2000, 512, 40);
    ASSERT_EQ(samples.size(), 2 * prompts_.size());
    EXPECT_LT(LargestDifference(samples), kTolerance);
  }
}

// Prompts in chunks, beside samples that decode; all log-probabilities of prompts, and those of
// drawn tokens with alternatives.
TEST_P(CudaEngineTest, PromptLogProbabilitiesAreTheLearners) {
  MakeModel(true);
  const EngineConfig config = MakeEngineConfig("max_num_seqs: 16 max_num_batched_tokens: 256");
  auto runner = CudaRunner::Create(weights_, config, {.max_length = 2048});
  ASSERT_TRUE(runner.ok()) << runner.status();
  BatchedEngine engine(*std::move(runner), config);
  std::map<uint64_t, GenerateRequest::PromptLogProbs> found;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    GenerateRequest request;
    request.id = i;
    request.prompt = prompts_[i];
    request.sampling.max_tokens = i % 2 == 0 ? 0 : 8;
    request.sampling.temperature = 0;
    request.top_prompt_log_probs = 5;
    request.on_prompt_log_probs = [&found, i](const auto& prompt) { found[i] = *prompt; };
    request.top_log_probs = 3;
    request.on_log_probs = [](int, const std::shared_ptr<const TokenLogProbs>& token) {
      ASSERT_EQ(token->top.size(), 3u);
      EXPECT_EQ(token->top[0].token, token->token.token) << "greedy";
      EXPECT_EQ(token->top[0].log_prob, token->token.log_prob);
    };
    ASSERT_TRUE(engine.Submit(std::move(request)).ok());
  }
  while (engine.Outstanding() > 0) {
    const auto sample = engine.Next(absl::Now() + absl::Minutes(2));
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(sample->tokens.size(), sample->request_id % 2 == 0 ? 0u : 8u);
  }
  const Transformer learner(weights_->config(), weights_);
  for (size_t i = 0; i < prompts_.size(); ++i) {
    const std::vector<std::vector<int32_t>> sequences = {prompts_[i]};
    const PackedBatch batch = PackSequences(sequences, device());
    const at::Tensor expected =
        learner.Forward(batch, NextTokenTargets(batch), 1.0, nullptr).log_probs.cpu();
    ASSERT_EQ(found[i].size(), prompts_[i].size() - 1);
    for (size_t t = 0; t < found[i].size(); ++t) {
      EXPECT_EQ(found[i][t].token.token, prompts_[i][t + 1]);
      EXPECT_EQ(found[i][t].top.size(), 5u);
      EXPECT_NEAR(found[i][t].token.log_prob, expected.const_data_ptr<float>()[t], kTolerance);
    }
  }
}

// A bias, and a penalty for what was drawn before, decide each token, also in steps that others
// share.
TEST_P(CudaEngineTest, BiasesAndPenaltiesDecideDraws) {
  MakeModel(true);
  const EngineConfig config = MakeEngineConfig("max_num_seqs: 16");
  auto runner = CudaRunner::Create(weights_, config, {.max_length = 2048});
  ASSERT_TRUE(runner.ok()) << runner.status();
  BatchedEngine engine(*std::move(runner), config);
  for (uint64_t id = 0; id < 4; ++id) {
    GenerateRequest request;
    request.id = id;
    request.prompt = prompts_[1];
    request.sampling.max_tokens = 12;
    request.sampling.temperature = 0;
    // Token 9 is drawn while it is ahead of token 7: its penalty grows by 2 for each time.
    if (id % 2 == 1) request.sampling.logit_bias = {{9, 90.0f}, {7, 81.0f}};
    if (id % 2 == 1) request.sampling.frequency_penalty = 2;
    ASSERT_TRUE(engine.Submit(std::move(request)).ok());
  }
  std::vector<std::vector<int32_t>> tokens(4);
  while (engine.Outstanding() > 0) {
    const auto sample = engine.Next(absl::Now() + absl::Minutes(2));
    ASSERT_TRUE(sample.ok()) << sample.status();
    tokens[sample->request_id] = sample->tokens;
  }
  EXPECT_EQ(tokens[0], tokens[2]);
  EXPECT_EQ(tokens[1], tokens[3]);
  EXPECT_NE(tokens[0], tokens[1]);
  const std::vector<int32_t> first(tokens[1].begin(), tokens[1].begin() + 4);
  EXPECT_EQ(first, (std::vector<int32_t>{9, 9, 9, 9}));
  EXPECT_TRUE(std::find(tokens[1].begin(), tokens[1].end(), 7) != tokens[1].end());
}

// The first step of each number of rows launches kernel by kernel; later steps replay a graph.
TEST_P(CudaEngineTest, AReplayGivesTheBitsOfTheLaunches) {
  MakeModel(true);
  auto runner =
      CudaRunner::Create(weights_, MakeEngineConfig("max_num_seqs: 4"), {.max_length = 2048});
  ASSERT_TRUE(runner.ok()) << runner.status();
  BatchedEngine engine(*std::move(runner), {});
  std::vector<Sample> samples;
  for (uint64_t round = 0; round < 2; ++round) {
    GenerateRequest request;
    request.id = round;
    request.prompt = prompts_[3];
    request.sampling.max_tokens = 40;
    request.key.task = 7;
    ASSERT_TRUE(engine.Submit(std::move(request)).ok());
    auto sample = engine.Next(absl::Now() + absl::Minutes(2));
    ASSERT_TRUE(sample.ok()) << sample.status();
    samples.push_back(*std::move(sample));
  }
  EXPECT_EQ(samples[0].tokens, samples[1].tokens);
  EXPECT_EQ(samples[0].log_probs, samples[1].log_probs);
}

TEST_P(CudaEngineTest, LittleMemoryTakesSequencesOutAndIn) {
  MakeModel(true);
  prompts_.resize(3);
  // When they end, the six samples need 14 to 17 pages each.
  const Samples samples = Generate(6, 50, 512, 220);
  ASSERT_EQ(samples.size(), 6u);
  EXPECT_GT(stats_.preemptions, 0);
  EXPECT_LT(LargestDifference(samples), kTolerance);
}

TEST_P(CudaEngineTest, ManySequencesSideBySide) {
  MakeModel(true);
  const std::vector<int32_t> prompt = prompts_[2];
  prompts_.assign(40, prompt);
  const Samples samples = Generate(80, 3000, 1024, 20);
  ASSERT_EQ(samples.size(), 80u);
  EXPECT_LT(LargestDifference(samples), kTolerance);
  // The samples of a group draw from different random streams.
  EXPECT_NE(samples.at({0, 0}).tokens, samples.at({0, 1}).tokens);
}

// Greedy samples of a small model repeat themselves, so that draft tokens are accepted.
TEST_P(CudaEngineTest, DraftTokensAreRowsOfTheirOwn) {
  MakeModel(true);
  temperature_ = 0;
  const Samples samples = Generate(32, 2000, 512, 300, 6);
  ASSERT_EQ(samples.size(), 2 * prompts_.size());
  for (const auto& [name, sample] : samples) EXPECT_EQ(sample.tokens.size(), 300 + name.first);
  EXPECT_GT(stats_.accepted_tokens, 0);
  EXPECT_LT(LargestDifference(samples), kTolerance);
}

// Steps have 6 or 12 rows, then fewer; steps with more rows (prompts) use cuBLASLt.
TEST_P(CudaEngineTest, StepsOfFewRowsByTheMegakernel) {
  for (const bool fused_decode : {true, false}) {
    SCOPED_TRACE(fused_decode);
    MakeModel(WideConfig());
    fused_decode_ = fused_decode;
    const Samples samples = Generate(16, 2000, 512, 40);
    ASSERT_EQ(samples.size(), 2 * prompts_.size());
    EXPECT_LT(LargestDifference(samples), kTolerance);
  }
}

// Unfinished samples are recomputed in memory that the learner has filled with NaN.
TEST_P(CudaEngineTest, SamplesGoOnAfterTheirMemoryWasTheLearners) {
  MakeModel(true);
  const int64_t bytes = 4000 * CudaKvCache::PageBytes(weights_->config());
  const EngineConfig config =
      MakeEngineConfig("max_num_seqs: 16 cache_bytes: ", bytes,
                       " max_num_batched_tokens: 512 enable_sleep_mode: true");
  auto runner = CudaRunner::Create(weights_, config, {.max_length = 2048});
  ASSERT_TRUE(runner.ok()) << runner.status();
  BatchedEngine engine(*std::move(runner), config);
  std::atomic<int> drawn{0};
  for (size_t i = 0; i < prompts_.size(); ++i) {
    GenerateRequest request = {.id = i, .prompt = prompts_[i], .n = 2};
    request.sampling.max_tokens = 300;
    request.on_token = [&drawn](int, int32_t, float) { ++drawn; };
    request.key = {.run_seed = 3, .task = i};
    ASSERT_TRUE(engine.Submit(std::move(request)).ok());
  }
  for (const int moment : {3, 1000, 2000}) {
    for (int i = 0; drawn < moment && i < 60000; ++i) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_GE(drawn, moment);
    ASSERT_TRUE(engine.PauseForWeightUpdate(Engine::KvPolicy::kInvalidate).ok());
    Empty({bytes}, at::kByte).fill_(0xff);
    engine.EndWeightUpdate(moment);
  }
  Samples samples;
  while (engine.Outstanding() > 0) {
    auto sample = engine.Next(absl::Now() + absl::Minutes(2));
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(sample->tokens.size(), 300u);
    samples[{sample->request_id, sample->index}] = *std::move(sample);
  }
  EXPECT_GT(engine.Stats().recomputed_tokens, 0);
  EXPECT_LT(LargestDifference(samples), kTolerance);
}

// Returns the draws of `steps` steps in which `rows` sequences decode from their first position on.
// There are no chunks, because another runner could use other cuBLASLt algorithms for their GEMMs.
std::vector<TokenDraw> Decode(ModelRunner* runner, int rows, int64_t steps) {
  const SamplingSettings sampling;
  const std::vector<int32_t> first_tokens = {7, 8, 9, 10, 11};
  std::vector<std::vector<int32_t>> pages(rows);
  std::vector<TokenDraw> all;
  for (int64_t i = 0; i < steps; ++i) {
    ModelStep step;
    for (int row = 0; row < rows; ++row) {
      if (i % kPageTokens == 0) pages[row].push_back(static_cast<int32_t>(8 * row + i / 16));
      SequenceSlice& slice = step.slices.emplace_back();
      if (i == 0) slice.tokens = {&first_tokens[row], 1};
      slice.slot = row;
      slice.first = i;
      slice.count = 1;
      slice.pages = pages[row];
      slice.draws = 1;
      step.draws.push_back({row, &sampling, static_cast<uint64_t>(row), i});
    }
    EXPECT_TRUE(runner->Launch(step).ok());
    const auto draws = runner->Collect();
    EXPECT_TRUE(draws.ok()) << draws.status();
    if (draws.ok()) all.insert(all.end(), draws->begin(), draws->end());
  }
  return all;
}

TEST_P(CudaEngineTest, ChainsGiveTheSameBitsAgain) {
  MakeModel(WideConfig());
  std::vector<TokenDraw> expected;
  for (int again = 0; again < 2; ++again) {
    auto runner =
        CudaRunner::Create(weights_, MakeEngineConfig("max_num_seqs: 5"), {.max_length = 256});
    ASSERT_TRUE(runner.ok()) << runner.status();
    ASSERT_TRUE((*runner)->fused_decode()) << "on this GPU";
    for (int round = 0; round < 2; ++round) {  // the second round replays graphs
      const std::vector<TokenDraw> draws = Decode(runner->get(), 5, 100);
      if (expected.empty()) expected = draws;
      ASSERT_EQ(draws.size(), expected.size());
      for (size_t i = 0; i < draws.size(); ++i) {
        EXPECT_EQ(draws[i].token, expected[i].token) << i;
        EXPECT_EQ(draws[i].log_prob, expected[i].log_prob) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, CudaEngineTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
