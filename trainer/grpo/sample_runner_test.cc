// The runner with a fake engine, the real verifier and a scripted device backend.
#include "trainer/grpo/sample_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "rollout/testing/fake_engine.h"
#include "trainer/grpo/evaluator.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/testing/test_model.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;
using Stage = SampleRunner::Stage;

// A program that the linter accepts; `mark` selects the result of MarkedBackend.
std::string Program(const std::string& mark) {
  return absl::StrCat(
      "import torch\nimport triton\nimport triton.language as tl\n\n"
      "@triton.jit\ndef kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
      "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
      "    x = tl.load(x_ptr + i, mask=i < n)\n"
      "    tl.store(y_ptr + i, x * x, mask=i < n)\n\n"
      "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        # ",
      mark,
      "\n"
      "        y = torch.empty_like(x)\n"
      "        kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)\n"
      "        return y\n");
}

std::string Response(const std::string& mark) {
  return absl::StrCat("<think>fuse mul relu in one kernel, block 256</think>\n```python\n",
                      Program(mark), "```\n<|endoftext|>");
}

// GOOD: correct, speedup 3. SLOW: correct, 0.5. WRONG: mismatch. LOST: an infrastructure error.
class MarkedBackend : public DeviceBackend {
 public:
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time) override {
    ++runs;
    if (block != nullptr) block->WaitForNotificationWithTimeout(absl::Seconds(30));
    const std::string& code = request.candidate_source();
    ExecResult result;
    result.set_modelled(true);
    if (absl::StrContains(code, "LOST")) {
      SetOutcome(Outcome::WORKER_LOST, "", result.mutable_outcome());
      result.mutable_outcome()->set_message("the worker was lost");
      return result;
    }
    result.set_compiled(true);
    auto* launch = result.add_launches();
    launch->set_name("kernel");
    launch->add_grid(1);
    result.set_trials_run(5);
    if (absl::StrContains(code, "WRONG")) {
      SetOutcome(Outcome::MISMATCH, "", result.mutable_outcome());
      result.set_correct(false);
      result.mutable_outcome()->set_message("output differs");
      return result;
    }
    const double speedup = absl::StrContains(code, "GOOD") ? 3.0 : 0.5;
    SetOutcome(Outcome::OK, "", result.mutable_outcome());
    result.set_correct(true);
    result.set_reference_seconds(speedup * 1e-5);
    result.set_candidate_seconds(1e-5);
    result.set_speedup(speedup);
    return result;
  }
  int concurrency() const override { return 2; }
  std::string name() const override { return "native"; }
  bool modelled() const override { return true; }
  std::string sandbox_description() const override { return "test"; }

  std::atomic<int> runs{0};
  absl::Notification* block = nullptr;
};

class SampleRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = MakeTempDirectory("runner").value();
    WriteTinyModel(dir_);
    tokenizer_ = std::make_unique<Tokenizer>(Tokenizer::Load(dir_ + "/tokenizer.json").value());
    auto task = std::make_shared<PreparedTask>();
    task->task.id = "level1/1_square";
    task->task.source =
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x * x\ndef get_inputs():\n    return [torch.randn(8)]\n"
        "def get_init_inputs():\n    return []\n";
    task->prompt = "square";
    task->tokens = tokenizer_->Encode("square");
    task_ = task;
    VerifierOptions options;
    options.cache = false;
    options.max_attempts = 1;
    verifier_ = std::make_unique<Verifier>(options, &backend_, nullptr);
    ASSERT_TRUE(verifier_->Open().ok());
    engine_ = std::make_unique<FakeEngine>([this](const GenerateRequest&, int index) {
      return tokenizer_->Encode(Response(marks_[index % marks_.size()]));
    });
    infra_errors_ = InfraErrorJournal::Open(dir_ + "/infra_errors.jsonl").value();
    MakeRunner();
  }
  void TearDown() override {
    if (backend_.block != nullptr && !backend_.block->HasBeenNotified()) backend_.block->Notify();
    runner_.reset();
    verifier_.reset();
    EXPECT_TRUE(RemoveTree(dir_).ok());
  }
  void MakeRunner() {
    runner_ = std::make_unique<SampleRunner>(engine_.get(), verifier_.get(), tokenizer_.get(),
                                             style_, infra_errors_.get());
  }
  std::shared_ptr<SampleBatch> Batch(int groups) const {
    auto batch = std::make_shared<SampleBatch>();
    batch->name = "step 1";
    for (int g = 0; g < groups; ++g) {
      SampleGroup group;
      group.task = task_;
      group.slot = g;
      group.sampling.max_tokens = 4000;
      group.sampling.stop_ids = {258};
      batch->groups.push_back(group);
    }
    return batch;
  }
  absl::Status Wait(const std::shared_ptr<SampleBatch>& batch, Stage stage) {
    return runner_->Wait(batch, stage, absl::Now() + absl::Seconds(60), [] { return true; });
  }

  std::string dir_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const PreparedTask> task_;
  std::vector<std::string> marks_ = {"GOOD", "SLOW", "WRONG", "LOST"};
  ResponseStyle style_;
  MarkedBackend backend_;
  std::unique_ptr<Verifier> verifier_;
  std::unique_ptr<FakeEngine> engine_;
  std::unique_ptr<InfraErrorJournal> infra_errors_;
  std::unique_ptr<SampleRunner> runner_;
};

