#include "verify/pipeline/verifier.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "exec/testing/scripted_backend.h"
#include "gtest/gtest.h"
#include "verify/judge/judge.h"
#include "verify/testing/honest_program.h"
#include "verify/verdict/verdict.h"
#include "verify/verdict/verdict_cache.h"

namespace tritonrl {
namespace {

VerifyRequest Request(const std::string& code, const std::string& key = "k") {
  return {.task = {.id = "level1/relu", .source = "class Model: pass"}, .code = code, .key = key};
}

class FakeJudge : public Judge {
 public:
  explicit FakeJudge(absl::StatusOr<JudgeOpinion> opinion) : opinion_(std::move(opinion)) {}
  absl::StatusOr<JudgeOpinion> Ask(const std::string&, const std::string&) override {
    ++asked;
    return opinion_;
  }
  std::string name() const override { return "fake judge"; }
  int asked = 0;

 private:
  absl::StatusOr<JudgeOpinion> opinion_;
};

TEST(VerifierTest, CheapLayersStopTheWalk) {
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1.5); });
  FakeJudge judge(JudgeOpinion{});
  Verifier verifier({}, &backend, &judge);
  EXPECT_EQ(verifier.Submit(Request("x = 1")).get().outcome().reason(), Outcome::NO_KERNEL);
  std::string cheat = HonestProgram();
  cheat.replace(cheat.find("return out"), 10, "return torch.relu(x)");
  EXPECT_EQ(verifier.Submit(Request(cheat)).get().failed_layer(), LAYER_FUNCTIONALITY);
  EXPECT_EQ(backend.calls(), 0);
  EXPECT_EQ(judge.asked, 0);
  const Verdict good = verifier.Submit(Request(HonestProgram(), "mine")).get();
  EXPECT_TRUE(IsCorrect(good));
  EXPECT_EQ(good.key(), "mine");
  EXPECT_EQ(good.task_id(), "level1/relu");
  EXPECT_EQ(good.backend(), "native");
  EXPECT_EQ(backend.calls(), 1);
  EXPECT_EQ(judge.asked, 1);
}

TEST(VerifierTest, SettingsReachTheBackend) {
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1.5); });
  VerifierOptions options;
  options.seed = 7;
  options.trials = 3;
  options.atol = 0.125;
  options.rtol = 0.25;
  options.run_limit = absl::Seconds(9);
  options.device_model = "l40s_mini";
  options.measure_time = false;
  options.rules = RULES_ROBUST;
  Verifier verifier(options, &backend, nullptr);
  EXPECT_NE(verifier.settings().find("mode robust"), std::string::npos);
  EXPECT_EQ(Verifier({}, &backend, nullptr).settings().find("mode"), std::string::npos);
  const Verdict v = verifier.Submit(Request(HonestProgram())).get();
  const ExecRequest request = backend.requests().at(0);
  EXPECT_EQ(request.seed(), 7u);
  EXPECT_EQ(request.trials(), 3);
  EXPECT_DOUBLE_EQ(request.atol(), 0.125);
  EXPECT_DOUBLE_EQ(request.rtol(), 0.25);
  EXPECT_DOUBLE_EQ(request.limits().wall_seconds(), 9);
  EXPECT_EQ(request.device_model(), "l40s_mini");
  EXPECT_EQ(request.rules(), RULES_ROBUST);
  EXPECT_TRUE(request.skip_timing());
  EXPECT_EQ(request.reference_source(), "class Model: pass");
  EXPECT_TRUE(IsCorrect(v));
  EXPECT_DOUBLE_EQ(SpeedupOf(v), 0);
}

TEST(VerifierTest, InfraErrorsAreRetriedUpToTheBound) {
  ScriptedBackend flaky([calls = 0](const ExecRequest&, absl::Time) mutable {
    return calls++ < 2 ? BadResult(Outcome::WORKER_LOST, "gone") : GoodResult(1.5);
  });
  {
    Verifier verifier({}, &flaky, nullptr);
    EXPECT_TRUE(IsCorrect(verifier.Submit(Request(HonestProgram())).get()));
    EXPECT_EQ(flaky.calls(), 3);
    EXPECT_EQ(verifier.counts().retries, 2);
  }
  ScriptedBackend dead(
      [](const ExecRequest&, absl::Time) { return BadResult(Outcome::WORKER_LOST, "gone"); });
  Verifier verifier({}, &dead, nullptr);
  const Verdict v = verifier.Submit(Request(HonestProgram())).get();
  EXPECT_EQ(v.outcome().reason(), Outcome::WORKER_LOST);
  EXPECT_EQ(v.attempts(), 3);
  EXPECT_EQ(dead.calls(), 3);
  EXPECT_EQ(verifier.counts().infra_errors, 1);
  // An infrastructure error is not cached: an equal request runs again.
  verifier.Submit(Request(HonestProgram())).get();
  EXPECT_EQ(dead.calls(), 6);
}

