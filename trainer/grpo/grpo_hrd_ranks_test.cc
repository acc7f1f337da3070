// Runs with several ranks, with async rollout, and with engines that sleep during learning.
#include <memory>

#include "trainer/grpo/testing/grpo_hrd_fixture.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

// All runs send their candidates to one server: starting workers would take most of a run's time.
class GrpoHrdRanksTest : public GrpoHrdTest {
 protected:
  static void SetUpTestSuite() {
    server_dir_ = MakeTempDirectory("grpo_server").value();
    SubprocessOptions options;
    options.argv = {Runfile("exec/service/server").value(), "--backend=native", "--workers=2",
                    "--register=" + server_dir_};
    options.out = options.err = Stdio::File(server_dir_ + "/server.log");
    options.parent_death_signal = SIGKILL;
    server_ = std::make_unique<Subprocess>(Subprocess::Start(options).value());
    const absl::Time latest = absl::Now() + absl::Seconds(240);
    const std::string servers = server_dir_ + "/servers";
    while (!DirectoryExists(servers) || ListDirectory(servers)->empty()) {
      ASSERT_FALSE(server_->Wait(absl::Milliseconds(50)).has_value() || absl::Now() > latest)
          << ReadFile(server_dir_ + "/server.log").value();
    }
  }
  static void TearDownTestSuite() {
    server_->Signal(SIGTERM);
    EXPECT_TRUE(server_->Wait(absl::Seconds(120)).has_value());
    server_.reset();
    RemoveTree(server_dir_).IgnoreError();
  }

  std::vector<std::string> Command(const std::string& out,
                                   std::vector<std::string> sets = {}) const {
    sets.push_back("verifier.backend=NATIVE");
    sets.push_back(absl::StrCat("verifier.servers=", server_dir_, "/"));
    return GrpoHrdTest::Command(out, sets);
  }

 private:
  static inline std::string server_dir_;
  static inline std::unique_ptr<Subprocess> server_;
};

// The next step's samples start early and continue after an update. In step 1 nothing starts early
// because an evaluation of the initial weights follows, so step 3 is the first step with stale
// tokens.
TEST_F(GrpoHrdRanksTest, AsyncRolloutReportsStaleTokens) {
  for (const bool keep : {false, true}) {
    SCOPED_TRACE(keep ? "KvPolicy keep" : "KvPolicy invalidate");
    const std::string out = keep ? "keep" : "forget";
    const CommandResult run = Run(Command(
        out, {"sampling.async_rollout=true", absl::StrCat("sampling.keep_stale_kv_cache=", keep),
              "sampling.engine.num_speculative_tokens=4", "objective.importance_sampling_cap=2",
              absl::StrCat("objective.optimizer_steps_per_epoch=", keep ? 2 : 1)}));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const std::string text = ReadFile(Out(out) + "/metrics.jsonl").value();
    std::vector<nlohmann::json> steps;
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      steps.push_back(nlohmann::json::parse(line));
    }
    ASSERT_EQ(steps.size(), 3u);
    for (int i = 0; i < 3; ++i) {
      const double stale = steps[i]["stale_token_rate"];
      EXPECT_EQ(stale > 0, i == 2) << i;
      EXPECT_LE(stale, 1);
      EXPECT_NEAR(steps[i]["importance"], 1, 0.1);
      EXPECT_EQ(steps[i]["truncated_fraction"], 0);
    }
    for (int i = 0; i < 3; ++i) {
      // Keys computed with older weights slightly change the log-probabilities under newer ones.
      EXPECT_LT(steps[i]["logprob_max_diff"], keep && i == 2 ? 0.5 : 1e-3) << i;
    }
  }
}

TEST_F(GrpoHrdRanksTest, MemoryThatTheLearnerHasMeanwhileChangesNothing) {
  const CommandResult kept = Run(Command("kept"));
  ASSERT_EQ(kept.exit_code, 0) << kept.err;
  const CommandResult released =
      Run(Command("released", {"sampling.engine.enable_sleep_mode=true"}));
  ASSERT_EQ(released.exit_code, 0) << released.err;
  ExpectSameRun("kept", "released");
  // The sleep mode may differ in a resumed run.
  const CommandResult again = Run(Command("released"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

// All ranks evaluate the initial policy; meanwhile only rank 0 keeps a copy of the trained weights,
// with which all go on.
TEST_F(GrpoHrdRanksTest, TwoRanksGiveTheLossesOfOne) {
  const std::vector<std::string> sets = {"steps=2", "eval.samples=0", "eval.at_end=false"};
  const CommandResult one = Run(Command("one", sets));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const CommandResult two = Run(MpirunCommand(2, Command("two", sets)));
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(Metrics("one").size(), 2);
  ExpectNearMetrics("one", "two", 1e-3);  // fp32 sums in another order
  EXPECT_EQ(Samples("one", "step_000001.jsonl"), Samples("two", "step_000001.jsonl"));
  EXPECT_EQ(Samples("one", "greedy_000000.jsonl"), Samples("two", "greedy_000000.jsonl"));

  std::vector<std::string> plain = sets;
  plain.push_back("eval.at_start=false");
  const CommandResult without = Run(MpirunCommand(2, Command("without", plain)));
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_EQ(Metrics("two"), Metrics("without"));
  EXPECT_EQ(Samples("two", "step_000002.jsonl"), Samples("without", "step_000002.jsonl"));
  const char* model = "/model/model.safetensors";
  EXPECT_TRUE(ReadFile(Out("two") + model).value() == ReadFile(Out("without") + model).value());

  // The same two learning ranks with a third rank that generates, without evaluation.
  std::vector<std::string> fed = plain;
  fed.push_back("rollout_ranks=1");
  const CommandResult three = Run(MpirunCommand(3, Command("three", fed)));
  ASSERT_EQ(three.exit_code, 0) << three.err;
  EXPECT_TRUE(ReadFile(Out("two") + model).value() == ReadFile(Out("three") + model).value());
}

// One rank learns and two ranks generate, with an interruption: all files equal those of one
// process.
TEST_F(GrpoHrdRanksTest, RanksThatOnlyGenerateChangeNothing) {
  const CommandResult one = Run(Command("one"));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const std::vector<std::string> apart = MpirunCommand(3, Command("apart", {"rollout_ranks=2"}));
  SignalWhen(apart, SIGUSR1, [&] { return FileExists(Out("apart") + "/checkpoints/step_000001"); });
  EXPECT_LT(Lines(Out("apart") + "/metrics.jsonl"), kSteps);
  const CommandResult rest = Run(apart);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("Resuming after step"));
  ExpectSameFiles("one", "apart");
  ExpectNearMetrics("one", "apart", 1e-12);  // sums over the ranks in another order
}

// One rank generates samples of the next step while another rank learns.
TEST_F(GrpoHrdRanksTest, ARolloutRankTakesPartInAsyncRollout) {
  const CommandResult run =
      Run(MpirunCommand(2, Command("async", {"rollout_ranks=1", "sampling.async_rollout=true",
                                             "eval.samples=0", "eval.greedy=false"})));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> steps = Metrics("async");
  ASSERT_EQ(steps.size(), 3);
  for (int i = 0; i < 3; ++i) {
    const auto step = nlohmann::json::parse(steps[i]);
    EXPECT_EQ(step["samples"], 8);
    EXPECT_EQ(step["stale_token_rate"] > 0, i > 0) << i;
  }
}

}  // namespace
}  // namespace tritonrl
