#include "tools/task_check/task_checker.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTask[] = R"py(
import torch
class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
    def forward(self, x):
        return x * self.scale
def get_inputs():
    return [torch.rand([4, 4])]
def get_init_inputs():
    return [[], {"scale": 2}]
)py";

class TaskCheckerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto checker = TaskChecker::Start({.workers = 1, .wall_seconds = 20});
    ASSERT_TRUE(checker.ok()) << checker.status();
    checker_ = checker->release();
  }
  static void TearDownTestSuite() {
    delete checker_;
    checker_ = nullptr;
  }
  void SetUp() override { ASSERT_NE(checker_, nullptr); }

  static TaskFinding Run(const std::string& source) {
    const auto finding = checker_->Run(source);
    EXPECT_TRUE(finding.ok()) << finding.status();
    return finding.ok() ? *finding : TaskFinding();
  }
  // Runs kTask with `from` replaced by `to`.
  static TaskFinding RunChanged(const std::string& from, const std::string& to) {
    const std::string changed = absl::StrReplaceAll(kTask, {{from, to}});
    EXPECT_NE(changed, kTask);
    return Run(changed);
  }

  static inline TaskChecker* checker_ = nullptr;
};

TEST_F(TaskCheckerTest, SoundTasksOfEveryForm) {
  EXPECT_EQ(Run(kTask).reason, "ok");
  EXPECT_EQ(RunChanged("[[], {\"scale\": 2}]", "[2]").reason, "ok");
  EXPECT_EQ(RunChanged("class Model", "class Scale").reason, "ok");
  EXPECT_EQ(Run(absl::StrCat(absl::StrReplaceAll(kTask, {{"class Model", "class Scale"}}),
                             "class Other(Scale):\n    def forward(self, x):\n        return x\n"
                             "Model = Scale\n"))
                .reason,
            "ok");
}

TEST_F(TaskCheckerTest, SaysWhatIsWrongAndWhere) {
  const TaskFinding finding = RunChanged("x * self.scale", "x * self.shift");
  EXPECT_EQ(finding.reason, "run_error");
  EXPECT_THAT(finding.message, HasSubstr("forward fails at line 8: AttributeError"));
  EXPECT_THAT(RunChanged("[[], {\"scale\": 2}]", "[[], {\"factor\": 2}]").message,
              HasSubstr("the model cannot be constructed: TypeError"));
}

TEST_F(TaskCheckerTest, DescribesTheInputsAsFarAsTheyAreMade) {
  EXPECT_THAT(Run(kTask).inputs, ElementsAre("float32[4, 4]"));
  EXPECT_THAT(
      RunChanged("[torch.rand([4, 4])]", "[torch.rand([4, 4]), {'a': 3, 'b': None}]").inputs,
      ElementsAre("float32[4, 4]", "number", "NoneType"));
  EXPECT_THAT(RunChanged("x * self.scale", "x * self.shift").inputs, ElementsAre("float32[4, 4]"));
  EXPECT_THAT(RunChanged("[torch.rand([4, 4])]", "[1 // 0]").inputs, IsEmpty());
}

TEST_F(TaskCheckerTest, InputsAloneNeedNeitherModelNorMemory) {
  const auto inputs = [](const std::string& from, const std::string& to) {
    const auto finding = checker_->RunInputs(absl::StrReplaceAll(kTask, {{from, to}}));
    EXPECT_TRUE(finding.ok()) << finding.status();
    return finding.value_or(TaskFinding());
  };
  const TaskFinding large = inputs("[4, 4]", "[1 << 20, 1 << 20]");  // 4 TiB
  EXPECT_EQ(large.reason, "ok") << large.message;
  EXPECT_THAT(large.inputs, ElementsAre("float32[1048576, 1048576]"));
  EXPECT_THAT(inputs("x * self.scale", "x * self.shift").inputs, ElementsAre("float32[4, 4]"));
  // Reads an element, so that the inputs have to be made.
  EXPECT_THAT(
      inputs("[torch.rand([4, 4])]", "[torch.rand([4, int(torch.ones(1).item()) + 1])]").inputs,
      ElementsAre("float32[4, 2]"));
  EXPECT_EQ(inputs("[torch.rand([4, 4])]", "[1 // 0]").reason, "input_error");
}

TEST_F(TaskCheckerTest, ATaskThatEndsItsProcessHarmsNoOther) {
  const TaskFinding exits = RunChanged("return x *", "__import__('os')._exit(0); return x *");
  EXPECT_EQ(exits.reason, "crashed");
  EXPECT_THAT(exits.message, HasSubstr("ended without a result"));
  const TaskFinding crash = RunChanged("return x *", "__import__('os').abort(); return x *");
  EXPECT_EQ(crash.reason, "crashed");
  EXPECT_THAT(crash.message, HasSubstr("signal 6"));
  EXPECT_EQ(Run(kTask).reason, "ok");
}

TEST_F(TaskCheckerTest, TheVersionTellsLimitsApart) {
  const auto version = TaskChecker::Version({.wall_seconds = 20});
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(*TaskChecker::Version({.wall_seconds = 20}), *version);
  EXPECT_NE(*TaskChecker::Version({.wall_seconds = 21}), *version);
}

TEST(TaskCheckerStartTest, AnUnknownSandboxIsRefused) {
  EXPECT_FALSE(TaskChecker::Start({.sandbox = "chroot"}).ok());
}

}  // namespace
}  // namespace tritonrl