TEST_F(SampleRunnerTest, VerifiesEverySampleAndLeavesOutInfraErrors) {
  auto batch = Batch(2);
  ASSERT_TRUE(runner_->Start(batch, 4).ok());
  ASSERT_TRUE(Wait(batch, Stage::kVerified).ok());
  EXPECT_EQ(batch->num_samples, 8);
  EXPECT_EQ(batch->infra_errors, 2);
  EXPECT_GE(batch->all_verified, batch->all_generated);
  const auto& samples = batch->groups[1].samples;
  EXPECT_TRUE(IsCorrect(samples[0].verdict)) << samples[0].verdict.DebugString();
  EXPECT_EQ(samples[0].plan_kind, PlanKind::kFused);
  EXPECT_EQ(samples[2].verdict.outcome().reason(), Outcome::MISMATCH);
  EXPECT_TRUE(IsInfraError(samples[3].verdict));

  // Rewards: plan = clipped speedup, code = correct; the lost sample has no effect.
  const RlBatch rl = BuildRlBatch(*batch, ObjectiveConfig());
  ASSERT_EQ(rl.size(), 2);
  const std::vector<RlSample>& group = rl[0].samples;
  EXPECT_EQ(rl[0].counted(), 3);
  EXPECT_EQ(group[0].reward_plan, 2.0);
  EXPECT_EQ(group[1].reward_plan, 0.5);
  EXPECT_EQ(group[2].reward_code, 0.0);
  EXPECT_NEAR(group[0].advantage_plan, 2.0 - 2.5 / 3, 1e-12);
  EXPECT_NEAR(group[1].advantage_code, 1.0 - 2.0 / 3, 1e-12);
  EXPECT_FALSE(group[3].counted);
  EXPECT_EQ(group[3].advantage_code, 0.0);
  EXPECT_EQ(group[0].old_log_probs.size(), group[0].response.size());
  // The plan ends with </think> (token 257).
  EXPECT_EQ(group[0].response[group[0].plan_end - 1], 257);
  EXPECT_THAT(FirstInfraError(*batch), HasSubstr("level1/1_square"));
}

// One style for the split of the tokens, the verdict and the record.
TEST_F(SampleRunnerTest, APlainPolicyNeedsNoPlan) {
  runner_.reset();
  engine_ = std::make_unique<FakeEngine>([this](const GenerateRequest&, int) {
    return tokenizer_->Encode(absl::StrCat("Here it is.\n```python\n", Program("GOOD"),
                                           "```\nUse it so:\n```python\nModelNew()\n```\n"));
  });
  MakeRunner();
  auto thinking = Batch(1);
  ASSERT_TRUE(runner_->Start(thinking, 1).ok());
  ASSERT_TRUE(Wait(thinking, Stage::kVerified).ok());
  const VerifiedSample& malformed = thinking->groups[0].samples[0];
  EXPECT_EQ(malformed.verdict.outcome().reason(), Outcome::NO_CODE);
  EXPECT_EQ(malformed.plan_end, malformed.sample.tokens.size());

  style_ = {.plan = ResponseStyle::Plan::kPlain, .code_block = ResponseStyle::CodeBlock::kFirst};
  MakeRunner();
  auto plain = Batch(1);
  ASSERT_TRUE(runner_->Start(plain, 1).ok());
  ASSERT_TRUE(Wait(plain, Stage::kVerified).ok());
  const VerifiedSample& good = plain->groups[0].samples[0];
  EXPECT_TRUE(IsCorrect(good.verdict)) << good.verdict.DebugString();
  EXPECT_EQ(good.plan_end, std::string("Here it is.\n").size());  // a token for each byte
  const std::string text = RecordsToText(MakeRecords(*plain, nullptr));
  EXPECT_THAT(text, HasSubstr("\"response_style\":\"plain\",\"code_block\":\"first\""));
  EXPECT_EQ(MergeRecords({text}).value()[0].style, style_);
}

