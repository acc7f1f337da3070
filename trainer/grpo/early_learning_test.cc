// The thread that learns early, between samples as they end and the learner.
#include "trainer/grpo/early_learning.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "trainer/grpo/rl_batch_builder.h"
#include "trainer/random_rl_batch.h"
#include "trainer/tiny_policy_fixture.h"

namespace tritonrl {
namespace {

constexpr int kGroups = 6, kGroupSize = 3;

class EarlyLearningTest : public TinyPolicyFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(TinyPolicyFixture::SetUp());
    parts_.config.mutable_optimizer()->set_beta1(0);  // the first moment then is the gradient
    parts_.config.mutable_optimizer()->set_clip_norm(0);
    parts_.policy = policy_;
    parts_.learner_stream.emplace(policy_.device());
    MakeLearner(/*early=*/true);
    MakeSamples();
  }

  void MakeLearner(bool early) {
    LearnerOptions options;
    options.objective = parts_.config.objective();
    options.optimizer = parts_.config.optimizer();
    options.micro_batch_tokens = 60;
    options.early_groups = early ? kGroups : 0;
    parts_.optimizer = std::make_unique<AdamW>(options.optimizer, policy_.weights);
    parts_.learner =
        std::make_unique<Learner>(options, &parts_.policy, parts_.optimizer.get(), ranks_.get());
  }

  // What the engine and the verifier will say.
  void MakeSamples() {
    const RlBatch random = RandomRlBatch(8, kGroups, kGroupSize);
    for (int g = 0; g < kGroups; ++g) {
      auto task = std::make_shared<PreparedTask>();
      task->task.id = random[g].task_id;
      SampleGroup& group = judged_.groups.emplace_back();
      group.slot = g;
      for (const RlSample& s : random[g].samples) {
        task->tokens = s.prompt;
        JudgedSample& judged = group.samples.emplace_back();
        judged.sample.tokens = s.response;
        judged.sample.log_probs = s.old_log_probs;
        judged.plan_end = s.plan_end;
        judged.generated = judged.judged = true;
        Verdict& verdict = judged.verdict;
        verdict.mutable_syntax()->set_outcome(SyntaxResult::OK);
        verdict.mutable_functionality()->set_outcome(FunctionalityResult::OK);
        verdict.mutable_compiled()->set_outcome(CompiledResult::OK);
        if (s.reward_correct == 0) continue;
        verdict.mutable_correct()->set_outcome(CorrectResult::OK);
        verdict.mutable_speedup()->set_outcome(SpeedupResult::OK);
        verdict.mutable_speedup()->set_speedup(s.reward_speedup);
      }
      group.task = std::move(task);
    }
  }

  // As all was when so many tokens of each sample had been drawn: a group is complete so long after
  // its last one.
  void Go(int time, const std::vector<int>& delays, SampleBatch* batch) const {
    batch->groups.resize(kGroups);
    for (int g = 0; g < kGroups; ++g) {
      const SampleGroup& all = judged_.groups[g];
      int longest = 0;
      for (const JudgedSample& judged : all.samples) {
        longest = std::max(longest, static_cast<int>(judged.sample.tokens.size()));
      }
      SampleGroup& group = batch->groups[g];
      group = all;
      group.longest = std::make_shared<std::atomic<int>>(std::min(time, longest));
      if (time < longest + delays[g]) group.samples.assign(kGroupSize, JudgedSample());
    }
  }

  RunParts parts_;
  SampleBatch judged_;
};

TEST_F(EarlyLearningTest, WhicheverIsThereFirstTheUpdateIsTheSame) {
  const std::vector<std::vector<int>> cases = {
      {0, 0, 0, 0, 0, 0}, {9, 0, 4, 0, 20, 1}, {100, 100, 100, 100, 100, 100}};
  std::vector<at::Tensor> gradients;
  for (const std::vector<int>& delays : cases) {
    GoToStart();
    MakeLearner(true);
    SampleBatch batch;
    Go(0, delays, &batch);
    EarlyLearning early(0, &batch, &parts_);
    for (int time = 0; time <= 50; ++time) {
      Go(time, delays, &batch);
      early.Advance();
    }
    EXPECT_TRUE(policy_.weights->flat().equal(start_));
    Go(1000, delays, &batch);
    const auto stats = early.Finish();
    ASSERT_TRUE(stats.ok()) << stats.status();
    EXPECT_EQ(stats->optimizer_steps, 1);
    EXPECT_LE(early.early().samples, delays[0] == 100 ? 0 : stats->samples);
    gradients.push_back(parts_.optimizer->first_moment().clone());
    EXPECT_TRUE(gradients.back().equal(gradients.front()));  // to the bit
  }
  GoToStart();
  MakeLearner(false);
  const auto stats = parts_.learner->Learn(BuildRlBatch(judged_, parts_.config.objective()), 0);
  ASSERT_TRUE(stats.ok()) << stats.status();
  const at::Tensor whole = parts_.optimizer->first_moment();
  const double norm = whole.norm().item<double>();
  EXPECT_GT(norm, 1e-3);
  EXPECT_LT(gradients[0].sub(whole).norm().item<double>(), 1e-6 * norm);
}

TEST_F(EarlyLearningTest, AnErrorInTheThreadComesOut) {
  judged_.groups[2].samples[1].sample.log_probs.pop_back();
  SampleBatch batch;
  Go(1000, std::vector<int>(kGroups), &batch);
  EarlyLearning early(0, &batch, &parts_);
  early.Advance();
  for (int i = 0; i < 1000 && early.status().ok(); ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_TRUE(absl::StrContains(early.status().message(), "sample 1 of task task2"))
      << early.status();
  EXPECT_EQ(early.Finish().status(), early.status());
  EXPECT_TRUE(policy_.weights->flat().equal(start_));
}

TEST_F(EarlyLearningTest, AStepThatIsNotFinishedIsNotLearned) {
  SampleBatch batch;
  Go(1000, {0, 0, 0, 0, 5000, 0}, &batch);
  {
    EarlyLearning early(0, &batch, &parts_);
    early.Advance();
  }
  EXPECT_TRUE(policy_.weights->flat().equal(start_));
  EXPECT_EQ(parts_.optimizer->updates(), 0);
  // Nor does the next step have anything of it.
  SampleBatch whole;
  Go(1000, std::vector<int>(kGroups), &whole);
  const auto next_step = [&] {
    EarlyLearning early(1, &whole, &parts_);
    const auto stats = early.Finish();
    EXPECT_TRUE(stats.ok()) << stats.status();
    return parts_.optimizer->first_moment().clone();
  };
  const at::Tensor behind = next_step();
  GoToStart();
  MakeLearner(true);
  EXPECT_TRUE(next_step().equal(behind));
}

}  // namespace
}  // namespace tritonrl
