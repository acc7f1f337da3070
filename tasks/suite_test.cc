#include "tasks/suite.h"

#include <map>
#include <set>
#include <string>

#include "base/file.h"
#include "base/runfiles.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/corpus.h"
#include "tasks/loader.h"
#include "tasks/prompt.h"

namespace tritonrl {
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
  // If this fails on purpose: bazel run //tasks:make_suite -- --out=tasks/mini
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

// What forward computes, without the shapes.
std::string ForwardOf(const std::string& prompt) { return prompt.substr(0, prompt.rfind("\n[")); }

TEST(MiniSuiteTest, HeldOutCompositionsNeverOccurInTheCorpus) {
  std::set<std::string> held_out_keys, held_out_forwards, train_keys;
  for (const SuiteFile& file : BuildMiniSuite()) {
    const bool held_out = file.path.rfind("heldout/", 0) == 0;
    EXPECT_TRUE((held_out ? held_out_keys : train_keys).insert(file.composition).second);
    Task task;
    task.source = file.contents;
    if (held_out) held_out_forwards.insert(ForwardOf(BuildPrompt(task, PromptStyle::kMini)));
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
  // The check above must be able to fail: the corpus does reach compositions of this kind.
  int trained_on = 0;
  for (const std::string& key : train_keys) trained_on += corpus_keys.count(key);
  EXPECT_GT(trained_on, 24);
}

}  // namespace
}  // namespace tritonrl
