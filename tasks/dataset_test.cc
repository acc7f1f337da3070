#include "tasks/dataset.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/python_syntax.h"
#include "base/runfiles.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/loader.h"
#include "tasks/mini_prompt.h"
#include "tasks/response.h"

namespace tritonrl {

namespace {

using ::testing::HasSubstr;

CorpusSettings Faultless() {
  CorpusSettings settings;
  settings.hard_rate = settings.easy_rate = settings.structural_rate = 0;
  return settings;
}

TEST(CorpusTest, AnExampleIsAFunctionOfSeedAndIndex) {
  CorpusSettings a, b;
  b.seed = 1;
  EXPECT_EQ(CorpusExampleToJson(MakeCorpusExample(a, 7), true),
            CorpusExampleToJson(MakeCorpusExample(a, 7), true));
  EXPECT_NE(MakeCorpusExample(a, 7).response, MakeCorpusExample(a, 8).response);
  EXPECT_NE(MakeCorpusExample(a, 7).response, MakeCorpusExample(b, 7).response);
}

TEST(CorpusTest, FaultlessExamplesAreWellFormed) {
  for (uint64_t i = 0; i < 2000; ++i) {
    const CorpusExample example = MakeCorpusExample(Faultless(), i);
    EXPECT_THAT(example.mistakes, testing::IsEmpty());
    ASSERT_TRUE(CheckTaskSource("t", example.reference).ok()) << example.reference;
    const SplitResponse split = ReadResponse(example.response, ResponseStyle());
    ASSERT_TRUE(split.valid()) << example.response;
    EXPECT_FALSE(PythonTree(split.code).FirstError().has_value()) << split.code;
    const PlanKind kind = ClassifyPlan(split.plan);
    EXPECT_EQ(kind, example.level == 1     ? PlanKind::kSingle
                    : example.kernels == 1 ? PlanKind::kFused
                                           : PlanKind::kSplit)
        << split.plan;
    const std::vector<std::string> parts = absl::StrSplit(split.code, "@triton.jit\n");
    EXPECT_EQ(parts.size(), example.kernels + 1);
  }
}

TEST(CorpusTest, PlansAndMistakesHaveTheirRates) {
  int fused = 0, split = 0, structural = 0, hard = 0, hard_wrong = 0, easy_wrong = 0, faultless = 0;
  constexpr int kCount = 4000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const CorpusExample example = MakeCorpusExample(CorpusSettings(), i);
    if (example.level == 2) ++(example.kernels == 1 ? fused : split);
    faultless += example.mistakes.empty();
    for (const std::string& mistake : example.mistakes) {
      structural += absl::StartsWith(mistake, "struct:");
      // Only hard operators have a second wrong form, which is drawn as often as the first.
      hard_wrong += absl::EndsWith(mistake, ":2");
      easy_wrong += absl::StartsWith(mistake, "form:add:");
    }
    hard += absl::StrContains(example.composition, "gelu");
  }
  EXPECT_NEAR(fused / static_cast<double>(fused + split), 0.5, 0.03);
  EXPECT_NEAR(structural / static_cast<double>(kCount), 0.3, 0.03);
  EXPECT_GT(hard, 100);
  EXPECT_GT(hard_wrong, 400);
  EXPECT_GT(easy_wrong, 0);
  EXPECT_NEAR(faultless / static_cast<double>(kCount), 0.43, 0.05);
}

TEST(CorpusTest, RatesOfOneTouchEveryPlace) {
  CorpusSettings settings;
  settings.hard_rate = settings.easy_rate = settings.structural_rate = 1;
  std::set<std::string> kinds;
  for (uint64_t i = 0; i < 1000; ++i) {
    const CorpusExample example = MakeCorpusExample(settings, i);
    ASSERT_FALSE(example.mistakes.empty());
    ASSERT_TRUE(absl::StartsWith(example.mistakes.back(), "struct:"));
    kinds.insert(example.mistakes.back());
  }
  EXPECT_EQ(kinds.size(), 17);
}

class WriteCorpusTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *MakeTempDirectory("corpus"); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }
  std::string folder_;
};

TEST_F(WriteCorpusTest, StreamsJsonLines) {
  const std::string path = folder_ + "/sub/c.jsonl";
  ASSERT_TRUE(WriteCorpus(CorpusSettings(), 5, 20, true, path).ok());
  const std::vector<std::string> lines = absl::StrSplit(*ReadFile(path), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 20);
  const nlohmann::json json = nlohmann::json::parse(lines[3]);
  const CorpusExample example = MakeCorpusExample(CorpusSettings(), 8);
  EXPECT_EQ(json["prompt"], example.prompt);
  EXPECT_EQ(json["response"], example.response);
  EXPECT_EQ(json["reference"], example.reference);
  EXPECT_EQ(json["level"], example.level);
  EXPECT_THAT(*ListDirectory(folder_ + "/sub"), testing::ElementsAre("c.jsonl"));
}

