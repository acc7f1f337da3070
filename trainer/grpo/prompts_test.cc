#include "trainer/grpo/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "model/chat/chat_template.h"
#include "model/chat/testing/chat_folder.h"
#include "parallel/process_group.h"
#include "trainer/grpo/verification.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

class PromptSamplerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = MakeTempDirectory("prompts").value();
    WriteTinyModel(dir_);
    tokenizer_ = std::make_unique<Tokenizer>(Tokenizer::Load(dir_ + "/tokenizer.json").value());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  // `ones` tasks of level 1 and `twos` tasks of level 2.
  std::vector<PreparedTask> Tasks(int ones, int twos) const {
    std::vector<PreparedTask> tasks;
    for (int i = 0; i < ones + twos; ++i) {
      PreparedTask task;
      task.task.level = i < ones ? 1 : 2;
      task.task.id = absl::StrCat("level", task.task.level, "/", i);
      tasks.push_back(task);
    }
    return tasks;
  }
  std::vector<std::string> Ids(const PromptSampler& sampler, int64_t step, int count) const {
    std::vector<std::string> ids;
    for (const auto& task : sampler.Draw(step, count)) ids.push_back(task->task.id);
    return ids;
  }
  PromptSampler Make(PromptSamplerOptions options, std::vector<PreparedTask> tasks) const {
    return PromptSampler::Make(options, std::move(tasks), tokenizer_.get()).value();
  }

  static PromptFormat FullFormat() { return PromptFormat::FromName("full").value(); }

  std::string dir_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(PromptSamplerTest, DependsOnSeedAndStepAlone) {
  PromptSamplerOptions options;
  options.seed = 5;
  const PromptSampler a = Make(options, Tasks(20, 20));
  const PromptSampler b = Make(options, Tasks(20, 20));
  b.Draw(0, 8);
  EXPECT_EQ(Ids(a, 3, 8), Ids(b, 3, 8));
  EXPECT_NE(Ids(a, 3, 8), Ids(a, 4, 8));
  options.seed = 6;
  EXPECT_NE(Ids(a, 3, 8), Ids(Make(options, Tasks(20, 20)), 3, 8));
}

TEST_F(PromptSamplerTest, NoTaskTwiceWhileThereAreOthers) {
  const PromptSampler sampler = Make({.passes = false}, Tasks(6, 4));
  std::set<std::string> seen;
  for (int step = 0; step < 30; ++step) {
    const std::vector<std::string> ids = Ids(sampler, step, 10);
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 10);
    const std::vector<std::string> few = Ids(sampler, step, 2);
    seen.insert(few.begin(), few.end());
  }
  EXPECT_EQ(seen.size(), 10);                 // every task is drawn eventually
  EXPECT_EQ(Ids(sampler, 0, 25).size(), 25);  // with more prompts than tasks, tasks repeat
}

TEST_F(PromptSamplerTest, LevelsFollowTheMixture) {
  PromptSamplerOptions options;
  options.passes = false;
  options.level_mixture = {3, 1};  // need not add up to 1
  const PromptSampler sampler = Make(options, Tasks(50, 50));
  int ones = 0;
  for (int step = 0; step < 250; ++step) {
    for (const auto& task : sampler.Draw(step, 8)) ones += task->task.level == 1;
  }
  EXPECT_NEAR(ones / 2000.0, 0.75, 0.05);  // five standard errors
  options.level_mixture = {1, 0};
  for (const auto& task : Make(options, Tasks(5, 5)).Draw(0, 5)) EXPECT_EQ(task->task.level, 1);
}

TEST_F(PromptSamplerTest, EachTaskComesOnceAnEpoch) {
  const PromptSampler sampler = Make({}, Tasks(25, 15));
  EXPECT_EQ(sampler.PromptsOf(1), 40);
  EXPECT_EQ(sampler.PromptsOf(2), 80);
  EXPECT_DOUBLE_EQ(sampler.EpochsOf(20), 0.5);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<std::string> seen;
    for (int step = 5 * epoch; step < 5 * epoch + 5; ++step) {
      const std::vector<std::string> ids = Ids(sampler, step, 8);
      seen.insert(ids.begin(), ids.end());
    }
    EXPECT_EQ(seen.size(), 40u) << epoch;
  }
}

