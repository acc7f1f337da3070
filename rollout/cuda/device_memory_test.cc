// GPU memory that is released and allocated again at the same addresses.

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "model/weights/weights.h"
#include "rollout/cuda/cuda_kv_cache.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/cuda/testing/device_fixture.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/testing/engine_config_text.h"

namespace tritonrl {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class MappedMemoryTest : public DeviceTest {
 protected:
  static int64_t Free() {
    c10::cuda::CUDACachingAllocator::emptyCache();
    size_t free = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return static_cast<int64_t>(free);
  }
  static ModelConfig Config(int64_t layers) {
    ModelConfig config = RunnerConfig();
    config.num_layers = layers;
    config.max_positions = 1024;
    config.tie_word_embeddings = false;
    return config;
  }
  // All of the memory as int64 numbers.
  static at::Tensor Words(const MappedMemory& memory) {
    return at::from_blob(
        memory.data(), {memory.bytes() / 8}, [](void*) {},
        at::TensorOptions(device()).dtype(at::kLong), device());
  }
};

// The first two allocations have 1 GiB, the last one is smaller.
TEST_P(MappedMemoryTest, MemoryIsFreeMeanwhileAndItsAddressesStay) {
  const int64_t bytes = 2500 * kMiB + 1;
  Empty({1}, at::kByte);
  MappedMemory memory(bytes, device());
  EXPECT_GE(memory.bytes(), bytes);
  void* const address = memory.data();
  const at::Tensor words = Words(memory);
  for (int round = 0; round < 3; ++round) {
    const at::Tensor expected = at::arange(round, words.numel() + round, words.options());
    words.copy_(expected);
    EXPECT_TRUE(at::equal(words, expected)) << round;
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const int64_t held = Free();
    memory.Unmap();
    EXPECT_FALSE(memory.held());
    EXPECT_GE(Free(), held + bytes);
    memory.Unmap();
    memory.Map();
    EXPECT_TRUE(memory.held());
    EXPECT_EQ(memory.data(), address);
    memory.Map();
  }
}

// Map() empties torch's allocator, which still caches the released memory.
TEST_P(MappedMemoryTest, TorchCanHaveItMeanwhile) {
  const int64_t most = Free() - 3000 * kMiB;
  ASSERT_GT(most, 4000 * kMiB);
  MappedMemory memory(most, device());
  EXPECT_THROW(Empty({most}, at::kByte), c10::OutOfMemoryError);
  memory.Unmap();
  {
    const at::Tensor taken = Empty({most - 1000 * kMiB}, at::kByte);
    taken.fill_(1);
    EXPECT_THROW(memory.Map(), c10::OutOfMemoryError);
    EXPECT_FALSE(memory.held());
  }
  memory.Map();
  const at::Tensor words = Words(memory);
  words.fill_(7);
  EXPECT_EQ(words[0].item<int64_t>(), 7);
  EXPECT_EQ(words[words.numel() - 1].item<int64_t>(), 7);
}

TEST_P(MappedMemoryTest, AGraphRunsAgainOnWhatWasTakenAgain) {
  MappedMemory memory(100 * kMiB, device());
  const at::Tensor words = Words(memory);
  const at::Tensor sum = at::zeros({1}, words.options());
  words.fill_(0);
  const Graph graph([&] {
    words.add_(3);
    sum.add_(words.narrow(0, words.numel() - 1, 1));
  });
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    memory.Unmap();
    memory.Map();
    words.fill_(100 * round);
    sum.zero_();
    graph.Replay();
    EXPECT_EQ(sum.item<int64_t>(), 100 * round + 3);
    EXPECT_EQ(words.min().item<int64_t>(), 100 * round + 3);
  }
}

// A prompt and 19 decode steps, which replay a graph from the second one on.
TEST_P(MappedMemoryTest, TheRunnerDrawsTheSameAfterwards) {
  const ModelConfig config = Config(2);
  const auto weights = Weights::RandomInit(config, 5, device(), at::kBFloat16);
  auto runner = CudaRunner::Create(
      weights,
      MakeEngineConfig("max_num_seqs: 2 cache_bytes: ", 2000 * CudaKvCache::PageBytes(config),
                       " enable_sleep_mode: true"),
      {});
  ASSERT_TRUE(runner.ok()) << runner.status();
  const std::vector<int32_t> prompt = {5, 6, 7, 8, 9};
  const std::vector<int32_t> pages = {3, 1999};
  const SamplingSettings sampling;
  const auto generate = [&] {
    std::vector<TokenDraw> all;
    for (int64_t i = 0; i < 20; ++i) {
      SequenceSlice slice = {.slot = i == 0 ? -1 : 0, .first = i == 0 ? 0 : 4 + i, .count = 1};
      if (i == 0) {
        slice.tokens = prompt;
        slice.count = 5;
      }
      slice.pages = {pages.data(), static_cast<size_t>(PagesFor(slice.first + slice.count))};
      slice.draws = 1;
      ModelStep step;
      step.slices.push_back(slice);
      step.draws.push_back({0, &sampling, 17, i});
      EXPECT_TRUE((*runner)->Launch(step).ok());
      if (i == 3) {
        EXPECT_EQ((*runner)->Sleep().code(), absl::StatusCode::kFailedPrecondition);
      }
      const auto draws = (*runner)->Collect();
      EXPECT_TRUE(draws.ok()) << draws.status();
      if (draws.ok()) all.push_back(draws->at(0));
    }
    return all;
  };
  generate();  // captures the graphs
  const std::vector<TokenDraw> expected = generate();
  for (int round = 0; round < 2; ++round) {
    const int64_t held = Free();
    ASSERT_TRUE((*runner)->Sleep().ok());
    EXPECT_GE(Free(), held + 2000 * CudaKvCache::PageBytes(config));
    EXPECT_EQ((*runner)->Launch({}).code(), absl::StatusCode::kFailedPrecondition);
    ASSERT_TRUE((*runner)->Wake().ok());
    const std::vector<TokenDraw> again = generate();
    ASSERT_EQ(again.size(), expected.size());
    for (size_t i = 0; i < again.size(); ++i) {
      EXPECT_EQ(again[i].token, expected[i].token) << i;
      EXPECT_EQ(again[i].log_prob, expected[i].log_prob) << i;
    }
  }
}