TEST(VerifierTest, ADoubtfulClockIsReadAgainAndAModelIsNot) {
  for (const bool modelled : {false, true}) {
    ScriptedBackend backend([modelled](const ExecRequest&, absl::Time) {
      ExecResult result = BadResult(Outcome::INCONCLUSIVE, "the clocks disagree");
      result.set_modelled(modelled);
      return result;
    });
    Verifier verifier({}, &backend, nullptr);
    const Verdict v = verifier.Submit(Request(HonestProgram())).get();
    EXPECT_EQ(v.outcome().reason(), Outcome::INCONCLUSIVE);
    EXPECT_EQ(backend.calls(), modelled ? 1 : 3);
  }
}

TEST(VerifierTest, HopelessFaultsAndCandidateFaultsAreNotRetried) {
  for (Outcome::Reason outcome :
       {Outcome::NOT_EXECUTABLE, Outcome::REFERENCE_FAILED, Outcome::TIMEOUT, Outcome::CRASHED}) {
    ScriptedBackend backend(
        [outcome](const ExecRequest&, absl::Time) { return BadResult(outcome, "no"); });
    Verifier verifier({}, &backend, nullptr);
    verifier.Submit(Request(HonestProgram())).get();
    EXPECT_EQ(backend.calls(), 1) << ReasonName(outcome);
  }
  ScriptedBackend refusing([](const ExecRequest&, absl::Time) -> absl::StatusOr<ExecResult> {
    return absl::InvalidArgumentError("bad field");
  });
  Verifier verifier({}, &refusing, nullptr);
  const Verdict v = verifier.Submit(Request(HonestProgram())).get();
  EXPECT_EQ(v.outcome().reason(), Outcome::INTERNAL_ERROR);
  EXPECT_EQ(v.outcome().message(), "bad field");
  EXPECT_EQ(refusing.calls(), 1);
}

TEST(VerifierTest, SilentJudgeIsAnInfraErrorAndAnObjectionFails) {
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1.5); });
  FakeJudge silent(absl::UnavailableError("no answer"));
  {
    Verifier verifier({}, &backend, &silent);
    const Verdict v = verifier.Submit(Request(HonestProgram())).get();
    EXPECT_EQ(v.outcome().reason(), Outcome::JUDGE_UNAVAILABLE);
    EXPECT_EQ(ResultOf(v, LAYER_JUDGE).reason(), Outcome::UNSPECIFIED);
  }
  FakeJudge strict(JudgeOpinion{.cheating = true, .rule = 2, .reason = "it only copies"});
  Verifier verifier({}, &backend, &strict);
  const Verdict v = verifier.Submit(Request(HonestProgram())).get();
  EXPECT_EQ(v.failed_layer(), LAYER_JUDGE);
  EXPECT_EQ(v.outcome().message(), "it only copies");
  EXPECT_FALSE(IsValid(v));
  EXPECT_FALSE(IsCorrect(v));
}

