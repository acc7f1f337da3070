#include "trainer/config/config.h"

#include "base/file.h"
#include "gtest/gtest.h"
#include "trainer/config/text_proto.h"

namespace tritonrl {
namespace {

std::string Text(const absl::Status& status) { return std::string(status.message()); }

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ParseTextProto, NamesFileLineAndField) {
  GrpoHrdConfig config;
  const std::string text = "steps: 3\nobjective {\n  alfa: 0.2\n}\n";
  const absl::Status status = ParseTextProto(text, "my.textproto", &config);
  EXPECT_TRUE(Contains(Text(status), "my.textproto:3:")) << status;
  EXPECT_TRUE(Contains(Text(status), "alfa")) << status;
}

TEST(ParseTextProto, NamesTheLineOfABadValue) {
  SftConfig config;
  const absl::Status status = ParseTextProto("steps: 1\nbatch_size: many\n", "f", &config);
  EXPECT_TRUE(Contains(Text(status), "f:2:")) << status;
}

TEST(LoadTextProto, NamesAMissingFile) {
  SftConfig config;
  EXPECT_TRUE(
      Contains(Text(LoadTextProto("/nowhere/x.textproto", &config)), "/nowhere/x.textproto"));
}

TEST(ApplyOverride, SetsNestedScalarsOfEveryType) {
  GrpoHrdConfig config;
  for (const char* assignment :
       {"steps=12", "objective.alpha=0.25", "seed=18446744073709551615", "eval.greedy=false",
        "output_dir=runs/a=b", "verifier.limits.output_bytes=5000000000"}) {
    ASSERT_TRUE(ApplyOverride(assignment, &config).ok()) << assignment;
  }
  EXPECT_EQ(config.steps(), 12);
  EXPECT_EQ(config.objective().alpha(), 0.25);
  EXPECT_EQ(config.seed(), 18446744073709551615ULL);
  EXPECT_FALSE(config.eval().greedy());
  EXPECT_EQ(config.output_dir(), "runs/a=b");
  EXPECT_EQ(config.verifier().limits().output_bytes(), 5000000000);
}

TEST(ApplyOverride, TakesEnumsByNameInAnyCase) {
  GrpoHrdConfig config;
  ASSERT_TRUE(ApplyOverride("objective.reward_shape=uniform", &config).ok());
  EXPECT_EQ(config.objective().reward_shape(), UNIFORM);
  const absl::Status status = ApplyOverride("objective.reward_shape=best", &config);
  EXPECT_TRUE(Contains(Text(status), "HRD, UNIFORM, SPEEDUP_SPEEDUP")) << status;
}

TEST(ApplyOverride, ReplacesAppendsAndIndexesLists) {
  GrpoHrdConfig config;
  ASSERT_TRUE(ApplyOverride("tasks.train=a, b", &config).ok());
  ASSERT_TRUE(ApplyOverride("tasks.train+=c", &config).ok());
  ASSERT_TRUE(ApplyOverride("tasks.train[1]=d", &config).ok());
  ASSERT_TRUE(ApplyOverride("tasks.level_mixture=0.9,0.1", &config).ok());
  EXPECT_EQ(config.tasks().train_size(), 3);
  EXPECT_EQ(config.tasks().train(0), "a");
  EXPECT_EQ(config.tasks().train(1), "d");
  EXPECT_EQ(config.tasks().train(2), "c");
  EXPECT_EQ(config.tasks().level_mixture(1), 0.1);
  EXPECT_TRUE(Contains(Text(ApplyOverride("tasks.train[3]=x", &config)), "3 entries"));
  ASSERT_TRUE(ApplyOverride("tasks.train=", &config).ok());
  EXPECT_EQ(config.tasks().train_size(), 0);
}

TEST(ApplyOverride, SuggestsTheClosestField) {
  GrpoHrdConfig config;
  const absl::Status status = ApplyOverride("optimizer.learningrate=1", &config);
  EXPECT_TRUE(Contains(Text(status), "'learningrate'")) << status;
  EXPECT_TRUE(Contains(Text(status), "'learning_rate'")) << status;
}

TEST(ApplyOverride, RefusesWhatDoesNotFit) {
  GrpoHrdConfig config;
  EXPECT_TRUE(Contains(Text(ApplyOverride("steps=ten", &config)), "'ten'"));
  EXPECT_TRUE(Contains(Text(ApplyOverride("steps", &config)), "path=value"));
  EXPECT_TRUE(Contains(Text(ApplyOverride("objective=1", &config)), "group of fields"));
  EXPECT_TRUE(Contains(Text(ApplyOverride("steps.x=1", &config)), "nothing lies below"));
  EXPECT_TRUE(Contains(Text(ApplyOverride("steps[0]=1", &config)), "one value"));
  EXPECT_TRUE(Contains(Text(ApplyOverride("eval.greedy=maybe", &config)), "true or false"));
}

TEST(ValidateGrpoHrdConfig, DefaultsWorkOnceThereAreTasks) {
  GrpoHrdConfig config;
  EXPECT_TRUE(Contains(Text(ValidateGrpoHrdConfig(config)), "tasks.train"));
  config.mutable_tasks()->add_train("tasks/mini");
  EXPECT_TRUE(ValidateGrpoHrdConfig(config).ok()) << ValidateGrpoHrdConfig(config);
}

TEST(ValidateGrpoHrdConfig, NamesTheFieldThatCannotWork) {
  const char* cases[][2] = {
      {"objective.alpha=1.5", "objective.alpha"},
      {"objective.epsilon=-1", "objective.epsilon"},
      {"group_size=1", "group_size"},
      {"sampling.temperature=0", "sampling.temperature"},
      {"sampling.top_p=0", "sampling.top_p"},
      {"sampling.engine.max_num_seqs=-1", "sampling.engine.max_num_seqs is -1"},
      {"sampling.engine.cache_bytes=-1", "sampling.engine.cache_bytes"},
      {"sampling.engine.num_speculative_tokens=65", "sampling.engine.num_speculative_tokens"},
      {"sampling.keep_stale_kv_cache=true", "sampling.async_rollout"},
      {"objective.importance_sampling_cap=0.5", "objective.importance_sampling_cap"},
      {"sampling.engine.max_num_batched_tokens=-1", "sampling.engine.max_num_batched_tokens"},
      {"optimizer.learning_rate=0", "optimizer.learning_rate"},
      {"optimizer.beta2=1", "optimizer.beta2"},
      {"optimizer.zero_stage=3", "optimizer.zero_stage"},
      {"optimizer.zero_stage=0", "optimizer.zero_stage"},
      {"policy.device=tpu", "policy.device"},
      {"verifier.judge.endpoint=http://x", "verifier.judge.model"},
      {"verifier.judge.mode=required", "verifier.judge.endpoint"},
      {"verifier.judge.mode=required", "verifier.judge.mode=NONE"},
      {"optimizer.warmup_share=1.5", "optimizer.warmup_share"},
      {"tasks.preflight_wait_s=0", "tasks.preflight_wait_s"},
      {"base=x.textproto", "base is set on the command line"},
      {"verifier.servers=runs/x/", "verifier.servers"},
      {"objective.optimizer_steps_per_epoch=9", "optimizer_steps_per_epoch"},
      {"tasks.level_mixture=0,0", "tasks.level_mixture"},
      {"tasks.response_style=deep", "tasks: response_style \"deep\" is unknown; use \"auto\""},
      {"tasks.code_block=second", "tasks: code_block \"second\" is unknown; use \"auto\""},
      {"tasks.prompt_file=p.txt", "tasks.prompt_file"},
      {"tasks.eval_prompt_file=p.txt", "tasks.eval_prompt_file"},
      {"checkpoint.keep=0", "checkpoint.keep"},
      {"steps=-1", "steps"},
      {"objective.alpha=nan", "objective.alpha"}};
  for (const auto& [assignment, field] : cases) {
    GrpoHrdConfig config;
    config.mutable_tasks()->add_train("tasks/mini");
    ASSERT_TRUE(ApplyOverride(assignment, &config).ok()) << assignment;
    const absl::Status status = ValidateGrpoHrdConfig(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << assignment;
    EXPECT_TRUE(Contains(Text(status), field)) << status;
  }
}

TEST(ValidateGrpoHrdConfig, NamesBothOfTwoFieldsThatDoNotGoTogether) {
  GrpoHrdConfig config;
  config.mutable_tasks()->add_train("tasks/mini");
  ASSERT_TRUE(ApplyOverride("sampling.engine.batch_invariant=true", &config).ok());
  EXPECT_TRUE(ValidateGrpoHrdConfig(config).ok());
  ASSERT_TRUE(ApplyOverride("sampling.async_rollout=true", &config).ok());
  const absl::Status status = ValidateGrpoHrdConfig(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Contains(Text(status), "sampling.engine.batch_invariant")) << status;
  EXPECT_TRUE(Contains(Text(status), "sampling.async_rollout")) << status;
}

TEST(ValidateGrpoHrdConfig, SleepModeExcludesAStaleKvCacheAndRolloutRanks) {
  for (const std::string other : {"sampling.keep_stale_kv_cache=true", "rollout_ranks=1"}) {
    GrpoHrdConfig config;
    config.mutable_tasks()->add_train("tasks/mini");
    ASSERT_TRUE(ApplyOverride("sampling.engine.enable_sleep_mode=true", &config).ok());
    ASSERT_TRUE(ApplyOverride("sampling.async_rollout=true", &config).ok());
    EXPECT_TRUE(ValidateGrpoHrdConfig(config).ok()) << ValidateGrpoHrdConfig(config);
    ASSERT_TRUE(ApplyOverride(other, &config).ok());
    const absl::Status status = ValidateGrpoHrdConfig(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(Contains(Text(status), "sampling.engine.enable_sleep_mode")) << status;
    EXPECT_TRUE(Contains(Text(status), other.substr(0, other.find('=')))) << status;
  }
}

TEST(ValidateGrpoHrdConfig, SamplesDrawnInFp8NeedImportanceWeights) {
  for (const std::string field : {"sampling.engine.fp8_kv_cache", "sampling.engine.fp8_weights"}) {
    GrpoHrdConfig config;
    config.mutable_tasks()->add_train("tasks/mini");
    ASSERT_TRUE(ApplyOverride(field + "=true", &config).ok());
    const absl::Status status = ValidateGrpoHrdConfig(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(Contains(Text(status), field)) << status;
    EXPECT_TRUE(Contains(Text(status), "objective.importance_sampling_cap")) << status;
    ASSERT_TRUE(ApplyOverride("objective.importance_sampling_cap=2", &config).ok());
    EXPECT_TRUE(ValidateGrpoHrdConfig(config).ok());
  }
}

TEST(ValidateGrpoHrdConfig, WantsStepsOrEpochs) {
  GrpoHrdConfig config;
  config.mutable_tasks()->add_train("tasks/mini");
  config.set_steps(0);
  EXPECT_TRUE(ValidateGrpoHrdConfig(config).ok()) << ValidateGrpoHrdConfig(config);
  config.set_epochs(0);
  EXPECT_TRUE(Contains(Text(ValidateGrpoHrdConfig(config)), "set either"));
}

TEST(ValidateGrpoHrdConfig, TakesOneFormOfTheWarmUp) {
  GrpoHrdConfig config;
  config.mutable_tasks()->add_train("tasks/mini");
  config.mutable_optimizer()->set_warmup_share(0.1);
  EXPECT_TRUE(ValidateGrpoHrdConfig(config).ok()) << ValidateGrpoHrdConfig(config);
  config.mutable_optimizer()->set_warmup_steps(3);
  const absl::Status status = ValidateGrpoHrdConfig(config);
  EXPECT_TRUE(Contains(Text(status), "optimizer.warmup_steps")) << status;
  EXPECT_TRUE(Contains(Text(status), "optimizer.warmup_share")) << status;
}

TEST(ValidateSftConfig, WantsData) {
  SftConfig config;
  EXPECT_TRUE(Contains(Text(ValidateSftConfig(config)), "train_data"));
  config.add_train_data("a.jsonl");
  EXPECT_TRUE(ValidateSftConfig(config).ok());
  config.set_batch_size(0);
  EXPECT_TRUE(Contains(Text(ValidateSftConfig(config)), "batch_size"));
}

TEST(FullText, WritesDefaultsAndReadsBack) {
  GrpoHrdConfig config;
  config.set_steps(5);
  const std::string text = FullText(config);
  EXPECT_TRUE(Contains(text, "alpha: 0.1"));
  EXPECT_TRUE(Contains(text, "memory_mib: 2048"));
  GrpoHrdConfig again;
  ASSERT_TRUE(ParseTextProto(text, "f", &again).ok());
  EXPECT_EQ(FullText(again), text);
  EXPECT_EQ(again.steps(), 5);
}

TEST(LoadGrpoHrdConfig, AppliesOverridesOverTheFile) {
  const std::string path = testing::TempDir() + "/c.textproto";
  ASSERT_TRUE(WriteFileAtomic(path, "steps: 3 tasks { train: 'x' } group_size: 4").ok());
  const auto config = LoadGrpoHrdConfig(path, {"steps=7"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->steps(), 7);
  EXPECT_EQ(config->group_size(), 4);
}

// A folder of configuration files.
class BaseTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = MakeTempDirectory("config").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(CreateDirectories(DirName(dir_ + "/" + name)).ok());
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/" + name, text).ok());
  }
  absl::StatusOr<GrpoHrdConfig> Load(const std::string& name) {
    return LoadGrpoHrdConfig(dir_ + "/" + name, {});
  }

  std::string dir_;
};

TEST_F(BaseTest, AFileReplacesValuesAndWholeListsOfItsBase) {
  Write("common/all.textproto",
        "steps: 3 seed: 5 tasks { train: 'a' train: 'b' held_out: 'h' generated_share: 0.5 }");
  Write("common/more.textproto", "base: 'all.textproto' group_size: 4 seed: 6");
  Write("own.textproto", "base: 'common/more.textproto' steps: 9 tasks { train: 'c' }");
  const auto config = Load("own.textproto");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->steps(), 9);
  EXPECT_EQ(config->seed(), 6u);
  EXPECT_EQ(config->group_size(), 4);
  ASSERT_EQ(config->tasks().train_size(), 1);
  EXPECT_EQ(config->tasks().train(0), "c");
  EXPECT_EQ(config->tasks().held_out(0), "h");
  EXPECT_EQ(config->tasks().generated_share(), 0.5);
  EXPECT_EQ(config->base(), "");
}

TEST_F(BaseTest, AMissingBaseIsNamedWithTheFileThatNamesIt) {
  Write("own.textproto", "base: 'none.textproto'");
  const std::string text = Text(Load("own.textproto").status());
  EXPECT_TRUE(Contains(text, dir_ + "/own.textproto: base")) << text;
  EXPECT_TRUE(Contains(text, dir_ + "/none.textproto")) << text;
}

TEST_F(BaseTest, AMistakeInTheBaseHasItsLine) {
  Write("all.textproto", "steps: 3\nlerning_rate: 1\n");
  Write("own.textproto", "base: 'all.textproto'");
  const std::string text = Text(Load("own.textproto").status());
  EXPECT_TRUE(Contains(text, "all.textproto:2:")) << text;
}

TEST_F(BaseTest, ACircleIsRefused) {
  Write("a.textproto", "base: 'b.textproto'");
  Write("b.textproto", "base: 'a.textproto'");
  const std::string text = Text(Load("a.textproto").status());
  EXPECT_TRUE(Contains(text, "in a circle perhaps")) << text;
}

}  // namespace
}  // namespace tritonrl
