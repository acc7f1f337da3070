#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "rollout/distributed/weight_broadcast.h"

namespace tritonrl {
namespace {

ModelConfig Config() {
  ModelConfig config;
  config.hidden_size = 20;  // norms of 20 elements leave gaps up to the alignment
  config.num_layers = 1;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 8;
  config.intermediate_size = 24;
  config.vocab_size = 50;
  return config;
}

std::vector<std::pair<int64_t, int64_t>> Pairs(const std::vector<FlatRange>& buckets) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const FlatRange& bucket : buckets) pairs.push_back({bucket.begin, bucket.end});
  return pairs;
}

using Ends = std::vector<std::pair<int64_t, int64_t>>;

TEST(WeightUpdate, PiecesCoverAllOrWhatChanged) {
  const ParameterLayout layout(Config());
  const auto all = ChangedBuckets(layout, nullptr, 1024);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->front().begin, 0);
  EXPECT_EQ(all->back().end, layout.flat_size);
  for (size_t i = 1; i < all->size(); ++i) EXPECT_EQ((*all)[i].begin, (*all)[i - 1].end);
  for (const FlatRange& bucket : *all) EXPECT_LE(bucket.size(), 1024);

  // The embedding has 1000 elements, which take 1024; the first layer's norm follows.
  const std::vector<std::string> first = {layout.parameters[1].name, layout.parameters[0].name,
                                          layout.parameters[0].name};
  const auto joined = ChangedBuckets(layout, &first, int64_t{1} << 20);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(Pairs(*joined), Ends({{0, layout.parameters[2].offset}}));
  const std::vector<std::string> apart = {"model.embed_tokens.weight", "model.norm.weight"};
  const auto cut = ChangedBuckets(layout, &apart, 512);
  ASSERT_TRUE(cut.ok()) << cut.status();
  const auto norm = std::find_if(layout.parameters.begin(), layout.parameters.end(),
                                 [](const auto& info) { return info.name == "model.norm.weight"; });
  EXPECT_EQ(Pairs(*cut), Ends({{0, 512}, {512, 1024}, {norm->offset, norm->offset + 64}}));
  const std::vector<std::string> none;
  EXPECT_TRUE(ChangedBuckets(layout, &none, 512)->empty());
}

TEST(WeightUpdate, AnUnknownParameterIsNamed) {
  const std::vector<std::string> wrong = {"model.norm.bias"};
  const auto buckets = ChangedBuckets(ParameterLayout(Config()), &wrong, 512);
  EXPECT_EQ(buckets.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(buckets.status().message(), "model.norm.bias"));
}

TEST(WeightUpdate, GoesThroughTextAndDamagedTextIsRefused) {
  const WeightUpdate update = {.version = 18446744073709551615ull,
                               .buckets = {{0, 64}, {64, 128}, {640, 1024}}};
  const auto back = DecodeUpdate(EncodeUpdate(update), 1024);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->version, update.version);
  EXPECT_EQ(Pairs(back->buckets), Pairs(update.buckets));
  EXPECT_EQ(back->elements(), 512);
  const auto empty = DecodeUpdate("3", 1024);
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_TRUE(empty->buckets.empty());
  for (const char* text : {"", "x", "3 0", "3 0 2048", "3 64 0", "3 0 100", "3 0 128 64 192"}) {
    EXPECT_EQ(DecodeUpdate(text, 1024).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST(WeightUpdate, OtherWeightsAreNamed) {
  ModelConfig wide = Config(), turned = Config();
  wide.intermediate_size = 32;
  turned.rope_theta = 5e5;
  const std::string ours = DescribeWeights(Weights(Config(), at::kCPU, at::kFloat));
  EXPECT_TRUE(CompareDescriptions({ours, ours, ours}).ok());
  const absl::Status shape =
      CompareDescriptions({ours, ours, DescribeWeights(Weights(wide, at::kCPU, at::kFloat))});
  EXPECT_EQ(shape.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(shape.message(), "rank 2")) << shape;
  EXPECT_TRUE(absl::StrContains(shape.message(), "gate_proj.weight Float [32, 20]")) << shape;
  EXPECT_TRUE(absl::StrContains(shape.message(), "gate_proj.weight Float [24, 20]")) << shape;
  for (const std::string& other :
       {DescribeWeights(Weights(Config(), at::kCPU, at::kBFloat16)),
        DescribeWeights(Weights(turned, at::kCPU, at::kFloat)), ours.substr(0, ours.rfind('\n'))}) {
    EXPECT_FALSE(CompareDescriptions({ours, other}).ok()) << other;
  }
}

TEST(WeightUpdate, SumsTellWhichPieceDiffers) {
  const std::vector<FlatRange> buckets = {{0, 64}, {128, 192}};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor sent = at::zeros({256}, type).fill_(0.5);
    const at::Tensor got = sent.clone();
    got[100] = 7;  // in no bucket
    EXPECT_EQ(BucketChecksums(got, buckets), BucketChecksums(sent, buckets));
    got[191] = 0.5078125;
    const std::string first = EncodeArrival(4, BucketChecksums(sent, buckets));
    EXPECT_TRUE(CompareArrivals({first, first}, buckets).ok());
    const absl::Status differ =
        CompareArrivals({first, first, EncodeArrival(4, BucketChecksums(got, buckets))}, buckets);
    EXPECT_EQ(differ.code(), absl::StatusCode::kDataLoss);
    EXPECT_TRUE(absl::StrContains(differ.message(), "elements 128 to 192")) << differ;
    EXPECT_TRUE(absl::StrContains(differ.message(), "rank 2")) << differ;
    const absl::Status old =
        CompareArrivals({first, EncodeArrival(3, BucketChecksums(sent, buckets))}, buckets);
    EXPECT_TRUE(absl::StrContains(old.message(), "rank 1 has weights of version 3")) << old;
  }
  EXPECT_TRUE(BucketChecksums(at::zeros({64}), {}).empty());
}

}  // namespace
}  // namespace tritonrl