TEST(VerifierTest, ThePapersRulesLeaveOutFurtherChecks) {
  ScriptedBackend backend([](const ExecRequest& request, absl::Time) {
    if (request.task_id() == "delegates")  // refused whoever asks
      return BadResult(Outcome::RUNTIME_COMPUTE, "the operator mm computed in forward");
    ExecResult result = GoodResult(1.5);
    result.set_modelled(false);
    result.mutable_timing()->set_paper_speedup(1.5);
    result.set_ablation_all(ABLATION_UNCHANGED);
    return result;
  });
  EXPECT_EQ(Verifier({}, &backend, nullptr).Submit(Request(HonestProgram())).get().failed_layer(),
            LAYER_FUNCTIONALITY);
  VerifierOptions options;
  options.rules = RULES_PAPER;
  Verifier verifier(options, &backend, nullptr);
  EXPECT_NE(verifier.settings().find("rules paper"), std::string::npos);
  const Verdict v = verifier.Submit(Request(HonestProgram())).get();
  EXPECT_TRUE(IsCorrect(v)) << v.ShortDebugString();
  EXPECT_TRUE(v.speedup().mean_of_calls());
  EXPECT_EQ(SpeedupOf(v), 1.5);
  EXPECT_EQ(SpeedupLowOf(v), 1.5);  // there is no interval
  const ExecRequest request = backend.requests().at(1);
  EXPECT_EQ(request.rules(), RULES_PAPER);
  EXPECT_TRUE(request.skip_ablation());
  // Who computes is asked all the same, by linter and run.
  EXPECT_FALSE(request.torch_may_compute());
  std::string cheat = HonestProgram();
  cheat.replace(cheat.find("return out"), 10, "return torch.relu(x)");
  EXPECT_EQ(verifier.Submit(Request(cheat)).get().failed_layer(), LAYER_FUNCTIONALITY);
  VerifyRequest delegates = Request(HonestProgram());
  delegates.task.id = "delegates";
  EXPECT_EQ(verifier.Submit(delegates).get().outcome().reason(), Outcome::RUNTIME_COMPUTE);
  options.check_functionality = false;
  Verifier off(options, &backend, nullptr);
  EXPECT_TRUE(IsCorrect(off.Submit(Request(cheat)).get()));
  EXPECT_TRUE(backend.requests().back().torch_may_compute());
}

TEST(VerifierTest, ByThePapersRulesTheJudgeDecidesOnEveryCandidateOfTheLinter) {
  for (const Outcome::Reason reason : {Outcome::MISMATCH, Outcome::COMPILE_ERROR, Outcome::OK}) {
    ScriptedBackend backend([reason](const ExecRequest&, absl::Time) {
      ExecResult result = reason == Outcome::OK ? GoodResult(1.5) : BadResult(reason, "wrong");
      if (result.launches().empty()) result.add_launches()->set_name("relu_kernel");
      return result;
    });
    FakeJudge objects(JudgeOpinion{.cheating = true, .rule = 2, .reason = "it only copies"});
    VerifierOptions options;
    options.rules = RULES_PAPER;
    Verifier verifier(options, &backend, &objects);
    const Verdict v = verifier.Submit(Request(HonestProgram())).get();
    EXPECT_EQ(objects.asked, 1) << ReasonName(reason);
    EXPECT_FALSE(IsValid(v)) << ReasonName(reason);
    EXPECT_FALSE(IsCompiled(v)) << ReasonName(reason);
    EXPECT_EQ(v.failed_layer(), LAYER_JUDGE) << ReasonName(reason);
    EXPECT_EQ(v.outcome().message(), "it only copies");
    EXPECT_EQ(verifier.Submit(Request("x = 1")).get().failed_layer(), LAYER_SYNTAX);
    EXPECT_EQ(objects.asked, 1);  // the linter had refused it
    // By the strict rules only a correct candidate is judged.
    FakeJudge other(JudgeOpinion{.cheating = true, .rule = 2, .reason = "it only copies"});
    Verifier strict({}, &backend, &other);
    strict.Submit(Request(HonestProgram())).get();
    EXPECT_EQ(other.asked, reason == Outcome::OK ? 1 : 0) << ReasonName(reason);
  }
}

TEST(VerifierTest, EqualProgramsAreRunOnceAndEachGetsItsKey) {
  absl::Notification go;
  ScriptedBackend backend([&go](const ExecRequest&, absl::Time) {
    go.WaitForNotification();
    return GoodResult(1.5);
  });
  Verifier verifier({}, &backend, nullptr);
  std::vector<std::future<Verdict>> futures;
  for (int i = 0; i < 8; ++i)
    futures.push_back(verifier.Submit(Request(HonestProgram(), absl::StrCat("key ", i))));
  go.Notify();
  for (int i = 0; i < 8; ++i) {
    const Verdict v = futures[i].get();
    EXPECT_EQ(v.key(), absl::StrCat("key ", i));
    EXPECT_EQ(v.from_cache(), i > 0);
  }
  EXPECT_TRUE(verifier.Submit(Request(HonestProgram(), "later")).get().from_cache());
  EXPECT_EQ(backend.calls(), 1);
  EXPECT_EQ(verifier.counts().cache_hits, 8);
  EXPECT_EQ(verifier.counts().finished, 9);
  // The same program for another task is a different request.
  VerifyRequest other = Request(HonestProgram());
  other.task.source = "class Model: x = 1";
  verifier.Submit(other).get();
  EXPECT_EQ(backend.calls(), 2);
}

