// Batch-invariant generation: a sample has the same tokens and the same bits of log-probabilities
// alone and beside other samples, in any order, with any cut of its prompt into chunks, with draft
// tokens, and in another engine.

#include <ATen/ops/flip.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "model/cuda/gemm/gemm.h"
#include "model/testing/test_util.h"
#include "rollout/cuda/cuda_kv_cache.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/cuda/testing/device_fixture.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/testing/engine_config_text.h"

namespace tritonrl {
namespace {

class PinnedGemmTest : public DeviceTest {
 protected:
  static at::Tensor Drawn(at::IntArrayRef shape) {
    return at::randn(shape, at::TensorOptions(device()).dtype(at::kFloat)).to(at::kBFloat16);
  }
};

// GEMM sizes of Qwen3-8B, and small ones.
TEST_P(PinnedGemmTest, ARowHasTheSameBitsWithAnyRowsBesideIt) {
  struct Sizes {
    int64_t inner, columns;
    bool adds, is_head;
  };
  const int64_t most = 8192;
  const std::vector<int64_t> rows = {1, 2, 3, 4, 8, 12, 64, 72, 256, 320, 1024, 2048, 8192};
  for (const Sizes& sizes : std::vector<Sizes>{{4096, 6144, false, false},
                                               {4096, 4096, true, false},
                                               {4096, 24576, false, false},
                                               {12288, 4096, true, false},
                                               {4096, 32768, false, true},
                                               {256, 512, true, false},
                                               {640, 256, false, false}}) {
    SCOPED_TRACE(testing::Message() << sizes.inner << " to " << sizes.columns);
    const int64_t count = sizes.is_head ? 512 : most;  // a multiple of CudaGemm::kPinnedRows
    const at::Tensor x = Drawn({count, sizes.inner}), weight = Drawn({sizes.columns, sizes.inner});
    const at::Tensor add = Drawn({count, sizes.columns});
    const at::Tensor* addend = sizes.adds ? &add : nullptr;
    const at::ScalarType type = sizes.is_head ? at::kFloat : at::kBFloat16;
    std::vector<int64_t> counts;
    for (const int64_t n : rows) {
      if (n <= count) counts.push_back(n);
    }
    at::Tensor whole;
    for (int process = 0; process < 2; ++process) {  // a new CudaGemm, as in another process
      CudaGemm gemm(device(), /*autotune=*/true);
      at::Tensor out = Empty({count, sizes.columns}, type);
      gemm.PinAlgorithm(x, weight.t(), addend, out);
      for (const int64_t n : counts) {
        const at::Tensor part = Empty({count, sizes.columns}, type).narrow(0, 0, n);
        const at::Tensor part_add = add.narrow(0, 0, n);
        gemm.Multiply(x.narrow(0, 0, n), weight.t(), sizes.adds ? &part_add : nullptr, part);
        if (!whole.defined()) {
          gemm.Multiply(x, weight.t(), addend, out);
          whole = out;
        }
        EXPECT_TRUE(at::equal(part, whole.narrow(0, 0, n))) << n << " rows";
      }
      // The same rows in reverse order.
      const at::Tensor turned = at::flip(x, {0}).contiguous(),
                       turned_add = at::flip(add, {0}).contiguous();
      const at::Tensor result = Empty({count, sizes.columns}, type);
      gemm.Multiply(turned, weight.t(), sizes.adds ? &turned_add : nullptr, result);
      EXPECT_TRUE(at::equal(at::flip(result, {0}), whole));
    }
  }
}

TEST_P(PinnedGemmTest, AShapeThatWasNotPinnedIsRefused) {
  CudaGemm gemm(device(), /*autotune=*/true);
  const at::Tensor x = Drawn({256, 64}), weight = Drawn({32, 64}), other = Drawn({48, 64});
  gemm.PinAlgorithm(x, weight.t(), nullptr, Empty({256, 32}, at::kBFloat16));
  EXPECT_THROW(gemm.Multiply(x, other.t(), nullptr, Empty({256, 48}, at::kBFloat16)), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(Gpus, PinnedGemmTest, testing::ValuesIn(TestedGpus()));

ModelConfig Config(int64_t hidden) {
  ModelConfig config = RunnerConfig();
  config.vocab_size = hidden >= 4096 ? 32768 : 512;
  config.hidden_size = hidden;
  config.intermediate_size = 3 * hidden;
  config.num_layers = 2;
  config.head_dim = 128;
  config.num_heads = hidden / 128;
  config.num_kv_heads = config.num_heads / 4;
  return config;
}

// An engine's configuration, and the other samples that run beside the checked ones.
struct Setting {
  int max_num_seqs = 256;
  int max_num_batched_tokens = 512;
  int64_t pages = 8000;
  int others = 0;
  bool others_first = false;
  int num_speculative_tokens = 0;
  bool enable_prefix_caching = false;
  int rounds = 1;  // the last is checked: it has the first round's graphs and cached prefixes
};

using Samples = std::map<std::pair<uint64_t, int>, Sample>;

class InvariantEngineTest : public DeviceTest {
 protected:
  void MakeModel(int64_t hidden) {
    weights_ = RandomWeights(Config(hidden), device(), at::kBFloat16);
    Philox random(11);
    // Two prompts that begin alike, one of exactly a page, and one that attention splits.
    prompts_ = {Tokens(5, &random), Tokens(16, &random), Tokens(700, &random),
                Tokens(1010, &random)};
    prompts_.push_back(prompts_[2]);
    for (const int32_t token : Tokens(40, &random)) prompts_.back().push_back(token);
  }

  std::vector<int32_t> Tokens(int count, Philox* random) const {
    std::vector<int32_t> tokens;
    for (int i = 0; i < count; ++i) {
      tokens.push_back(static_cast<int32_t>(random->Below(weights_->config().vocab_size)));
    }
    return tokens;
  }

  void SubmitOthers(const Setting& setting, BatchedEngine* engine) const {
    Philox random(23);
    for (int i = 0; i < setting.others; ++i) {
      GenerateRequest request;
      request.id = 1000 + i;
      request.prompt = Tokens(1 + static_cast<int>(random.Below(300)), &random);
      request.sampling.max_tokens = 1 + static_cast<int>(random.Below(60));
      request.key = {.run_seed = 8, .task = request.id};
      EXPECT_TRUE(engine->Submit(std::move(request)).ok());
    }
  }

  // Returns two samples for each prompt, generated beside the setting's other samples.
  Samples Generate(const Setting& setting) {
    const EngineConfig config = MakeEngineConfig(
        "max_num_seqs: ", setting.max_num_seqs,
        " cache_bytes: ", setting.pages * CudaKvCache::PageBytes(weights_->config()),
        " max_num_batched_tokens: ", setting.max_num_batched_tokens, " batch_invariant: true",
        " num_speculative_tokens: ", setting.num_speculative_tokens, " always_speculate: true",
        " enable_prefix_caching: ", setting.enable_prefix_caching);
    auto runner = CudaRunner::Create(weights_, config, {.max_length = 2048});
    EXPECT_TRUE(runner.ok()) << runner.status();
    if (!runner.ok()) return {};
    BatchedEngine engine(*std::move(runner), config);
    Samples samples;
    for (int round = 0; round < setting.rounds; ++round) {
      if (setting.others_first) SubmitOthers(setting, &engine);
      for (size_t i = 0; i < prompts_.size(); ++i) {
        GenerateRequest request;
        request.id = setting.others_first ? prompts_.size() - 1 - i : i;
        request.prompt = prompts_[request.id];
        request.n = 2;
        request.sampling.max_tokens = 30 + static_cast<int>(request.id);
        request.sampling.temperature = temperature_;
        request.key = {.run_seed = 3, .task = request.id};
        EXPECT_TRUE(engine.Submit(std::move(request)).ok());
      }
      if (!setting.others_first) SubmitOthers(setting, &engine);
      while (engine.Outstanding() > 0) {
        auto sample = engine.Next(absl::Now() + absl::Minutes(2));
        EXPECT_TRUE(sample.ok()) << sample.status();
        if (!sample.ok()) return samples;
        if (sample->request_id >= 1000) continue;
        const std::pair name(sample->request_id, sample->index);
        samples[name] = *std::move(sample);
      }
    }
    stats_ = engine.Stats();
    EXPECT_EQ(stats_.preemptions, 0);
    return samples;
  }

  void ExpectSame(const Samples& samples, const Samples& expected) {
    ASSERT_EQ(samples.size(), expected.size());
    for (const auto& [name, sample] : expected) {
      SCOPED_TRACE(testing::Message() << "request " << name.first << " sample " << name.second);
      EXPECT_EQ(samples.at(name).tokens, sample.tokens);
      EXPECT_EQ(samples.at(name).log_probs, sample.log_probs);
    }
  }

  std::shared_ptr<Weights> weights_;
  std::vector<std::vector<int32_t>> prompts_;
  EngineStats stats_;
  double temperature_ = 1.0;
};

TEST_P(InvariantEngineTest, ASampleIsTheSameBesideOthers) {
  MakeModel(512);
  const Samples expected = Generate({.max_num_seqs = 1});
  ASSERT_EQ(expected.size(), 2 * prompts_.size());
  for (const int others : {0, 7, 40, 255}) {
    for (const bool first : {false, true}) {
      SCOPED_TRACE(testing::Message() << others << " others, first " << first);
      ExpectSame(Generate({.others = others, .others_first = first, .rounds = 2}), expected);
    }
  }
}

TEST_P(InvariantEngineTest, APromptMayBeCutAnywhere) {
  MakeModel(512);
  const Samples expected = Generate({.max_num_seqs = 1});
  for (const int max_num_batched_tokens : {16, 64, 100, 512, 8192}) {
    SCOPED_TRACE(testing::Message() << "steps of " << max_num_batched_tokens);
    ExpectSame(
        Generate(
            {.max_num_seqs = 16, .max_num_batched_tokens = max_num_batched_tokens, .others = 9}),
        expected);
  }
}

TEST_P(InvariantEngineTest, LittleMemoryAndEarlierPromptsChangeNothing) {
  MakeModel(512);
  const Samples expected = Generate({.max_num_seqs = 1});
  // When they end, the samples have 4 to 68 pages.
  ExpectSame(Generate({.max_num_seqs = 64, .pages = 80, .others = 40}), expected);
  ExpectSame(
      Generate({.max_num_seqs = 64, .others = 10, .enable_prefix_caching = true, .rounds = 2}),
      expected);
  EXPECT_GT(stats_.cached_tokens, 1500);
}

// Greedy samples repeat themselves, so that draft tokens are accepted.
TEST_P(InvariantEngineTest, DraftTokensChangeNothing) {
  MakeModel(512);
  temperature_ = 0;
  const Samples expected = Generate({.max_num_seqs = 1});
  ExpectSame(Generate({.max_num_seqs = 64, .others = 20, .num_speculative_tokens = 6}), expected);
  EXPECT_GT(stats_.draft_tokens, 0);
}

TEST_P(InvariantEngineTest, AtTheWidthOfALargeModel) {
  MakeModel(4096);
  const Samples expected = Generate({.max_num_seqs = 1});
  ExpectSame(Generate({.max_num_batched_tokens = 2048, .others = 60}), expected);
}

INSTANTIATE_TEST_SUITE_P(Gpus, InvariantEngineTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
