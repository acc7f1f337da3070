#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/file.h"
#include "model/layers/decoder_layer.h"
#include "model/testing/test_util.h"
#include "model/weights/weights.h"
#include "model/weights/weights_load.h"

namespace tritonrl {
namespace {

ModelConfig FourHeads(bool tied) {
  ModelConfig config = SmallConfig(ModelFamily::kQwen3, tied);
  config.num_heads = 8;
  config.num_kv_heads = 4;
  config.intermediate_size = 96;
  return config;
}

TEST(WeightShard, HeadsAndIntermediateColumnsAreDivided) {
  const ModelConfig config = FourHeads(true);
  const auto part = ShardConfig(config, 4);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->query_size(), config.query_size() / 4);
  EXPECT_EQ(part->kv_size(), config.kv_size() / 4);
  EXPECT_EQ(part->intermediate_size, 24);
  EXPECT_EQ(part->group_size(), config.group_size());
  EXPECT_EQ(part->head_dim, config.head_dim);
  EXPECT_EQ(part->hidden_size, config.hidden_size);
  EXPECT_EQ(part->vocab_size, config.vocab_size);
}

TEST(WeightShard, ASizeThatIsNotDivisibleIsNamed) {
  ModelConfig config = FourHeads(true);
  EXPECT_EQ(ShardConfig(config, 3).status(),
            absl::InvalidArgumentError("the model cannot be sharded over 3 ranks: its "
                                       "num_attention_heads is 8, which 3 does not divide"));
  EXPECT_TRUE(
      absl::StrContains(ShardConfig(config, 8).status().message(), "num_key_value_heads is 4"));
  config.intermediate_size = 98;
  EXPECT_TRUE(
      absl::StrContains(ShardConfig(config, 4).status().message(), "intermediate_size is 98"));
  EXPECT_TRUE(absl::IsInvalidArgument(ShardConfig(config, 0).status()));
}

ModelConfig FourHeadsWithBiases() {
  ModelConfig config = FourHeads(false);
  config.family = ModelFamily::kLlama;
  config.attention_bias = config.mlp_bias = true;
  return config;
}

// The shards of all ranks, concatenated, equal the whole parameters.
TEST(WeightShard, PartsMakeTheWhole) {
  const auto whole = SmallWeights(FourHeadsWithBiases(), 3);
  for (const int ranks : {1, 2, 4}) {
    std::vector<std::shared_ptr<Weights>> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto part = ExtractShard(*whole, {rank, ranks});
      ASSERT_TRUE(part.ok()) << part.status();
      parts.push_back(*part);
      const DecoderLayerParameters layer(*parts.back(), 1);
      EXPECT_TRUE(layer.qkv.defined() && layer.gate_up.defined()) << "side by side as ever";
    }
    for (const ParameterInfo& info : whole->layout().parameters) {
      SCOPED_TRACE(info.name);
      const bool reads_parts =
          absl::StrContains(info.name, ".o_proj.") || absl::StrContains(info.name, ".down_proj.");
      const bool columns = reads_parts && info.decay();  // their biases are whole
      const bool rows = absl::StrContains(info.name, "_proj.") && !reads_parts;
      std::vector<at::Tensor> all;
      for (const auto& part : parts) all.push_back(part->Get(info.name));
      const at::Tensor joined = columns || rows ? at::cat(all, rows ? 0 : 1) : all.back();
      EXPECT_TRUE(at::equal(joined, whole->Get(info.name)));
    }
  }
}

TEST(WeightShard, OnlyTheRanksPartIsReadFromFiles) {
  const std::string dir = MakeTempDirectory("weight_shard").value();
  ModelConfig config = FourHeads(true);
  // One matrix of each kind has more elements than one chunk of the reader.
  config.hidden_size = 2050;
  config.intermediate_size = 8400;
  config.num_layers = 1;
  config.attention_bias = true;
  const auto whole = std::make_shared<Weights>(config, at::kCPU, at::kBFloat16);
  const int64_t size = whole->flat().numel();
  const at::Tensor numbers = RandomTensor({4099}, 1).to(at::kBFloat16);
  whole->flat().copy_(numbers.repeat(size / 4099 + 1).narrow(0, 0, size));
  ASSERT_TRUE(whole->Save(dir, at::kBFloat16).ok());
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
    for (const int rank : {0, 1}) {
      const auto part = LoadWeightShard(dir, at::kCPU, dtype, {rank, 2});
      ASSERT_TRUE(part.ok()) << part.status();
      const auto expected = ExtractShard(*whole, {rank, 2});
      ASSERT_TRUE(expected.ok()) << expected.status();
      for (const ParameterInfo& info : (*part)->layout().parameters) {
        EXPECT_TRUE(at::equal((*part)->Get(info.name), (*expected)->Get(info.name).to(dtype)))
            << info.name;
      }
    }
  }
  const auto refused = LoadWeightShard(dir, at::kCPU, at::kFloat, {0, 3});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  EXPECT_TRUE(absl::StrContains(refused.status().message(), dir)) << refused.status();
  EXPECT_TRUE(RemoveTree(dir).ok());
}

TEST(WeightShard, TheRanksPartOfRandomWeightsIsDrawnAlone) {
  ModelConfig config = FourHeads(false);
  config.num_layers = 1;
  // The whole rows of `down` have more elements than are drawn at once.
  config.hidden_size = 2050;
  config.intermediate_size = 8400;
  const auto whole = Weights::RandomInit(config, 7);
  const auto part = Weights::RandomShard(config, 7, at::kCPU, at::kFloat, {1, 2});
  ASSERT_TRUE(part.ok()) << part.status();
  const auto expected = ExtractShard(*whole, {1, 2});
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(at::equal((*part)->flat(), (*expected)->flat()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Weights::RandomShard(config, 7, at::kCPU, at::kFloat, {0, 3}).status()));
}

}  // namespace
}  // namespace tritonrl