TEST_F(PromptSamplerTest, AnEpochOfAMixtureHasItsShareOfEachLevel) {
  PromptSamplerOptions options;
  options.level_mixture = {0.75, 0.25};
  const PromptSampler sampler = Make(options, Tasks(50, 50));
  int ones = 0;
  for (int step = 0; step < 25; ++step) {
    for (const auto& task : sampler.Draw(step, 4)) ones += task->task.level == 1;
  }
  EXPECT_EQ(ones, 75);
  options.level_mixture = {1, 0};  // the paper's
  const PromptSampler first = Make(options, Tasks(12, 50));
  EXPECT_EQ(first.PromptsOf(2), 24);
  std::set<std::string> seen;
  for (int step = 0; step < 3; ++step) {
    for (const auto& task : first.Draw(step, 4)) {
      EXPECT_EQ(task->task.level, 1);
      seen.insert(task->task.id);
    }
  }
  EXPECT_EQ(seen.size(), 12u);
}

TEST_F(PromptSamplerTest, ComposedTasksComeBesideThePasses) {
  PromptSamplerOptions options;
  options.generated_share = 0.25;
  const PromptSampler sampler = Make(options, Tasks(12, 0));
  EXPECT_EQ(sampler.PromptsOf(1), 16);
  EXPECT_DOUBLE_EQ(sampler.EpochsOf(8), 0.5);
  std::map<std::string, int> seen;
  int composed = 0;
  for (int step = 0; step < 4; ++step) {
    for (const std::string& id : Ids(sampler, step, 4)) {
      composed += absl::StartsWith(id, "generated/");
      ++seen[id];
    }
  }
  EXPECT_EQ(composed, 4);
  EXPECT_EQ(seen.size(), 16u);  // each task of the files once, and each composed one
  options.generated_share = 1;
  EXPECT_EQ(Make(options, {}).PromptsOf(2), 0);
  EXPECT_EQ(Make(options, {}).EpochsOf(8), 0);
}

TEST_F(PromptSamplerTest, ALevelWithoutTasksIsAnError) {
  PromptSamplerOptions options;
  options.level_mixture = {0.5, 0.5};
  EXPECT_THAT(Message(PromptSampler::Make(options, Tasks(3, 0), tokenizer_.get()).status()),
              HasSubstr("gives level 2 a chance of 0.5, but there is no training task"));
}

TEST_F(PromptSamplerTest, FreshTasksAreComposedTheSameWayAgain) {
  PromptSamplerOptions options;
  options.generated_share = 1;
  const PromptSampler sampler = Make(options, {});
  const auto first = sampler.Draw(7, 4), again = sampler.Draw(7, 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(absl::StartsWith(first[i]->task.id, "generated/"));
    EXPECT_THAT(first[i]->task.source, HasSubstr("class Model"));
    EXPECT_EQ(first[i]->task.source, again[i]->task.source);
    EXPECT_EQ(first[i]->tokens, tokenizer_->Encode(first[i]->prompt));
  }
  EXPECT_NE(first[0]->task.source, first[1]->task.source);
}