TEST(VerifierTest, SeveralAreInFlightAndNoneIsMixedUp) {
  ScriptedBackend backend([](const ExecRequest& request, absl::Time) {
    // Makes overlapping runs more likely.
    std::this_thread::yield();
    const size_t digit = request.candidate_source().find("tag ") + 4;
    return GoodResult(1.0 + (request.candidate_source()[digit] - '0'));
  });
  VerifierOptions options;
  options.parallel = 4;
  Verifier verifier(options, &backend, nullptr);
  std::vector<std::future<Verdict>> futures;
  for (int i = 0; i < 40; ++i) {
    const std::string tag = absl::StrCat("tag ", i % 10, " ", i);
    futures.push_back(verifier.Submit(Request(HonestProgram(tag), absl::StrCat(i))));
  }
  for (int i = 0; i < 40; ++i) {
    const Verdict v = futures[i].get();
    EXPECT_EQ(v.key(), absl::StrCat(i));
    EXPECT_NEAR(SpeedupOf(v), 1.0 + i % 10, 1e-9);
  }
  EXPECT_LE(backend.max_running(), 4);
}

TEST(VerifierTest, ShutdownEndsEveryFuture) {
  absl::Notification started, go;
  ScriptedBackend backend([&](const ExecRequest&, absl::Time) {
    if (!started.HasBeenNotified()) started.Notify();
    go.WaitForNotification();
    return GoodResult(1.5);
  });
  std::vector<std::future<Verdict>> futures;
  VerifierOptions options;
  options.parallel = 1;
  auto verifier = std::make_unique<Verifier>(options, &backend, nullptr);
  for (int i = 0; i < 3; ++i)
    futures.push_back(verifier->Submit(Request(HonestProgram(absl::StrCat(i)))));
  started.WaitForNotification();
  std::thread closer([&] { verifier.reset(); });
  EXPECT_EQ(futures[1].get().outcome().reason(), Outcome::CANCELLED);
  EXPECT_EQ(futures[2].get().outcome().reason(), Outcome::CANCELLED);
  go.Notify();
  EXPECT_TRUE(IsCorrect(futures[0].get()));
  closer.join();
}

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("journal");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
    options_.journal = JoinPath(folder_, "verdicts.jsonl");
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  std::string folder_;
  VerifierOptions options_;
};

TEST_F(JournalTest, ReplaysVerdictsBitForBit) {
  ScriptedBackend backend([calls = 0](const ExecRequest&, absl::Time) mutable {
    return calls++ == 0 ? GoodResult(1.0 / 3.0) : BadResult(Outcome::TIMEOUT, "too slow");
  });
  std::vector<std::string> before;
  {
    Verifier verifier(options_, &backend, nullptr);
    ASSERT_TRUE(verifier.Open().ok());
    for (int i = 0; i < 2; ++i) {
      Verdict v = verifier.Submit(Request(HonestProgram(absl::StrCat(i)))).get();
      v.clear_from_cache();
      before.push_back(v.SerializeAsString());
    }
    EXPECT_TRUE(verifier.JournalStatus().ok());
  }
  // The incomplete last line of a crashed process.
  ASSERT_TRUE(AppendToFile(options_.journal, "{\"content_hash\":\"half").ok());
  Verifier verifier(options_, &backend, nullptr);
  ASSERT_TRUE(verifier.Open().ok());
  EXPECT_EQ(verifier.counts().replayed, 2);
  for (int i = 0; i < 2; ++i) {
    Verdict v = verifier.Submit(Request(HonestProgram(absl::StrCat(i)))).get();
    EXPECT_TRUE(v.from_cache());
    v.clear_from_cache();
    EXPECT_EQ(v.SerializeAsString(), before[i]);
  }
  EXPECT_EQ(backend.calls(), 2);
  verifier.Submit(Request(HonestProgram("new"))).get();
  const std::string journal = *ReadFile(options_.journal);
  EXPECT_EQ(std::count(journal.begin(), journal.end(), '\n'), 3);
  EXPECT_EQ(journal.find("half"), std::string::npos);
}

