// The bench of whole steps and its peer on the CPU, with a small model and two ranks: that both run
// and say what they did. Their figures mean nothing there.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "parallel/testing/mpi_launch.h"

namespace tritonrl {
namespace {

constexpr char kConfig[] = R"({"model_type": "qwen3", "hidden_size": 32, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48,
  "vocab_size": 50, "tie_word_embeddings": false, "max_position_embeddings": 64,
  "rms_norm_eps": 1e-6, "rope_theta": 10000, "bos_token_id": 0, "eos_token_id": 1,
  "hidden_act": "silu"})";

class UpdateBenchTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = MakeTempDirectory("bench").value();
    config_ = absl::StrCat(folder_, "/config.json");
    ASSERT_TRUE(WriteFileAtomic(config_, kConfig).ok());
  }
  void TearDown() override { RemoveTree(folder_).IgnoreError(); }

  // The line of JSON that a command prints first.
  nlohmann::json Line(const std::vector<std::string>& argv, const RunCommandOptions& options) {
    const auto result = RunCommand(argv, options);
    EXPECT_TRUE(result.ok() && result->ok()) << (result.ok() ? result->err : "");
    if (!result.ok()) return nullptr;
    return nlohmann::json::parse(result->out.substr(0, result->out.find('\n')), nullptr, false);
  }

  // The line of update_bench on so many ranks.
  nlohmann::json Bench(int ranks, const std::vector<std::string>& flags) {
    RunCommandOptions options;
    options.timeout = absl::Seconds(50);
    options.env = MpiTestEnvironment();
    const auto program = Runfile("bench/trainer/update_bench");
    EXPECT_TRUE(program.ok()) << program.status();
    if (!program.ok()) return nullptr;
    std::vector<std::string> argv = {*program, absl::StrCat("--shape=", config_)};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return Line(MpirunCommand(ranks, argv), options);
  }

  std::string folder_, config_;
};

TEST_F(UpdateBenchTest, TwoRanks) {
  for (const int zero : {1, 2}) {
    const nlohmann::json line =
        Bench(2, {"--lengths=9,2;30", "--steps=2", absl::StrCat("--zero=", zero)});
    ASSERT_TRUE(line.is_object());
    EXPECT_EQ(line["ranks"], 2);
    EXPECT_EQ(line["zero"], zero);
    EXPECT_GT(line["tokens_per_s_and_rank"], 0);
    EXPECT_NEAR(line["tokens_per_s_and_rank"].get<double>() * line["seconds"].get<double>(), 41,
                1e-6);
    EXPECT_NEAR(line["loss"], std::log(50), 0.3);  // random weights know nothing
  }
}

TEST_F(UpdateBenchTest, ThePeer) {
  const auto python = FindPythonEnv();
  ASSERT_TRUE(python.ok()) << python.status();
  const auto script = Runfile("bench/trainer/update_peer.py");
  ASSERT_TRUE(script.ok()) << script.status();
  RunCommandOptions options;
  options.timeout = absl::Seconds(100);
  options.env = python->Environment();
  const nlohmann::json line =
      Line({python->interpreter, "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node=2", *script, absl::StrCat("--config=", config_), "--lengths=9,2;30",
            "--steps=2", "--device=cpu", "--recompute=0.5"},
           options);
  ASSERT_TRUE(line.is_object());
  EXPECT_EQ(line["ranks"], 2);
  EXPECT_NEAR(line["tokens_per_s_and_rank"].get<double>() * line["seconds"].get<double>(), 41,
              1e-6);
  EXPECT_NEAR(line["loss"], std::log(50), 0.3);
}

}  // namespace
}  // namespace tritonrl
