// Decoding with a cache gives what the whole forward pass gives.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/decode_cache.h"
#include "model/test_util.h"
#include "model/transformer.h"

namespace tritonrl {
namespace {

enum class Path { kKernels, kAten };

class DecodeTest : public testing::TestWithParam<Path> {
 protected:
  DecodeTest() : config_(SmallConfig(ModelFamily::kQwen3, GetParam() == Path::kKernels)) {
    Transformer::Options options;
    options.cpu_threads = 2;
    options.force_aten = GetParam() == Path::kAten;
    model_ = std::make_unique<Transformer>(config_, SmallWeights(config_, 1), options);
  }

  DecodeCache Cache(int64_t slots, int64_t length = 96) const {
    return DecodeCache(config_, slots, length, at::kCPU, at::kFloat);
  }

  // log softmax(logits / 0.7)[token]
  static double LogProb(const at::Tensor& logits, int64_t row, int64_t token) {
    return (logits.select(0, row) / 0.7).log_softmax(-1).data_ptr<float>()[token];
  }

  const ModelConfig config_;
  std::unique_ptr<Transformer> model_;
};

// Sequences of different lengths enter and leave the running batch at different times.
TEST_P(DecodeTest, ContinuousBatchingAgreesWithForward) {
  const std::vector<int64_t> lengths = {60, 33, 71, 20, 48, 52};
  const std::vector<int64_t> prompt_lengths = {17, 1, 40, 5, 16, 30};
  const auto sequences = RandomTokens(config_, lengths, 3);
  const PackedBatch whole = PackSequences(sequences);
  const at::Tensor expected =
      model_->Forward(whole, NextTokenTargets(whole), 0.7, nullptr).log_probs;
  DecodeCache cache = Cache(4);

  struct Running {
    size_t sequence;
    int64_t slot;
    int64_t position;  // of the next token to feed
  };
  std::vector<Running> running;
  std::vector<int64_t> free_slots = {2, 0, 3, 1};
  size_t waiting = 0;
  double largest = 0;
  int64_t compared = 0;
  auto compare = [&](size_t sequence, int64_t position, const at::Tensor& logits, int64_t row) {
    const double actual = LogProb(logits, row, sequences[sequence][position]);
    largest = std::max(
        largest,
        std::fabs(actual - expected.data_ptr<float>()[whole.offsets[sequence] + position - 1]));
    ++compared;
  };
  while (waiting < sequences.size() || !running.empty()) {
    while (waiting < sequences.size() && !free_slots.empty()) {
      const std::vector<int32_t> prompt(sequences[waiting].begin(),
                                        sequences[waiting].begin() + prompt_lengths[waiting]);
      const std::vector<std::vector<int64_t>> slots = {{free_slots.back()}};
      const at::Tensor logits = model_->Prefill(PackSequences({prompt}), slots, &cache);
      compare(waiting, prompt_lengths[waiting], logits, 0);
      running.push_back({waiting, free_slots.back(), prompt_lengths[waiting]});
      free_slots.pop_back();
      ++waiting;
    }
    std::vector<int64_t> tokens, slots, positions;
    for (const Running& r : running) {
      tokens.push_back(sequences[r.sequence][r.position]);
      slots.push_back(r.slot);
      positions.push_back(r.position);
    }
    const at::Tensor logits = model_->DecodeStep(tokens, slots, positions, &cache);
    std::vector<Running> still;
    for (size_t row = 0; row < running.size(); ++row) {
      Running r = running[row];
      if (++r.position < lengths[r.sequence]) {
        compare(r.sequence, r.position, logits, static_cast<int64_t>(row));
        still.push_back(r);
      } else {
        free_slots.push_back(r.slot);
      }
    }
    running = still;
  }
  EXPECT_EQ(compared, 60 + 33 + 71 + 20 + 48 + 52 - (17 + 1 + 40 + 5 + 16 + 30));
  EXPECT_LT(largest, 1e-5);
}

TEST_P(DecodeTest, PromptOfAGroupIsComputedOnceAndCopied) {
  const auto prompts = RandomTokens(config_, {25, 9}, 4);
  DecodeCache grouped = Cache(5), single = Cache(5);
  const std::vector<std::vector<int64_t>> slots = {{0, 3, 4}, {1}};
  const at::Tensor logits = model_->Prefill(PackSequences(prompts), slots, &grouped);
  const std::vector<std::vector<int64_t>> first = {{2}};
  const at::Tensor alone = model_->Prefill(PackSequences({prompts[0]}), first, &single);
  EXPECT_LT(MaxDifference(logits.narrow(0, 0, 1), alone), 1e-5);
  single.CopySlot(2, 4, 25);
  const at::Tensor expected = model_->DecodeStep({11}, {4}, {25}, &single);
  for (int64_t slot : slots[0]) {
    const at::Tensor actual = model_->DecodeStep({11, 12}, {slot, 1}, {25, 9}, &grouped);
    EXPECT_LT(MaxDifference(actual.narrow(0, 0, 1), expected), 1e-5) << slot;
  }
}

TEST_P(DecodeTest, OtherRowsChangeNothing) {
  const int64_t batch = 53;
  const auto prompts = RandomTokens(config_, std::vector<int64_t>(batch, 20), 4);
  DecodeCache cache = Cache(batch);
  std::vector<std::vector<int64_t>> slots;
  std::vector<int64_t> tokens, ids, positions;
  for (int64_t i = 0; i < batch; ++i) {
    slots.push_back({i});
    tokens.push_back(i);
    ids.push_back(i);
    positions.push_back(20);
  }
  model_->Prefill(PackSequences(prompts), slots, &cache);
  const at::Tensor all = model_->DecodeStep(tokens, ids, positions, &cache);
  for (int64_t i : {0, 15, 16, 31, 52}) {
    const at::Tensor one = model_->DecodeStep({i}, {i}, {20}, &cache);
    if (GetParam() == Path::kKernels) {
      EXPECT_TRUE(SameBits(one, all.narrow(0, i, 1))) << i;
    } else {  // a matrix product of ATen may round differently for another number of rows
      EXPECT_LT(MaxDifference(one, all.narrow(0, i, 1)), 1e-5) << i;
    }
  }
}

TEST_P(DecodeTest, MistakesOfTheCallerAreRefused) {
  DecodeCache cache = Cache(2, 16);
  const std::vector<std::vector<int64_t>> slots = {{0}}, outside = {{2}};
  const PackedBatch prompt = PackSequences(RandomTokens(config_, {4}, 1));
  EXPECT_ANY_THROW(model_->Prefill(PackSequences(RandomTokens(config_, {17}, 1)), slots, &cache));
  EXPECT_ANY_THROW(model_->Prefill(PackSequences(RandomTokens(config_, {0}, 1)), slots, &cache));
  EXPECT_ANY_THROW(model_->Prefill(prompt, outside, &cache));
  EXPECT_ANY_THROW(model_->DecodeStep({1}, {0}, {16}, &cache));
  EXPECT_ANY_THROW(model_->DecodeStep({1}, {2}, {3}, &cache));
  EXPECT_ANY_THROW(model_->DecodeStep({1, 2}, {0}, {3}, &cache));
  EXPECT_ANY_THROW(model_->DecodeStep({101}, {0}, {3}, &cache));
}

INSTANTIATE_TEST_SUITE_P(Paths, DecodeTest, testing::Values(Path::kKernels, Path::kAten),
                         [](const auto& info) {
                           return std::string(info.param == Path::kKernels ? "Kernels" : "Aten");
                         });

}  // namespace
}  // namespace tritonrl