TEST_F(JournalTest, OtherSettingsDoNotReuseVerdicts) {
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1.5); });
  {
    Verifier verifier(options_, &backend, nullptr);
    ASSERT_TRUE(verifier.Open().ok());
    verifier.Submit(Request(HonestProgram())).get();
  }
  options_.trials = 2;
  Verifier verifier(options_, &backend, nullptr);
  ASSERT_TRUE(verifier.Open().ok());
  EXPECT_FALSE(verifier.Submit(Request(HonestProgram())).get().from_cache());
  EXPECT_EQ(backend.calls(), 2);
}

TEST_F(JournalTest, BrokenMiddleLineIsNamed) {
  ASSERT_TRUE(WriteFileAtomic(options_.journal,
                              "{\"content_hash\":\"a\"}\ngarbage\n{\"content_hash\":\"b\"}\n")
                  .ok());
  VerdictCache cache(options_.journal);
  const auto opened = cache.Open();
  ASSERT_FALSE(opened.ok());
  const std::string message(opened.status().message());
  EXPECT_NE(message.find("verdicts.jsonl, line 2"), std::string::npos) << message;
}

TEST_F(JournalTest, UnwritableJournalIsReportedAndVerdictsStillCome) {
  options_.journal = JoinPath(folder_, "missing/folder/verdicts.jsonl");
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1.5); });
  Verifier verifier(options_, &backend, nullptr);
  ASSERT_TRUE(verifier.Open().ok());
  EXPECT_TRUE(IsCorrect(verifier.Submit(Request(HonestProgram())).get()));
  const std::string message(verifier.JournalStatus().message());
  EXPECT_NE(message.find("missing/folder/verdicts.jsonl"), std::string::npos) << message;
}

TEST(VerifierTest, ResponsesAreSplitAndMalformedOnesFailSyntax) {
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1.5); });
  Verifier verifier({}, &backend, nullptr);
  VerifyRequest request = Request("");
  request.response =
      absl::StrCat("<think>one kernel</think>\n```python\n", HonestProgram(), "```\n");
  EXPECT_TRUE(IsCorrect(verifier.Submit(request).get()));
  request.response = "<think>one kernel</think> I cannot";
  const Verdict v = verifier.Submit(request).get();
  EXPECT_EQ(v.failed_layer(), LAYER_SYNTAX);
  EXPECT_EQ(v.outcome().reason(), Outcome::NO_CODE);
  EXPECT_EQ(backend.calls(), 1);
}

TEST(VerifierTest, AResponseIsReadInTheStyleOfItsRequest) {
  ScriptedBackend backend([](const ExecRequest&, absl::Time) { return GoodResult(1.5); });
  Verifier verifier({}, &backend, nullptr);
  VerifyRequest request = Request("");
  request.response = absl::StrCat("```python\n", HonestProgram(), "```\n```python\nx = 1\n```\n");
  EXPECT_EQ(verifier.Submit(request).get().outcome().reason(), Outcome::NO_CODE);
  request.style = {.plan = ResponseStyle::Plan::kPlain,
                   .code_block = ResponseStyle::CodeBlock::kFirst};
  EXPECT_TRUE(IsCorrect(verifier.Submit(request).get()));
}

TEST(VerifierTest, ClosedItFinishesWhatRunsAndBeginsNothing) {
  absl::Notification begun, go_on;
  ScriptedBackend backend([&](const ExecRequest&, absl::Time) {
    if (!begun.HasBeenNotified()) begun.Notify();
    go_on.WaitForNotificationWithTimeout(absl::Seconds(20));
    return GoodResult(2);
  });
  VerifierOptions options;
  options.parallel = 1;
  Verifier verifier(options, &backend, nullptr);
  const auto submit = [&verifier](const std::string& tag) {
    return verifier.Submit({.task = {.id = "t", .source = "r"}, .code = HonestProgram(tag)});
  };
  std::future<Verdict> runs = submit("runs");
  begun.WaitForNotification();
  std::future<Verdict> waits = submit("waits");
  verifier.Close();
  EXPECT_EQ(waits.get().outcome().reason(), Outcome::CANCELLED);
  EXPECT_EQ(submit("comes late").get().outcome().reason(), Outcome::CANCELLED);
  go_on.Notify();
  EXPECT_TRUE(IsCorrect(runs.get()));
  EXPECT_EQ(backend.calls(), 1);
}

}  // namespace
}  // namespace tritonrl
