#include "tasks/loader.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGood[] =
    "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
    "        return torch.relu(x)\n\ndef get_inputs():\n    return [torch.randn(4)]\n\n"
    "def get_init_inputs():\n    return []\n";

class LoaderTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *MakeTempDirectory("loader"); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  void Write(const std::string& name, const std::string& contents) {
    const std::string path = JoinPath(folder_, name);
    ASSERT_TRUE(CreateDirectories(DirName(path)).ok());
    ASSERT_TRUE(WriteFileAtomic(path, contents).ok());
  }
  std::vector<std::string> Ids() {
    std::vector<std::string> ids;
    const TaskSet set = *LoadTasks(folder_);
    for (const Task& task : set.tasks) ids.push_back(task.id);
    return ids;
  }

  std::string folder_;
};

TEST_F(LoaderTest, WalksTheTreeInNaturalOrder) {
  Write("level2/10_b.py", kGood);
  Write("level2/9_a.py", kGood);
  Write("level1/sub/01_c.py", kGood);
  Write("level1/_helper.py", "not python (");
  Write("level1/.hidden.py", "not python (");
  Write("__pycache__/x.py", "not python (");
  Write("notes.txt", "no task");
  Write("plain.py", kGood);
  const absl::StatusOr<TaskSet> set = LoadTasks(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->problems, IsEmpty());
  EXPECT_THAT(Ids(), ElementsAre("level1/sub/01_c", "level2/9_a", "level2/10_b", "plain"));
  EXPECT_EQ(set->tasks[0].level, 1);
  EXPECT_EQ(set->tasks[1].level, 2);
  EXPECT_EQ(set->tasks[3].level, 0);
  EXPECT_EQ(set->tasks[3].source, kGood);
  EXPECT_EQ(set->tasks[3].path, JoinPath(folder_, "plain.py"));
}

struct Broken {
  const char* name;
  std::string source;
  const char* message;
};

TEST_F(LoaderTest, ReportsBrokenFilesByNameAndLineAndKeepsTheRest) {
  std::string no_forward = kGood, no_inputs = kGood, method_only = kGood;
  no_forward.replace(no_forward.find("forward"), 7, "call");
  no_inputs.replace(no_inputs.find("get_inputs"), 10, "inputs");
  method_only.replace(method_only.find("def get_init_inputs"), 19,
                      "class A:\n  def get_init_inputs");
  const std::vector<Broken> broken = {
      {"a_fence.py", "The task:\n```python\nimport torch\n```\n", "a_fence.py:2: a Markdown fence"},
      {"a_syntax.py", "import torch\n\nclass Model(:\n    pass\n", "a_syntax.py:3: syntax error"},
      {"b_empty.py", "", "b_empty.py:1: class Model is missing"},
      {"c_no_forward.py", no_forward, "c_no_forward.py:3: class Model has no method forward"},
      {"d_no_inputs.py", no_inputs, ": function get_inputs() is missing"},
      {"f_nul.py", std::string("x = 1\n\0", 7), "f_nul.py:2: contains a NUL byte"},
  };
  for (const Broken& b : broken) Write(b.name, b.source);
  Write("z_good.py", kGood);
  const absl::StatusOr<TaskSet> set = LoadTasks(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->tasks.size(), 1);
  EXPECT_EQ(set->tasks[0].id, "z_good");
  ASSERT_EQ(set->problems.size(), broken.size());
  for (size_t i = 0; i < broken.size(); ++i) {
    EXPECT_THAT(set->problems[i], HasSubstr(broken[i].message));
    EXPECT_THAT(set->problems[i], HasSubstr(JoinPath(folder_, broken[i].name)));
  }
}

TEST_F(LoaderTest, LeavesOutOverlongFiles) {
  Write("a.py", kGood);
  Write("big.py", absl::StrCat(kGood, "x = '", std::string(2 << 20, 'a'), "'\n"));
  const absl::StatusOr<TaskSet> set = LoadTasks(folder_);
  ASSERT_TRUE(set.ok());
  EXPECT_THAT(set->problems, ElementsAre(HasSubstr("big.py: has ")));
}

TEST_F(LoaderTest, AnEmptySetIsAnError) {
  EXPECT_THAT(std::string(LoadTasks(folder_).status().message()),
              HasSubstr("holds no valid task: there is no *.py file"));
  Write("bad.py", "class (");
  const absl::Status status = LoadTasks(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bad.py:1: "));
  EXPECT_EQ(LoadTasks(JoinPath(folder_, "missing")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LoaderTest, TakesASingleFile) {
  Write("level2/one.py", kGood);
  const absl::StatusOr<TaskSet> set = LoadTasks(JoinPath(folder_, "level2/one.py"));
  ASSERT_TRUE(set.ok());
  ASSERT_EQ(set->tasks.size(), 1);
  EXPECT_EQ(set->tasks[0].id, "one");
  EXPECT_EQ(set->tasks[0].level, 2);
}

TEST(CheckTaskSourceTest, AcceptsDecoratedAndCommentedDefinitions) {
  const std::string source =
      absl::StrCat("# -*- coding: utf-8 -*-\n'''Doc'''\n@staticmethod\n",
                   std::string(kGood).substr(std::string(kGood).find("class")));
  EXPECT_TRUE(CheckTaskSource("t.py", source).ok()) << CheckTaskSource("t.py", source);
}

// kGood without its class, with `classes` instead.
std::string WithClasses(const std::string& classes) {
  const std::string good = kGood;
  return absl::StrCat("import torch\n", classes, good.substr(good.find("def get_inputs")));
}

constexpr char kRow[] =
    "class Row(torch.nn.Module):\n    def forward(self, x):\n        return x\n";

TEST(CheckTaskSourceTest, TheModelMayHaveAnotherName) {
  for (const std::string& source : {
           WithClasses(kRow),
           absl::StrCat(WithClasses(kRow), "\n\nModel = Row\n"),
           WithClasses(absl::StrCat("class Other(torch.nn.Module):\n    def forward(self, x):\n"
                                    "        return x\n",
                                    kRow, "Model = Row\n")),
           WithClasses(absl::StrCat("class F(torch.autograd.Function):\n    @staticmethod\n"
                                    "    def forward(ctx, x):\n        return x\n",
                                    kRow)),
           absl::StrCat(WithClasses(absl::StrCat(kRow, "class Sub(Row):\n    pass\n")),
                        "Model = Sub\n"),
           absl::StrCat(WithClasses("class Net(torch.nn.Sequential):\n    pass\n"),
                        "Model = Net\n"),
       }) {
    EXPECT_TRUE(CheckTaskSource("t.py", source).ok()) << CheckTaskSource("t.py", source) << source;
  }
}

TEST(CheckTaskSourceTest, SaysWhichClassIsMeantOrMissing) {
  const auto message = [](const std::string& source) {
    return std::string(CheckTaskSource("t.py", source).message());
  };
  const std::string two = absl::StrCat(kRow, "class B(torch.nn.Module):\n",
                                       "    def forward(self, x):\n        return x\n");
  EXPECT_THAT(message(WithClasses(two)), HasSubstr("class Model is missing; 2 classes have"));
  EXPECT_THAT(message(WithClasses(two)), HasSubstr("such as Model = Row"));
  EXPECT_THAT(message(absl::StrCat(WithClasses(kRow), "Model = Column\n")),
              HasSubstr("Model = Column names no class of this file"));
  EXPECT_THAT(
      message(absl::StrCat(WithClasses("class A(torch.nn.Module):\n    pass\n"), "Model = A\n")),
      HasSubstr("t.py:2: class A has no method forward"));
}

}  // namespace
}  // namespace tritonrl