TEST_F(SampleRunnerTest, DrawsAreKeyedBySlotAndStep) {
  auto batch = Batch(2);
  batch->seed = 11;
  batch->step = 7;
  ASSERT_TRUE(runner_->Start(batch, 1).ok());
  ASSERT_TRUE(Wait(batch, Stage::kVerified).ok());
  const auto requests = engine_->Requests();
  ASSERT_EQ(requests.size(), 2);
  EXPECT_EQ(requests[0].key.run_seed, 11);
  EXPECT_EQ(requests[0].key.step, 7);
  EXPECT_NE(requests[0].key.task,
            requests[1].key.task);  // a task drawn twice gets different samples
}

TEST_F(SampleRunnerTest, VerificationBeginsBeforeGenerationEnds) {
  absl::Notification block;
  backend_.block = &block;
  auto batch = Batch(1);
  ASSERT_TRUE(runner_->Start(batch, 3).ok());
  // The backend blocks on the first sample while the other samples are taken from the engine.
  ASSERT_TRUE(Wait(batch, Stage::kGenerated).ok());
  EXPECT_EQ(batch->verified, 0);
  block.Notify();
  ASSERT_TRUE(Wait(batch, Stage::kVerified).ok());
}

TEST_F(SampleRunnerTest, WaitEndsAtItsDeadlineAndOnRequest) {
  engine_->Hold(true);
  auto batch = Batch(1);
  ASSERT_TRUE(runner_->Start(batch, 3).ok());
  const absl::Status late = runner_->Wait(
      batch, Stage::kVerified, absl::Now() + absl::Milliseconds(50), [] { return true; });
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(late), HasSubstr("step 1: 3 samples not generated"));
  EXPECT_TRUE(absl::IsCancelled(
      runner_->Wait(batch, Stage::kVerified, absl::InfiniteFuture(), [] { return false; })));
  engine_->Hold(false);
  runner_->Abandon();
  EXPECT_EQ(engine_->Outstanding(), 0);
}

TEST_F(SampleRunnerTest, AnEngineThatFailsIsAnError) {
  auto batch = Batch(1);
  engine_->Hold(true);
  ASSERT_TRUE(runner_->Start(batch, 1).ok());
  engine_->Fail(absl::ResourceExhaustedError("out of memory"));
  EXPECT_THAT(Message(Wait(batch, Stage::kVerified)), HasSubstr("out of memory"));
}

TEST_F(SampleRunnerTest, AResumedRunLeavesOutTheSameSamples) {
  auto batch = Batch(1);
  ASSERT_TRUE(runner_->Start(batch, 4).ok());
  ASSERT_TRUE(Wait(batch, Stage::kVerified).ok());
  ASSERT_TRUE(infra_errors_->Commit().ok());
  // A partial line, as after a kill.
  ASSERT_TRUE(AppendToFile(dir_ + "/infra_errors.jsonl", "{\"key\":\"st").ok());
  infra_errors_ = InfraErrorJournal::Open(dir_ + "/infra_errors.jsonl").value();
  marks_[3] = "GOOD";  // would be correct this time
  MakeRunner();
  auto again = Batch(1);
  ASSERT_TRUE(runner_->Start(again, 4).ok());
  ASSERT_TRUE(Wait(again, Stage::kVerified).ok());
  EXPECT_TRUE(IsInfraError(again->groups[0].samples[3].verdict));
  // Samples of another step are verified normally.
  auto next = Batch(1);
  next->name = "step 2";
  ASSERT_TRUE(runner_->Start(next, 4).ok());
  ASSERT_TRUE(Wait(next, Stage::kVerified).ok());
  EXPECT_TRUE(IsCorrect(next->groups[0].samples[3].verdict));
}