TEST_F(PromptSamplerTest, ConfiguredPromptFiles) {
  TasksConfig config;
  EXPECT_EQ(LoadPromptFormats(config)->train.name(), "mini");
  config.set_prompt_style(TasksConfig::FULL);
  auto formats = LoadPromptFormats(config);
  ASSERT_TRUE(formats.ok()) << formats.status();
  EXPECT_EQ(formats->train.name(), "tasks/prompts/train.txt");
  EXPECT_EQ(formats->held_out.name(), "tasks/prompts/eval_one_shot.txt");

  ASSERT_TRUE(WriteFileAtomic(dir_ + "/mine.txt", "Solve {name}:\n{task}\n").ok());
  config.set_eval_prompt_file(dir_ + "/mine.txt");
  formats = LoadPromptFormats(config);
  ASSERT_TRUE(formats.ok()) << formats.status();
  Task task;
  task.id = "a";
  task.source = "T = 1\n";
  const PreparedTask prepared = PrepareTask(task, formats->held_out, *tokenizer_);
  EXPECT_EQ(prepared.prompt, "Solve a:\nT = 1\n");
  // A token for each byte.
  EXPECT_EQ(DescribePrompts(formats->held_out, {prepared}, *tokenizer_),
            dir_ + "/mine.txt, 9 tokens of fixed text; the longest of 1 prompts has 15 tokens");

  ASSERT_TRUE(WriteFileAtomic(dir_ + "/bad.txt", "{task}\n{hint}").ok());
  config.set_prompt_file(dir_ + "/bad.txt");
  EXPECT_THAT(Message(LoadPromptFormats(config).status()),
              HasSubstr("tasks.prompt_file: " + dir_ + "/bad.txt, line 2: the placeholder {hint}"));
  config.set_prompt_file("no/such.txt");
  EXPECT_THAT(Message(LoadPromptFormats(config).status()),
              HasSubstr("tasks.prompt_file: 'no/such.txt' was found neither"));
}

TEST_F(PromptSamplerTest, TheStyleFollowsFolderAndPrompt) {
  PreparedTask prompt;
  prompt.tokens = tokenizer_->Encode("a task");
  const auto choose = [&](const std::string& style) {
    return ChoosePolicyStyle(style, "auto", dir_, prompt, *tokenizer_).value().style.plan;
  };
  EXPECT_EQ(choose("auto"), ResponseStyle::Plan::kThinking);  // its tokenizer has </think>
  EXPECT_EQ(choose("plain"), ResponseStyle::Plan::kPlain);
  prompt.tokens = tokenizer_->Encode("a long task with no thoughts: <think>\n\n</think>\n\n");
  EXPECT_EQ(choose("auto"), ResponseStyle::Plan::kPlain);
  prompt.tokens.clear();
  EXPECT_EQ(choose("auto"), ResponseStyle::Plan::kThinking);
}

// The template that renders the prompts decides, also where the folder has another one.
TEST_F(PromptSamplerTest, TheStyleFollowsTheTemplateInUse) {
  const Tokenizer tokenizer = QwenLikeTokenizer();
  const ChatFolder folder(kThinkingChatMl);
  const std::string other = dir_ + "/other.jinja";
  ASSERT_TRUE(WriteFileAtomic(other, kChatMl).ok());
  PreparedTask prompt;
  const auto choose = [&](const std::string& chat_template) {
    const ChatTemplate chat =
        ChatTemplate::Load(folder.dir(), {.chat_template = chat_template}, tokenizer).value();
    return ChoosePolicyStyle("auto", "auto", folder.dir(), prompt, tokenizer, &chat)->style.plan;
  };
  EXPECT_EQ(choose("auto"), ResponseStyle::Plan::kThinking);
  EXPECT_EQ(choose(other), ResponseStyle::Plan::kPlain);
}

TEST_F(PromptSamplerTest, LoadingNamesWhatIsLeftOut) {
  const std::string good =
      "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + "
      "1\n"
      "def get_inputs():\n    return [torch.randn(4)]\ndef get_init_inputs():\n    return []\n";
  ASSERT_TRUE(CreateDirectories(dir_ + "/t/level1").ok());
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/t/level1/1_a.py", good).ok());
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/t/level1/2_b.py", "def broken(:\n").ok());
  auto loaded = LoadPreparedTasks({dir_ + "/t"}, FullFormat(), *tokenizer_, 100000);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->tasks.size(), 1);
  EXPECT_EQ(loaded->tasks[0].task.level, 1);
  ASSERT_EQ(loaded->problems.size(), 1);
  EXPECT_THAT(loaded->problems[0], HasSubstr("2_b.py"));
  EXPECT_THAT(Message(LoadPreparedTasks({dir_ + "/t"}, FullFormat(), *tokenizer_, 3).status()),
              HasSubstr("no task is left"));
  EXPECT_THAT(
      Message(LoadPreparedTasks({dir_ + "/t", dir_ + "/t"}, FullFormat(), *tokenizer_, 100000)
                  .status()),
      HasSubstr("in two of the folders"));
  EXPECT_THAT(Message(LoadPreparedTasks({dir_ + "/none"}, FullFormat(), *tokenizer_, 9).status()),
              HasSubstr(dir_ + "/none"));
}

