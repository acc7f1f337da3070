// Candidates through shared GPU buffers come to the same verdicts as through shared memory: both
// ways in the real runner, without a GPU.
#include "exec/candidate/window_exchange.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "exec/backend/python_backend.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

TEST(ParseDifferenceTest, ReadsNumbersThatJsonDoesNotHave) {
  const auto found = ParseDifference(Json::parse(
      R"({"largest": "inf", "bad": 2, "first": 7, "want": ["1.5"], "got": ["nan"], "nan": true,
          "error": "nan", "tolerance": "0.25", "share": "0.5", "share_error": "1",
          "share_tolerance": "2"})"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->largest, std::numeric_limits<double>::infinity());
  EXPECT_EQ(found->bad, 2);
  EXPECT_EQ(found->first, 7);
  EXPECT_EQ(found->want, "1.5");
  EXPECT_EQ(found->got, "nan");
  EXPECT_TRUE(found->nan);
  EXPECT_EQ(found->tolerance, 0.25);
  EXPECT_EQ(found->share, 0.5);
  const auto complex = ParseDifference(Json::parse(
      R"({"largest": "1", "bad": 1, "first": 0, "want": ["1", "-2"], "got": ["1", "0"],
          "nan": false, "error": "2", "tolerance": "0", "share": null})"));
  ASSERT_TRUE(complex.ok()) << complex.status();
  EXPECT_EQ(complex->want, "1-2j");
  EXPECT_FALSE(complex->share.has_value());
}

TEST(ParseDifferenceTest, RefusesWhatMakesNoSense) {
  for (const char* text :
       {"3", "{}", R"({"largest": 1, "bad": 0})", R"({"largest": "x", "bad": 0})",
        R"({"largest": "1", "bad": -1})", R"({"largest": "1", "bad": 1})",
        R"({"largest": "1", "bad": 1, "first": 0, "nan": false, "error": "1", "tolerance": "0"})",
        R"({"largest": "1", "bad": 0, "share": "1"})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseDifference(Json::parse(text)).status())) << text;
  }
}

// Two backends: with shared GPU buffers, and with shared memory.
class WindowExchangeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const bool shared_buffers : {false, true}) {
      auto pools = StartPools(WorkerPoolOptions(), 64 << 20, shared_buffers);
      ASSERT_TRUE(pools.ok()) << pools.status();
      backends_[shared_buffers] =
          new PythonBackend("interpreter", /*modelled=*/true, *std::move(pools));
    }
  }
  static void TearDownTestSuite() {
    for (PythonBackend*& backend : backends_) {
      delete backend;
      backend = nullptr;
    }
  }
  void SetUp() override { ASSERT_NE(backends_[1], nullptr); }

  // The result with shared GPU buffers, after it was held against the other one.
  static ExecResult RunBoth(const ExecRequest& request) {
    const ExecResult want = RunOrFail(backends_[0], request);
    ExecResult got = RunOrFail(backends_[1], request);
    EXPECT_EQ(ReasonName(got.outcome().reason()), ReasonName(want.outcome().reason()))
        << got.outcome().message();
    EXPECT_EQ(got.outcome().message(), want.outcome().message());
    EXPECT_EQ(got.correct(), want.correct());
    EXPECT_EQ(got.trials_run(), want.trials_run());
    EXPECT_EQ(got.max_error(), want.max_error());
    EXPECT_EQ(got.mismatch().SerializeAsString(), want.mismatch().SerializeAsString())
        << got.mismatch().ShortDebugString() << "\n against " << want.mismatch().ShortDebugString();
    EXPECT_EQ(got.robust().ShortDebugString(), want.robust().ShortDebugString());
    EXPECT_EQ(got.ablation_all(), want.ablation_all());
    EXPECT_EQ(got.probes_size(), want.probes_size());
    for (int i = 0; i < std::min(got.probes_size(), want.probes_size()); ++i) {
      EXPECT_EQ(got.probes(i).ShortDebugString(), want.probes(i).ShortDebugString());
    }
    return got;
  }

  static inline PythonBackend* backends_[2] = {};
};