TEST_F(SampleRunnerTest, EvaluationGathersFiguresAndRecordsSurviveTheFile) {
  auto ranks = ProcessGroup::Join(absl::Seconds(10)).value();
  EvaluatorOptions options;
  options.samples = 4;
  options.sampling.max_tokens = 4000;
  options.sampling.stop_ids = {258};
  Evaluator evaluator(options, {task_}, runner_.get(), ranks.get());
  auto pending = evaluator.Start(5);
  ASSERT_TRUE(pending.ok()) << pending.status();
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  ASSERT_TRUE(evaluator.WaitGenerated(*pending, deadline, [] { return true; }).ok());
  ASSERT_TRUE(evaluator.WaitVerified(*pending, deadline, [] { return true; }).ok());
  const auto finished = evaluator.Gather(*pending);
  ASSERT_TRUE(finished.ok()) << finished.status();
  const EvaluationResult& result = finished->result;
  EXPECT_EQ(result.step, 5);
  EXPECT_EQ(result.infra_errors, 1);
  EXPECT_NEAR(result.pass_at.at(1).correct, 2.0 / 3, 1e-9);
  EXPECT_EQ(result.pass_at.at(3).correct, 1.0);
  EXPECT_EQ(result.pass_at.count(4), 0);  // one of the four was left out
  EXPECT_EQ(result.fused_share, 1.0);
  EXPECT_TRUE(result.has_greedy);
  EXPECT_EQ(result.greedy.correct, 1.0);
  for (const auto& request : engine_->Requests()) {
    EXPECT_EQ(request.sampling.temperature, request.n == 1 ? 0.0 : 1.0);
  }

  const std::string text = RecordsToText(finished->sampled);
  const auto merged = MergeRecords({text});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(RecordsToText(*merged), text);
  EXPECT_EQ((*merged)[0].prompt, "square");
  EXPECT_EQ((*merged)[0].plan_kind, PlanKind::kFused);
  EXPECT_TRUE(IsCorrect((*merged)[0].verdict));
}

TEST_F(SampleRunnerTest, KeptSamplesAreNotGeneratedAgain) {
  marks_ = {"GOOD", "SLOW", "WRONG"};
  const std::string path = dir_ + "/generated.jsonl";
  auto journal = SampleJournal::Open(path, "run", "").value();
  runner_->KeepSamples(journal.get());
  const auto first = Batch(2);
  ASSERT_TRUE(runner_->Start(first, 3).ok());
  ASSERT_TRUE(Wait(first, Stage::kVerified).ok());
  ASSERT_EQ(engine_->Requests().size(), 2);

  // The second sample of the first group is lost, as after a kill in its line.
  std::vector<std::string> lines = absl::StrSplit(*ReadFile(path), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 6);
  lines.erase(lines.begin() + 1);
  runner_.reset();
  journal.reset();
  ASSERT_TRUE(WriteFileAtomic(path, absl::StrJoin(lines, "\n") + "\n{\"key\"").ok());
  journal = SampleJournal::Open(path, "run", "").value();
  MakeRunner();
  runner_->KeepSamples(journal.get());
  const auto second = Batch(2);
  ASSERT_TRUE(runner_->Start(second, 3).ok());
  ASSERT_TRUE(Wait(second, Stage::kVerified).ok());
  ASSERT_EQ(engine_->Requests().size(), 3);
  EXPECT_EQ(engine_->Requests()[2].first_index, 1);
  EXPECT_EQ(engine_->Requests()[2].n, 1);
  for (int g = 0; g < 2; ++g) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(second->groups[g].samples[i].text, first->groups[g].samples[i].text);
      EXPECT_EQ(second->groups[g].samples[i].plan_end, first->groups[g].samples[i].plan_end);
    }
  }

  // Samples of another run are not used.
  journal.reset();
  journal = SampleJournal::Open(path, "another run", "").value();
  MakeRunner();
  runner_->KeepSamples(journal.get());
  const auto third = Batch(1);
  ASSERT_TRUE(runner_->Start(third, 3).ok());
  EXPECT_EQ(engine_->Requests().size(), 4);
  ASSERT_TRUE(Wait(third, Stage::kVerified).ok());
  journal.reset();
  ASSERT_TRUE(AppendToFile(path, "{}\n").ok());
  EXPECT_THAT(Message(SampleJournal::Open(path, "run", "").status()),
              HasSubstr(path + ", line 10 is no sample; remove the line"));
  runner_.reset();
}

// RLIMIT_FSIZE simulates a full disk.
TEST_F(SampleRunnerTest, WithoutRoomNothingIsGeneratedThatCannotBeKept) {
  marks_ = {"GOOD"};
  const std::string path = dir_ + "/generated.jsonl";
  const auto journal = SampleJournal::Open(path, "run", "").value();
  runner_->KeepSamples(journal.get());
  const auto batch = Batch(3);
  // A sample may take 512 bytes and 8 for each of its 4000 tokens.
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {.rlim_cur = 34000, .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status started = runner_->Start(batch, 1);
  const absl::Status full = started.ok() ? Wait(batch, Stage::kVerified) : started;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(Message(full), "cannot write " + path +
                               ": File too large; it needs room for 32.5 kB; make room there and "
                               "run the same command again");
  const std::string kept = *ReadFile(path);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), batch->generated);
  EXPECT_EQ(batch->verified, batch->generated) << "what is generated is verified";
  EXPECT_EQ(engine_->Requests().size(), batch->generated);
  EXPECT_GT(batch->generated, 0);
  EXPECT_LT(batch->generated, 3);
  runner_.reset();
}

}  // namespace
}  // namespace tritonrl
