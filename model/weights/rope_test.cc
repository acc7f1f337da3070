#include "model/weights/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tritonrl {
namespace {

struct Read {
  double theta = 10000;
  RopeScaling scaling;
  absl::Status status;
};

Read ReadText(const std::string& text, int64_t max_positions = 4096) {
  const nlohmann::json json = nlohmann::json::parse(text);
  Read read;
  ConfigFields fields(json, "c.json");
  ReadRope(json, "c.json", max_positions, &fields, &read.theta, &read.scaling);
  read.status = fields.status();
  return read;
}

TEST(RopeTest, Llama3KeepsShortWavesAndStretchesLongOnes) {
  const std::vector<double> plain = RopeInverseFrequencies(500000, 128, {});
  const std::vector<double> scaled =
      RopeInverseFrequencies(500000, 128, {RopeType::kLlama3, 8.0, 1.0, 4.0, 8192});
  EXPECT_EQ(plain[0], 1.0);
  EXPECT_EQ(scaled[0], 1.0);
  EXPECT_NEAR(scaled[63], plain[63] / 8, 1e-15);
  EXPECT_NEAR(plain[32], 1 / std::sqrt(500000.0), 1e-12);
}

TEST(RopeTest, LinearDividesAllFrequencies) {
  const std::vector<double> plain = RopeInverseFrequencies(10000, 64, {});
  const std::vector<double> scaled =
      RopeInverseFrequencies(10000, 64, {.type = RopeType::kLinear, .factor = 2});
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 2);
}

TEST(RopeTest, YarnInterpolatesBetweenItsTwoRotations) {
  // 64 dimensions, theta 10000, 4096 positions: 32 rotations at dimension 10.4, one at 22.5.
  const RopeScaling yarn = {.type = RopeType::kYarn, .factor = 4, .original_max_positions = 4096};
  const std::vector<double> plain = RopeInverseFrequencies(10000, 64, {});
  const std::vector<double> scaled = RopeInverseFrequencies(10000, 64, yarn);
  EXPECT_DOUBLE_EQ(scaled[10], plain[10]);
  EXPECT_DOUBLE_EQ(scaled[23], plain[23] / 4);
  const double share = 6.0 / 13;  // of dimension 16 between 10 and 23
  EXPECT_DOUBLE_EQ(scaled[16], plain[16] * (1 - share) + plain[16] / 4 * share);
}

TEST(RopeTest, ReadsEachFormOfTheFile) {
  for (
      const char* text :
      {R"({"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2}})",
       R"({"rope_theta": 5e5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}})",
       R"({"rope_theta": 5e5, "rope_scaling": {"rope_type": "default", "type": "linear", "factor": 2}})",
       R"({"rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2}})"}) {
    const Read read = ReadText(text);
    EXPECT_TRUE(read.status.ok()) << read.status;
    EXPECT_EQ(read.theta, 5e5) << text;
    EXPECT_EQ(read.scaling.type, RopeType::kLinear) << text;
    EXPECT_EQ(read.scaling.factor, 2) << text;
  }
  for (const char* text :
       {"{}", R"({"rope_scaling": null})", R"({"rope_scaling": {"rope_type": "default"}})",
        R"({"rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}})"}) {
    const Read read = ReadText(text);
    EXPECT_TRUE(read.status.ok()) << read.status;
    EXPECT_EQ(read.scaling.type, RopeType::kDefault) << text;
    EXPECT_EQ(read.scaling.factor, 1) << text;
  }
}

TEST(RopeTest, YarnsAttentionFactorFollowsTheFile) {
  const double expected = 0.1 * std::log(4.0) + 1;
  const Read plain = ReadText(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4}})", 4096);
  EXPECT_TRUE(plain.status.ok()) << plain.status;
  EXPECT_EQ(plain.scaling.original_max_positions, 4096);
  EXPECT_DOUBLE_EQ(plain.scaling.attention_factor, expected);
  EXPECT_EQ(ReadText(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4,
      "attention_factor": 1.5}})")
                .scaling.attention_factor,
            1.5);
  const RopeScaling deepseek = ReadText(R"({"rope_scaling": {"type": "yarn", "factor": 4,
      "mscale": 2, "mscale_all_dim": 1, "original_max_position_embeddings": 128}})")
                                   .scaling;
  EXPECT_DOUBLE_EQ(deepseek.attention_factor, (0.2 * std::log(4.0) + 1) / expected);
  EXPECT_EQ(deepseek.original_max_positions, 128);
}

}  // namespace
}  // namespace tritonrl