std::string Changed(const std::string& from, const std::string& to) {
  const std::string changed = absl::StrReplaceAll(kSoftmaxCandidate, {{from, to}});
  EXPECT_NE(changed, kSoftmaxCandidate) << from;
  return changed;
}

TEST_F(WindowExchangeTest, HonestAndWrongOnes) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST}) {
    const auto run = [&](const std::string& candidate) {
      ExecRequest request = MakeExecRequest(candidate);
      request.set_rules(rules);
      return RunBoth(request);
    };
    const ExecResult honest = run(kSoftmaxCandidate);
    EXPECT_EQ(honest.outcome().reason(), Outcome::OK) << honest.outcome().message();
    EXPECT_EQ(honest.ablation_all(), ABLATION_CHANGED);
    EXPECT_EQ(run(Changed("e / tl.sum(e, 0)", "e")).mismatch().kind(), "value");
    EXPECT_EQ(run(Changed("torch.empty_like(x)", "torch.empty(64, 201)")).mismatch().kind(),
              "shape");
    EXPECT_EQ(run(Changed("return y", "return y.double()")).mismatch().kind(), "dtype");
    EXPECT_EQ(run(Changed("return y", "return y, y")).mismatch().kind(), "count");
    EXPECT_EQ(run(Changed("return y", "x.zero_(); return y")).mismatch().kind(), "input_changed");
    EXPECT_EQ(run(Changed("e / tl.sum(e, 0)", "e * float('nan')")).mismatch().kind(), "nan");
    EXPECT_EQ(run(Changed("return y", "raise ValueError('no')")).outcome().reason(),
              Outcome::RUNTIME_ERROR);
  }
}

TEST_F(WindowExchangeTest, DecorationIsSeen) {
  const ExecResult result =
      RunBoth(MakeExecRequest(Changed("return y", "return torch.softmax(x, -1)")));
  EXPECT_EQ(result.ablation_all(), ABLATION_UNCHANGED);
}

TEST_F(WindowExchangeTest, WeightsBuffersAndSeveralResults) {
  const std::string reference = R"py(
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, 8)
        self.register_buffer("calls", torch.zeros(1))
    def forward(self, x, scale):
        self.calls += 1
        return {"y": self.linear(x) * scale, "n": [x.shape[0], self.calls.clone()]}
def get_inputs(): return [torch.randn(4, 16), 2.5]
def get_init_inputs(): return [16]
)py";
  ExecRequest request = MakeExecRequest(
      absl::StrReplaceAll(reference, {{"class Model(", "class ModelNew("}}), reference);
  const ExecResult result = RunBoth(request);
  EXPECT_TRUE(result.correct()) << result.outcome().message();
  request.set_candidate_source(
      absl::StrReplaceAll(request.candidate_source(), {{"self.calls += 1", "pass"}}));
  EXPECT_EQ(RunBoth(request).mismatch().kind(), "value");
}

TEST_F(WindowExchangeTest, Probes) {
  ExecRequest request = MakeExecRequest("");
  request.set_reference_only(true);
  request.set_probe_task(true);
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST}) {
    request.set_rules(rules);
    EXPECT_EQ(RunBoth(request).probes_size(), 8);
  }
}

TEST_F(WindowExchangeTest, CandidatesOfOneTaskShareItsReferenceProcess) {
  const auto before = backends_[1]->reference_counts();
  ExecRequest request = MakeExecRequest(kSoftmaxCandidate);
  request.set_seed(77);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(RunOrFail(backends_[1], request).outcome().reason(), Outcome::OK);
  }
  EXPECT_EQ(backends_[1]->reference_counts().runs - before.runs, 1);
}

TEST_F(WindowExchangeTest, ABrokenReferenceIsToldAsBefore) {
  const std::string broken =
      absl::StrReplaceAll(kSoftmaxReference, {{"torch.softmax", "torch.no"}});
  EXPECT_EQ(RunBoth(MakeExecRequest(kSoftmaxCandidate, broken)).outcome().reason(),
            Outcome::REFERENCE_FAILED);
}

}  // namespace
}  // namespace tritonrl
