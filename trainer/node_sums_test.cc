// Runs on nodes of three ranks each (of this machine, see the program): sums in two levels, plain,
// and as measured, through a kill.
#include "trainer/node_sums.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parallel/mpi_launch.h"
#include "trainer/test_model.h"
#include "trainer/tiny_policy_fixture.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSteps = 40;
// Two nodes. MPI sums pairs of pairs, which nodes of two ranks would do too.
constexpr int kRanks = 6, kRanksPerNode = 3;

class NodeSumsTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("node_sums");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
    WriteTinyModel(dir_ + "/model");
    const auto program = Runfile("trainer/node_sums_test_program");
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *program;
    std::string text;
    for (int i = 0; i < 60; ++i) {
      const nlohmann::json line = {{"prompt", absl::StrCat("say ", i, ":")},
                                   {"response", std::string(2 + i % 9, 'a')}};
      text += line.dump() + "\n";
    }
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/data.jsonl", text).ok());
    const std::string config = absl::StrCat(
        "policy { dir: '", dir_, "/model' random_init: true device: 'cpu' save_dtype: FLOAT32 }\n",
        "train_data: '", dir_, "/data.jsonl'\noptimizer { learning_rate: 1e-2 zero_stage: 2 }\n",
        "checkpoint { every: 5 }\nbatch_size: 12\nsteps: ", kSteps,
        "\nmicro_batch_tokens: 40\nlog_every: 1\nthreads: 1\n");
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/c.textproto", config).ok());
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  // Of so many ranks.
  std::vector<std::string> Command(const std::string& out, const std::vector<std::string>& sets,
                                   int ranks = kRanks) const {
    std::vector<std::string> argv = {program_, dir_ + "/c.textproto", absl::StrCat(kRanksPerNode)};
    argv.insert(argv.end(), sets.begin(), sets.end());
    argv.push_back(absl::StrCat("output_dir=", dir_, "/", out));
    return MpirunCommand(ranks, argv);
  }
  static CommandResult Run(const std::vector<std::string>& argv) {
    RunCommandOptions options;
    options.timeout = absl::Seconds(60);
    options.env = MpiTestEnvironment();
    const auto result = RunCommand(argv, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CommandResult());
  }
  std::string Weights(const std::string& out) const {
    const auto bytes = ReadFile(dir_ + "/" + out + "/model/model.safetensors");
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or("");
  }
  std::vector<double> Losses(const std::string& out) const {
    std::vector<double> losses;
    for (const auto& line : absl::StrSplit(
             ReadFile(dir_ + "/" + out + "/metrics.jsonl").value_or(""), '\n', absl::SkipEmpty())) {
      losses.push_back(nlohmann::json::parse(std::string(line))["loss"].get<double>());
    }
    return losses;
  }

  std::string dir_, program_;
};

TEST_F(NodeSumsTest, AKilledRunGoesOnWithTheChoiceThatItMeasured) {
  const CommandResult plain = Run(Command("plain", {"optimizer.node_sums=PLAIN"}));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.err, HasSubstr("sums over 2 nodes of 3 ranks: plain (optimizer.node_sums)"));
  const CommandResult levels = Run(Command("levels", {"optimizer.node_sums=TWO_LEVEL"}));
  ASSERT_EQ(levels.exit_code, 0) << levels.err;
  EXPECT_THAT(levels.err, HasSubstr("two levels (optimizer.node_sums)"));
  const std::vector<double> a = Losses("plain"), b = Losses("levels");
  ASSERT_EQ(a.size(), kSteps);
  ASSERT_EQ(b.size(), kSteps);
  for (int i = 0; i < kSteps; ++i) EXPECT_NEAR(b[i], a[i], 1e-3 * a[i]) << "step " << i;

  const CommandResult killed = Run(Command("measured", {"kill_after=7"}));
  EXPECT_NE(killed.exit_code, 0) << "ended before the kill";
  const std::string record_path = dir_ + "/measured/node_sums.json";
  const std::string record = ReadFile(record_path).value_or("");
  const auto json = nlohmann::json::parse(record);
  EXPECT_EQ(json["nodes"], 2);
  EXPECT_EQ(json["ranks_per_node"], 3);
  const bool two_level = json["two_level"];
  EXPECT_EQ(two_level, json["two_level_s"] < json["plain_s"]);
  const CommandResult rest = Run(Command("measured", {}));
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("going on from the checkpoint of step"));
  const std::string way = two_level ? "two levels" : "plain";
  EXPECT_THAT(rest.err, HasSubstr(way + ", as this run began (node_sums.json)"));
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(rest.out, HasSubstr(absl::StrCat("rank ", rank, ": ", way, "\n")));
  }
  EXPECT_EQ(ReadFile(record_path).value_or(""), record);
  EXPECT_FALSE(Weights("plain") == Weights("levels")) << "the ways can be told apart";
  EXPECT_TRUE(Weights("measured") == Weights(two_level ? "levels" : "plain"));
  // With the other choice on record it is the other run.
  auto other = json;
  other["two_level"] = !two_level;
  ASSERT_TRUE(CreateDirectories(dir_ + "/other").ok());
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/other/node_sums.json", other.dump()).ok());
  const CommandResult taken = Run(Command("other", {}));
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr(two_level ? "rank 3: plain\n" : "rank 3: two levels\n"));
  EXPECT_TRUE(Weights("other") == Weights(two_level ? "plain" : "levels"));
}