// An engine whose KV cache takes nearly all GPU memory and sleeps while the learner uses it.
class LendingEngineTest : public MappedMemoryTest {
 protected:
  void Start(absl::Duration wake_timeout) {
    const ModelConfig config = Config(24);
    auto weights = Weights::RandomInit(config, 5, device(), at::kBFloat16);
    cache_bytes_ = Free() - 6000 * kMiB;
    ASSERT_GT(cache_bytes_, 8000 * kMiB);
    const EngineConfig engine_config =
        MakeEngineConfig("max_num_seqs: 8 cache_bytes: ", cache_bytes_,
                         " max_num_batched_tokens: 512 enable_sleep_mode: true");
    auto runner = CudaRunner::Create(std::move(weights), engine_config, {});
    ASSERT_TRUE(runner.ok()) << runner.status();
    engine_ = std::make_unique<BatchedEngine>(*std::move(runner), engine_config,
                                              BatchedEngine::Limits{.wake_timeout = wake_timeout});
  }

  // The samples of one group, by index. Each call runs the same steps.
  std::vector<Sample> Generate() {
    GenerateRequest request;
    for (int32_t i = 0; i < 700; ++i) request.prompt.push_back(i * 7 % 512);
    request.n = 8;
    request.sampling.max_tokens = 60;
    request.key.task = 7;
    EXPECT_TRUE(engine_->Submit(std::move(request)).ok());
    std::vector<Sample> samples(8);
    for (int i = 0; i < 8; ++i) {
      auto sample = engine_->Next(absl::Now() + absl::Minutes(2));
      EXPECT_TRUE(sample.ok()) << sample.status();
      if (!sample.ok()) return {};
      samples.at(sample->index) = *std::move(sample);
    }
    return samples;
  }

  // Allocates the learner's memory and fills it with bytes that are NaN in bf16.
  at::Tensor TakeForLearning() {
    at::Tensor taken = Empty({cache_bytes_ - 1000 * kMiB}, at::kByte);
    taken.fill_(0xff);
    return taken;
  }

  int64_t cache_bytes_ = 0;
  std::unique_ptr<BatchedEngine> engine_;
};

// When an update ends, torch's allocator still caches the memory that the learner has freed.
TEST_P(LendingEngineTest, DrawsTheSameAfterUpdates) {
  Start(absl::ZeroDuration());
  Generate();  // captures the graphs
  const std::vector<Sample> expected = Generate();
  ASSERT_EQ(expected.size(), 8u);
  EXPECT_THROW(TakeForLearning(), c10::OutOfMemoryError);
  for (uint64_t version = 1; version <= 2; ++version) {
    ASSERT_TRUE(engine_->BeginWeightUpdate().ok());
    EXPECT_EQ(TakeForLearning()[0].item<uint8_t>(), 0xff);
    engine_->EndWeightUpdate(version);
    const std::vector<Sample> again = Generate();
    ASSERT_EQ(again.size(), expected.size());
    for (size_t i = 0; i < again.size(); ++i) {
      EXPECT_EQ(again[i].tokens, expected[i].tokens) << i;
      EXPECT_EQ(again[i].log_probs, expected[i].log_probs) << i;
      EXPECT_EQ(again[i].versions.at(0).version, version);
    }
  }
  EXPECT_GT(engine_->Stats().wake_seconds, 0);
}

TEST_P(LendingEngineTest, SaysWhatIsMissingIfTheLearnerKeepsIt) {
  Start(absl::Milliseconds(200));
  ASSERT_TRUE(engine_->BeginWeightUpdate().ok());
  const at::Tensor kept = TakeForLearning();
  engine_->EndWeightUpdate(1);
  GenerateRequest request;
  request.prompt = {1};
  const absl::Status status = engine_->Submit(std::move(request));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(
      status.message(), absl::StrCat("keys and values need ", cache_bytes_ >> 20, " MiB, and")))
      << status;
}

INSTANTIATE_TEST_SUITE_P(Gpus, LendingEngineTest, testing::ValuesIn(TestedGpus()));

INSTANTIATE_TEST_SUITE_P(Gpus, MappedMemoryTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
