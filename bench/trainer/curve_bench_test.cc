// A small model in fp32 on the CPU: this learner's loss is PyTorch's, step for step.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"

namespace tritonrl {
namespace {

constexpr char kConfig[] = R"({"model_type": "qwen3", "hidden_size": 48, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96,
  "vocab_size": 1024, "tie_word_embeddings": true, "max_position_embeddings": 1024,
  "rms_norm_eps": 1e-6, "rope_theta": 10000, "bos_token_id": 0, "eos_token_id": 1,
  "hidden_act": "silu"})";

TEST(CurveBenchTest, TheLossesArePyTorchs) {
  const std::string folder = MakeTempDirectory("curve").value();
  const std::string config = absl::StrCat(folder, "/shape.json");
  ASSERT_TRUE(WriteFileAtomic(config, kConfig).ok());
  const auto program = Runfile("bench/trainer/curve_bench");
  ASSERT_TRUE(program.ok()) << program.status();
  RunCommandOptions options;
  options.timeout = absl::Seconds(200);
  const auto result =
      RunCommand({*program, "--shape=" + config, "--out=" + folder, "--steps=40", "--sequences=3",
                  "--learning_rate=3e-3", "--ours=fp32", "--peer=fp32", "--device=cpu"},
                 options);
  ASSERT_TRUE(result.ok() && result->ok()) << (result.ok() ? result->err : "");
  std::vector<std::vector<double>> curves;
  const std::string text = ReadFile(absl::StrCat(folder, "/curves.jsonl")).value();
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    curves.push_back(nlohmann::json::parse(line)["losses"]);
  }
  ASSERT_EQ(curves.size(), 2u);
  ASSERT_EQ(curves[0].size(), 40u);
  EXPECT_NEAR(curves[0].front(), std::log(1024), 0.2);  // random weights know nothing
  EXPECT_LT(curves[0].back(), 0.7 * curves[0].front());
  for (size_t step = 0; step < 40; ++step) {
    EXPECT_NEAR(curves[0][step], curves[1][step], 2e-3) << "step " << step;
  }
  RemoveTree(folder).IgnoreError();
}

}  // namespace
}  // namespace tritonrl