TEST_F(NodeSumsTest, RecordsOfOtherNodesAndDamagedOnes) {
  const auto write = [&](const std::string& out, const std::string& record) {
    ASSERT_TRUE(CreateDirectories(dir_ + "/" + out).ok());
    ASSERT_TRUE(WriteFileAtomic(absl::StrCat(dir_, "/", out, "/node_sums.json"), record).ok());
  };
  write("moved", R"({"nodes": 3, "ranks_per_node": 2, "two_level": true})");
  const CommandResult moved = Run(Command("moved", {"steps=1"}));
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_THAT(moved.err, HasSubstr("as plain took")) << "measured anew";
  const std::string renewed = ReadFile(dir_ + "/moved/node_sums.json").value_or("");
  EXPECT_EQ(nlohmann::json::parse(renewed)["nodes"], 2);
  write("damaged", "{\"nodes\": 2");
  const CommandResult damaged = Run(Command("damaged", {"steps=1"}));
  EXPECT_NE(damaged.exit_code, 0);
  EXPECT_THAT(damaged.err, HasSubstr("damaged/node_sums.json: "));
  EXPECT_THAT(damaged.err, HasSubstr("; remove it to measure again"));
}

TEST_F(NodeSumsTest, PlainWhereBitsMustNotDependOnTheClock) {
  const CommandResult run = Run(Command("deterministic", {"steps=1", "policy.deterministic=true"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("sums over 2 nodes of 3 ranks: plain (policy.deterministic)"));
  EXPECT_FALSE(FileExists(dir_ + "/deterministic/node_sums.json"));
}

TEST_F(NodeSumsTest, UnevenNodesSayWhyTheySumPlainOrFailIfTwoLevelsAreWanted) {
  const CommandResult plain = Run(Command("uneven", {"steps=1"}, 5));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.err, HasSubstr("sums over 2 nodes: plain, as the first node has 3 ranks and "
                                   "node number 2 has 2"));
  const CommandResult failed =
      Run(Command("failed", {"steps=1", "optimizer.node_sums=TWO_LEVEL"}, 5));
  EXPECT_NE(failed.exit_code, 0);
  EXPECT_THAT(failed.err, HasSubstr("error: optimizer.node_sums is TWO_LEVEL, but the first node "
                                    "has 3 ranks and node number 2 has 2; set it to MEASURED or "
                                    "PLAIN"));
}

using NodeSumsAlone = TinyPolicyFixture;

TEST_F(NodeSumsAlone, OneRankHasNothingToChoose) {
  EXPECT_EQ(ChooseNodeSums({}, *policy_.weights, nullptr).value(), "");
  EXPECT_EQ(ChooseNodeSums({}, *policy_.weights, ranks_.get()).value(), "");
  const absl::Status status =
      ChooseNodeSums({.wanted = OptimizerConfig::TWO_LEVEL}, *policy_.weights, ranks_.get())
          .status();
  EXPECT_EQ(status, absl::InvalidArgumentError(
                        "optimizer.node_sums is TWO_LEVEL, but there is only one rank; set it to "
                        "MEASURED or PLAIN"));
}

}  // namespace
}  // namespace tritonrl
