#include "exec/timing/timing_rounds.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "exec/backend/python_backend.h"
#include "exec/testing/pool_options.h"

namespace tritonrl {
namespace {

// Rounds of n and 2n calls. A round takes `fixed` and each call `call` seconds outside; a call
// takes `event` seconds by its events.
std::vector<TimedRound> Rounds(double fixed, double call, double event, int n = 8) {
  std::vector<TimedRound> rounds;
  for (const int calls : {n, 2 * n, n, 2 * n, 2 * n, n}) {
    rounds.push_back({calls, fixed + call * calls, std::vector<double>(calls, event)});
  }
  return rounds;
}

// If the time grows by the same amount from call to call, both sides have the same mean and median.
TEST(TimingRoundsTest, ADriftIsTheSameForBoth) {
  std::vector<double> positions[2];
  std::map<int, int> rounds[2];  // by factor
  double position = 0;
  for (const auto& [is_candidate, factor] : BlockOrder()) {
    ++rounds[is_candidate][factor];
    for (int call = 0; call < 3 * factor; ++call) positions[is_candidate].push_back(position++);
  }
  EXPECT_EQ(std::accumulate(positions[0].begin(), positions[0].end(), 0.0),
            std::accumulate(positions[1].begin(), positions[1].end(), 0.0));
  EXPECT_EQ(Median(positions[0]), Median(positions[1]));
  EXPECT_EQ(rounds[0], rounds[1]);
  EXPECT_EQ(rounds[0], (std::map<int, int>{{1, 2}, {2, 2}}));
}

TEST(TimingRoundsTest, TheSlopeLeavesOutWhatARoundCosts) {
  const TimePerCall time = Summarize(Rounds(0.5, 3e-4, 2e-4));
  EXPECT_NEAR(time.event, 2e-4, 1e-12);
  EXPECT_NEAR(time.outside, 3e-4, 1e-9);
  EXPECT_EQ(Summarize({}).event, 0);
}

TEST(TimingRoundsTest, ABusyHostDoesNotMoveIt) {
  std::vector<TimedRound> rounds = Rounds(0.5, 3e-4, 2e-4);
  rounds[0].outside_seconds += 0.1;
  rounds[1].outside_seconds += 1;
  rounds[4].outside_seconds += 0.01;
  EXPECT_NEAR(Summarize(rounds).outside, 3e-4, 1e-9);
  rounds[2].event_seconds[0] = 1;
  EXPECT_NEAR(Summarize(rounds).event, 2e-4, 1e-12);
}

TEST(TimingRoundsTest, WhatSurroundsACallIsTakenFromTheReference) {
  const TimePerCall reference = Summarize(Rounds(0.1, 250e-6, 150e-6));  // 100 us around a call
  EXPECT_NEAR(OutsideSeconds(reference, Summarize(Rounds(0.2, 180e-6, 80e-6))), 80e-6, 1e-9);
}

TEST(TimingRoundsTest, AFasterStoryThanTheClockIsNotBelieved) {
  EXPECT_TRUE(IsBelievable(80e-6, 80e-6, 0));
  EXPECT_TRUE(IsBelievable(80e-6, 60e-6, 0));  // a claim of a longer time is no gain
  EXPECT_TRUE(IsBelievable(10e-6, 29e-6, 0));  // within 20 us
  EXPECT_FALSE(IsBelievable(10e-6, 31e-6, 0));
  EXPECT_TRUE(IsBelievable(51e-5, 100e-5, 0));  // within half
  EXPECT_FALSE(IsBelievable(49e-5, 100e-5, 0));
  EXPECT_FALSE(IsBelievable(1e-9, 1.0, 0));
  EXPECT_TRUE(IsBelievable(10e-6, 220e-6, 2e-3));  // within 20 us plus a tenth of the wait
  EXPECT_FALSE(IsBelievable(10e-6, 240e-6, 2e-3));
}

// Whole timings with three processes; a sleep stands for work on a GPU.
class TurnsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto pools = StartPools(FakePoolOptions(1), 1 << 20, /*shared_buffers=*/true);
    ASSERT_TRUE(pools.ok()) << pools.status();
    backend_ = new PythonBackend("cuda", /*modelled=*/false, *std::move(pools));
  }
  static void TearDownTestSuite() {
    delete backend_;
    backend_ = nullptr;
  }

  ExecResult Run(const std::string& candidate, const std::string& reference = "",
                 Rules rules = RULES_STRICT) {
    ExecRequest request;
    request.set_rules(rules);
    request.set_reference_source(reference +
                                 "if job['role'] == 'oracle': result['modelled'] = False\n");
    request.set_candidate_source(candidate);
    auto result = backend_->Run(request, absl::Now() + absl::Seconds(60));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : ExecResult();
  }

  static PythonBackend* backend_;
};

PythonBackend* TurnsTest::backend_ = nullptr;

TEST_F(TurnsTest, HonestTimesAreTaken) {
  const ExecResult result = Run("pass");
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.ShortDebugString();
  EXPECT_GE(result.reference_seconds(), 0.01);
  EXPECT_GE(result.candidate_seconds(), 0.01);
  EXPECT_FALSE(result.modelled());
  EXPECT_GT(result.speedup(), 0);
  const MeasuredTiming& timing = result.timing();
  EXPECT_LT(timing.speedup_low(), result.speedup());
  EXPECT_GT(timing.speedup_high(), result.speedup());
  EXPECT_GT(timing.paper_speedup(), 0);
  EXPECT_GE(timing.block_ratios_size(), 3);
  EXPECT_FALSE(timing.has_sm_mhz_low());
  EXPECT_FALSE(timing.gpu_shared());
}