TEST_F(PromptSamplerTest, PromptsAreUserTurnsOfTheChatTemplate) {
  const Tokenizer tokenizer = QwenLikeTokenizer();
  const ChatFolder folder(
      "{% for m in messages %}{{ raise_exception('Too many rows') if '777' in m.content }}"
      "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  const ChatTemplate chat = ChatTemplate::Load(folder.dir(), {}, tokenizer).value();
  Task task;
  task.id = "t";
  task.source =
      "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
      "        return torch.relu(x)  # <|im_end|>\n";
  const PreparedTask prepared = PrepareTask(task, FullFormat(), tokenizer, &chat);
  EXPECT_EQ(prepared.problem, "");
  EXPECT_EQ(tokenizer.Decode(prepared.tokens), absl::StrCat("<|im_start|>user\n", prepared.prompt,
                                                            "<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_EQ(
      std::count(prepared.tokens.begin(), prepared.tokens.end(), tokenizer.TokenId("<|im_end|>")),
      1)
      << "the task's own is text";
  task.source += "# 777\n";
  EXPECT_THAT(PrepareTask(task, FullFormat(), tokenizer, &chat).problem,
              HasSubstr("Too many rows"));
}

// Two tasks of level 1 and one of level 2 in files, trained for two epochs.
class RunTasksTest : public PromptSamplerTest {
 protected:
  void SetUp() override {
    PromptSamplerTest::SetUp();
    for (const char* path : {"/t/level1/a.py", "/t/level1/b.py", "/t/level2/c.py"}) {
      ASSERT_TRUE(CreateDirectories(DirName(dir_ + path)).ok());
      const std::string source = absl::StrCat(
          "class Model:\n    def forward(self, x):\n        return x  # ", path,
          "\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n");
      ASSERT_TRUE(WriteFileAtomic(dir_ + path, source).ok());
    }
    config_.mutable_tasks()->add_train(dir_ + "/t");
    config_.mutable_tasks()->set_prompt_style(TasksConfig::FULL);
    config_.mutable_sampling()->set_max_prompt_tokens(100000);
    config_.set_prompts_per_step(2);
    config_.set_steps(0);
    ranks_ = ProcessGroup::SingleProcess();
  }
  absl::StatusOr<RunTasks> Load() {
    return LoadRunTasks(config_, *tokenizer_, /*chat=*/nullptr, verification_, "", ranks_.get());
  }

  GrpoHrdConfig config_;
  Verification verification_;
  std::unique_ptr<ProcessGroup> ranks_;
};

TEST_F(RunTasksTest, EpochsGiveTheNumberOfSteps) {
  auto tasks = Load();
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_EQ(tasks->steps, 3);  // 2 * 3 prompts
  config_.mutable_tasks()->add_level_mixture(1);
  tasks = Load();
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_EQ(tasks->steps, 2);  // 2 * 2 prompts
  config_.set_epochs(2.5);
  EXPECT_EQ(Load()->steps, 3);  // 5 prompts, the last step is filled up
  config_.set_steps(7);
  EXPECT_EQ(Load()->steps, 7);
}

TEST_F(RunTasksTest, EpochsNeedTaskFiles) {
  config_.mutable_tasks()->clear_train();
  config_.mutable_tasks()->set_generated_share(1);
  EXPECT_THAT(Message(Load().status()), HasSubstr("epochs needs task files"));
}

}  // namespace
}  // namespace tritonrl