TEST_F(WriteCorpusTest, ErrorsNameTheSettingOrTheFile) {
  CorpusSettings wrong;
  wrong.hard_rate = 1.5;
  EXPECT_THAT(std::string(WriteCorpus(wrong, 0, 1, false, folder_ + "/c").message()),
              HasSubstr("hard_rate is 1.5"));
  ASSERT_TRUE(CreateDirectories(folder_ + "/d").ok());
  EXPECT_THAT(std::string(WriteCorpus(CorpusSettings(), 0, 1, false, folder_ + "/d").message()),
              HasSubstr(folder_ + "/d"));
  EXPECT_THAT(*ListDirectory(folder_), testing::ElementsAre("d"));
  EXPECT_FALSE(WriteCorpus(CorpusSettings(), 0, 50, false, "/dev/full/x").ok());
}

}  // namespace

namespace {

using ::testing::IsEmpty;

TaskSet LoadCommitted(const std::string& part) {
  const absl::StatusOr<std::string> folder = Runfile("tasks/mini/" + part);
  EXPECT_TRUE(folder.ok()) << folder.status();
  absl::StatusOr<TaskSet> set = LoadTasks(*folder);
  EXPECT_TRUE(set.ok()) << set.status();
  return *set;
}

TEST(MiniSuiteTest, CommittedFilesAreTheGeneratorsOutput) {
  std::map<std::string, std::string> committed, generated;
  for (const char* part : {"train", "heldout"}) {
    const TaskSet set = LoadCommitted(part);
    EXPECT_THAT(set.problems, IsEmpty());
    for (const Task& task : set.tasks) {
      committed[std::string(part) + "/" + task.id + ".py"] = task.source;
    }
  }
  for (const SuiteFile& file : BuildMiniSuite()) generated[file.path] = file.contents;
  // After an intended change: bazel run //tasks:make_suite -- --out=tasks/mini
  EXPECT_EQ(committed, generated);
}

TEST(MiniSuiteTest, HasTheTasksItPromises) {
  const TaskSet train = LoadCommitted("train"), held_out = LoadCommitted("heldout");
  EXPECT_EQ(train.tasks.size(), 64);
  EXPECT_EQ(held_out.tasks.size(), 32);
  std::map<int, int> train_levels, held_out_levels;
  for (const Task& task : train.tasks) ++train_levels[task.level];
  for (const Task& task : held_out.tasks) ++held_out_levels[task.level];
  EXPECT_EQ(train_levels, (std::map<int, int>{{1, 24}, {2, 40}}));
  EXPECT_EQ(held_out_levels, (std::map<int, int>{{1, 10}, {2, 22}}));
}

// The computation of forward in a mini prompt, without the shapes.
std::string ForwardOf(const std::string& prompt) { return prompt.substr(0, prompt.rfind("\n[")); }

TEST(MiniSuiteTest, HeldOutCompositionsNeverOccurInTheCorpus) {
  std::set<std::string> held_out_keys, held_out_forwards, train_keys;
  for (const SuiteFile& file : BuildMiniSuite()) {
    const bool held_out = file.path.rfind("heldout/", 0) == 0;
    EXPECT_TRUE((held_out ? held_out_keys : train_keys).insert(file.composition).second);
    Task task;
    task.source = file.contents;
    if (held_out) held_out_forwards.insert(ForwardOf(MiniPrompt(task.source)));
  }
  for (const std::string& key : train_keys) EXPECT_EQ(held_out_keys.count(key), 0) << key;
  std::set<std::string> corpus_keys;
  for (uint64_t seed : {0, 1}) {
    CorpusSettings settings;
    settings.seed = seed;
    for (uint64_t i = 0; i < 3000; ++i) {
      const CorpusExample example = MakeCorpusExample(settings, i);
      corpus_keys.insert(example.composition);
      ASSERT_EQ(held_out_keys.count(example.composition), 0) << example.composition;
      ASSERT_EQ(held_out_forwards.count(ForwardOf(example.prompt)), 0) << example.prompt;
    }
  }
  // Shows that the check above can fail: the corpus does contain the training tasks' compositions.
  int trained_on = 0;
  for (const std::string& key : train_keys) trained_on += corpus_keys.count(key);
  EXPECT_GT(trained_on, 24);
}

}  // namespace

}  // namespace tritonrl
