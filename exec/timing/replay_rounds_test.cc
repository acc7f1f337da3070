// Interleaved rounds, with both sides scripted.
#include "exec/timing/replay_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tritonrl {
namespace {

using Json = nlohmann::json;
using Kind = TimingResult::Kind;
using testing::HasSubstr;

class ReplayRoundsTest : public testing::Test {
 protected:
  ReplayTiming Measure() {
    ReplaySides sides;
    sides.reference = [this](const Json& order, const char*) { return Reference(order); };
    sides.begin = [this](bool direct) -> absl::StatusOr<std::string> {
      direct_ = direct;
      return direct ? "it was not asked for" : candidate_not_a_graph_;
    };
    sides.candidate = [this](const CandidateRound& round) { return Candidate(round); };
    sides.alone = [this] { return alone_; };
    sides.launches = 2;
    return MeasureReplays(request_, reference_result_, sides);
  }

  absl::StatusOr<Json> Reference(const Json& order) {
    log_ += order.contains("count") ? "r" : order.contains("plain") ? "p" : "";
    if (order.contains("begin")) {
      graph_ = order["begin"]["graph"].get<bool>();
      return Json{{"not_a_graph", graph_ ? reference_not_a_graph_ : "it was not asked for"},
                  {"bytes_per_second", 1e12},
                  {"operator_seconds", 5e-6}};
    }
    if (order.contains("end")) {
      ended_ = true;
      return Json(true);
    }
    const int count = order.begin()->get<int>();
    if (answers_nonsense_) return Json{{"seconds", {1, -1}}};
    return Json{{"seconds", std::vector<double>(count, order.contains("plain") ? 80e-6 : 20e-6)},
                {"gpu", gpu_}};
  }

  absl::StatusOr<std::vector<double>> Candidate(const CandidateRound& round) {
    log_ += round.with_launches ? "m" : "c";
    checked_ += round.checked;
    if (!candidate_.ok()) return candidate_;
    if (round.with_launches) return std::vector<double>{20e-6};
    return std::vector<double>(round.count, 10e-6);
  }

  ExecRequest request_;
  ReferenceResult reference_result_;
  bool alone_ = true, answers_nonsense_ = false, ended_ = false;
  bool graph_ = false, direct_ = false;  // what was asked for last
  std::string reference_not_a_graph_, candidate_not_a_graph_;
  absl::Status candidate_;
  Json gpu_ = Json::array();  // states of the GPU that each round tells
  std::string log_;           // of calls: r, c; p, m for the paper's figure
  int checked_ = 0;
};

TEST_F(ReplayRoundsTest, BothTakeTurns) {
  const ReplayTiming timing = Measure();
  ASSERT_EQ(timing.result.kind, Kind::kTimed) << timing.result.text;
  EXPECT_EQ(log_, "rcpmrccrrccrrccr");
  EXPECT_EQ(checked_, 7);  // the output of every round is small
  EXPECT_DOUBLE_EQ(timing.result.speedup.speedup, 2);
  EXPECT_DOUBLE_EQ(timing.result.reference_seconds, 20e-6);
  EXPECT_DOUBLE_EQ(timing.result.candidate_seconds, 10e-6);
  EXPECT_EQ(timing.result.ratios.size(), 6);
  EXPECT_EQ(timing.result.bytes_per_second, 1e12);
  EXPECT_DOUBLE_EQ(*timing.result.paper_speedup, 80e-6 / PaperSeconds(20e-6, 5e-6, 2, 0));
  EXPECT_EQ(timing.not_a_graph, "");
  EXPECT_TRUE(ended_);
}

TEST_F(ReplayRoundsTest, WhereOneSideIsNoGraphBothAreTimedDirectly) {
  reference_not_a_graph_ = "it waits for the GPU";
  EXPECT_THAT(Measure().not_a_graph, HasSubstr("the reference's call: it waits for the GPU"));
  EXPECT_TRUE(direct_);
  reference_not_a_graph_ = "";
  candidate_not_a_graph_ = "it reads";
  EXPECT_THAT(Measure().not_a_graph, HasSubstr("the candidate's call: it reads"));
  EXPECT_FALSE(graph_);
}

TEST_F(ReplayRoundsTest, ThePapersRulesKnowTheMeansAlone) {
  request_.set_rules(RULES_PAPER);
  const ReplayTiming timing = Measure();
  EXPECT_TRUE(timing.result.paper_rules);
  EXPECT_EQ(log_, "rcpm");
  EXPECT_DOUBLE_EQ(timing.result.reference_seconds, 80e-6);
}

TEST(PaperSecondsTest, TheSlowerOfHostAndDevice) {
  // Twenty launches of the candidate keep Python's host busy for longer than the device.
  EXPECT_NEAR(PaperSeconds(100e-6, 5e-6, 20, 0), 5e-6 * (3.2 + 20 * 3.2), 1e-12);
  // A large kernel begins after the first launch.
  EXPECT_NEAR(PaperSeconds(10e-3, 5e-6, 1, 0), 10e-3 + 5e-6 * 6.4, 1e-12);
  EXPECT_GT(PaperSeconds(10e-6, 5e-6, 1, 30), PaperSeconds(10e-6, 5e-6, 1, 0));
  // Nothing else is believed of a host.
  EXPECT_LT(PaperSeconds(0, 1, 1, 0), 1e-3);
}

TEST_F(ReplayRoundsTest, StatesOfTheGpuAreTold) {
  gpu_ = {{{"sm_mhz", 1980}, {"other_programs", 0}, {"throttled", false}},
          {{"sm_mhz", 1200}, {"other_programs", 2}, {"throttled", true}},
          {{"sm_mhz", "fast"}, {"other_programs", -7}},
          3};
  const ReplayTiming timing = Measure();
  ASSERT_EQ(timing.result.kind, Kind::kTimed) << timing.result.text;
  ExecResult result;
  ConcludeSpeedup(reference_result_, timing.result, &result);
  EXPECT_EQ(result.timing().sm_mhz_low(), 1200);
  EXPECT_EQ(result.timing().sm_mhz_high(), 1980);
  EXPECT_TRUE(result.timing().gpu_shared());
  EXPECT_TRUE(result.timing().gpu_throttled());
  gpu_ = {{{"sm_mhz", 1980}, {"other_programs", 0}, {"throttled", false}}};
  ExecResult alone;
  ConcludeSpeedup(reference_result_, Measure().result, &alone);
  EXPECT_FALSE(alone.timing().gpu_shared());
  EXPECT_FALSE(alone.timing().gpu_throttled());
}

TEST_F(ReplayRoundsTest, FailuresSayWhose) {
  candidate_ = absl::OutOfRangeError("kernel k: out of bounds");
  ReplayTiming timing = Measure();
  EXPECT_EQ(timing.result.kind, Kind::kCandidateEnded);
  EXPECT_EQ(timing.candidate, candidate_);
  EXPECT_TRUE(ended_);
  candidate_ = absl::InvalidArgumentError("the output is wrong");
  EXPECT_EQ(Measure().result.kind, Kind::kWrongOutput);
  candidate_ = absl::OkStatus();
  answers_nonsense_ = true;
  timing = Measure();
  EXPECT_EQ(timing.result.kind, Kind::kTimerFailed);
  EXPECT_THAT(timing.result.text, HasSubstr("makes no sense"));
  answers_nonsense_ = false;
  alone_ = false;
  EXPECT_EQ(Measure().result.kind, Kind::kTimerFailed);
}

}  // namespace
}  // namespace tritonrl