TEST_F(TurnsTest, CandidatesOfOneTaskQueueForItsReferenceProcess) {
  auto pools = StartPools(FakePoolOptions(3), 1 << 20, /*shared_buffers=*/true);
  ASSERT_TRUE(pools.ok()) << pools.status();
  PythonBackend backend("cuda", /*modelled=*/false, *std::move(pools));
  ExecRequest request;
  request.set_reference_source("if job['role'] == 'oracle': result['modelled'] = False\n");
  request.set_candidate_source("pass");
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      const auto result = backend.Run(request, absl::Now() + absl::Seconds(60));
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->outcome().reason(), Outcome::OK) << result->outcome().message();
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(backend.reference_counts().runs, 1);
}

TEST_F(TurnsTest, TheSpeedupIsTheRatio) {
  const ExecResult result = Run("timing['sleep'] = 0.005");
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.ShortDebugString();
  EXPECT_GT(result.timing().speedup_low(), 1) << result.ShortDebugString();
}

TEST_F(TurnsTest, ThePapersRulesTimeTenCallsAndNothingElse) {
  const ExecResult result = Run("timing['sleep'] = 0.005", "", RULES_PAPER);
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.ShortDebugString();
  EXPECT_EQ(result.timing().block_ratios_size(), 0);
  EXPECT_GT(result.timing().paper_speedup(), 1);
  EXPECT_EQ(result.speedup(), result.timing().paper_speedup());
  EXPECT_DOUBLE_EQ(result.reference_seconds() / result.candidate_seconds(), result.speedup());
  // Neither the clock outside nor the outputs of timed calls are looked at.
  EXPECT_EQ(Run("timing['claim'] = 1e-4", "", RULES_PAPER).outcome().reason(), Outcome::OK);
  EXPECT_EQ(Run("timing['output'] = {'value': 2}", "", RULES_PAPER).outcome().reason(),
            Outcome::OK);
}

TEST_F(TurnsTest, WhatTheReferencesProcessSawOfTheGpuIsTold) {
  const std::string see = R"(
if job['role'] == 'oracle':
  timing['gpu'] = [{'sm_mhz': 1500, 'other_programs': 0, 'throttled': False},
                   {'sm_mhz': 1700, 'other_programs': 2, 'throttled': True}]
)";
  const MeasuredTiming timing = Run("pass", see).timing();
  EXPECT_EQ(timing.sm_mhz_low(), 1500);
  EXPECT_EQ(timing.sm_mhz_high(), 1700);
  EXPECT_TRUE(timing.gpu_shared());
  EXPECT_TRUE(timing.gpu_throttled());
  // The candidate's own figures are ignored.
  const MeasuredTiming own = Run("timing['gpu'] = [{'sm_mhz': 9, 'other_programs': 3}]").timing();
  EXPECT_FALSE(own.has_sm_mhz_low());
  EXPECT_FALSE(own.gpu_shared());
}

TEST_F(TurnsTest, ATimeThatTheClockOutsideContradictsIsInconclusive) {
  const ExecResult result = Run("timing['claim'] = 1e-4");
  EXPECT_EQ(result.outcome().reason(), Outcome::INCONCLUSIVE) << result.ShortDebugString();
  EXPECT_FALSE(result.has_speedup());
  EXPECT_GT(result.outside_seconds(), 1e-3);
}

TEST_F(TurnsTest, TimedOutputsAreComparedToo) {
  const ExecResult result = Run("timing['output'] = {'value': 2}");
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.ShortDebugString();
  EXPECT_NE(result.outcome().message().find("in a timed call"), std::string::npos)
      << result.outcome().message();
}

TEST_F(TurnsTest, AnswersWithoutSenseAreRefused) {
  for (const char* candidate :
       {"timing['claim'] = -1.0", "timing['claim'] = '1'", "timing['output'] = {'value': []}",
        "timing['output'] = 3", "timing['moved'] = 3",
        "import channel\nold = channel.Control.ask\n"
        "channel.Control.ask = lambda s, m: old(s, {'round': {}})",
        "import channel\nold = channel.Control.ask\n"
        "channel.Control.ask = lambda s, m: "
        "old(s, {} if 'output' in m and 'call' not in m else m)"}) {
    EXPECT_EQ(Run(candidate).outcome().reason(), Outcome::BAD_RESULT) << candidate;
  }
  EXPECT_EQ(Run("import os\ntiming['sleep'] = 'x'").outcome().status(),
            Outcome::STATUS_CANDIDATE_FAILED);
}

TEST_F(TurnsTest, AReferenceThatCannotBeTimedIsAnInfrastructureError) {
  const ExecResult result =
      Run("pass",
          "import os\norder = lambda m: os._exit(3) if 'round' in m.get('time', {}) else None\n");
  EXPECT_EQ(result.outcome().reason(), Outcome::INTERNAL_ERROR) << result.ShortDebugString();
  EXPECT_NE(result.outcome().message().find("the reference's process ended at \"time\""),
            std::string::npos)
      << result.outcome().message();
  EXPECT_EQ(result.attempts(), 2);
}

}  // namespace
}  // namespace tritonrl
