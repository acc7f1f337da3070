// Checks that update_bench and its peer run and report on the CPU, with a small model and two
// ranks. Their figures are meaningless there.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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

  // Runs a command and returns its output.
  static std::string Output(const std::vector<std::string>& argv,
                            const RunCommandOptions& options) {
    const auto result = RunCommand(argv, options);
    EXPECT_TRUE(result.ok() && result->ok()) << (result.ok() ? result->err : "");
    return result.ok() ? result->out : "";
  }

  // The figures that update_bench writes on two ranks, by metric.
  std::map<std::string, double> Bench(const std::vector<std::string>& flags) {
    RunCommandOptions options;
    options.timeout = absl::Seconds(50);
    options.env = MpiTestEnvironment();
    const std::string csv = absl::StrCat(folder_, "/update", calls_++, ".csv");
    std::vector<std::string> argv = {Runfile("bench/trainer/update_bench").value(),
                                     absl::StrCat("--shape=", config_), "--csv=" + csv};
    argv.insert(argv.end(), flags.begin(), flags.end());
    Output(MpirunCommand(2, argv), options);
    std::map<std::string, double> figures;
    for (const auto line : absl::StrSplit(ReadFile(csv).value_or(""), '\n')) {
      // Subject and setting contain commas and are quoted.
      const std::vector<std::string> quoted = absl::StrSplit(line, '"');
      if (quoted.size() < 5) continue;
      const std::vector<std::string> cells = absl::StrSplit(quoted[4], ',');
      double value = 0;
      if (cells.size() > 2 && absl::SimpleAtod(cells[2], &value)) figures[cells[1]] = value;
    }
    return figures;
  }

  int calls_ = 0;
  std::string folder_, config_;
};

TEST_F(UpdateBenchTest, TwoRanks) {
  for (const int zero : {1, 2}) {
    auto figures = Bench({"--lengths=9,2;30", "--steps=2", absl::StrCat("--zero=", zero)});
    EXPECT_GT(figures["rate of a rank"], 0);
    EXPECT_NEAR(figures["rate of a rank"] * figures["step"], 41, 0.1);  // of four digits each
    EXPECT_NEAR(figures["loss"], std::log(50), 0.3);  // random weights know nothing
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
  const std::string out =
      Output({python->interpreter, "-m", "torch.distributed.run", "--standalone",
              "--nproc-per-node=2", *script, absl::StrCat("--config=", config_), "--lengths=9,2;30",
              "--steps=2", "--device=cpu", "--recompute=0.5"},
             options);
  const nlohmann::json line = nlohmann::json::parse(out.substr(0, out.find('\n')), nullptr, false);
  ASSERT_TRUE(line.is_object());
  EXPECT_EQ(line["ranks"], 2);
  EXPECT_NEAR(line["tokens_per_s_and_rank"].get<double>() * line["seconds"].get<double>(), 41,
              1e-6);
  EXPECT_NEAR(line["loss"], std::log(50), 0.3);
}

}  // namespace
}  // namespace tritonrl
