#include "tools/distill/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tasks/response.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

constexpr char kCode[] = "```python\nx = 1\n```\n";

TEST(FindTeacherTest, HasThePapersSampling) {
  EXPECT_EQ(FindTeacher("r1")->temperature, 0.6);
  EXPECT_EQ(FindTeacher("r1")->top_p, 0.95);
  EXPECT_EQ(FindTeacher("gpt-oss-120b")->temperature, 1.0);
  EXPECT_EQ(FindTeacher("gpt-oss-120b")->top_p, 1.0);
  EXPECT_EQ(FindTeacher("claude").status().message(),
            "--teacher=claude is unknown: r1 or gpt-oss-120b");
}

TEST(TaughtTextTest, HasThinkingAndCode) {
  const std::string whole = absl::StrCat("<think>\nplan\n</think>\n\n", kCode);
  EXPECT_EQ(TaughtText({.text = absl::StrCat("\n\n", kCode), .reasoning = "\nplan\n"}), whole);
  EXPECT_EQ(TaughtText({.text = whole}), whole);
  // The chat template had opened the plan in the prompt.
  EXPECT_EQ(TaughtText({.text = absl::StrCat("plan\n</think>\n\n", kCode)}), whole);
  EXPECT_EQ(TaughtText({.text = kCode}), kCode);
  for (const EndpointChoice& choice :
       {EndpointChoice{.text = kCode, .reasoning = "plan"}, EndpointChoice{.text = whole}}) {
    EXPECT_TRUE(ReadResponse(TaughtText(choice), ResponseStyle()).valid());
  }
}

TEST(EvalTasksTest, IsAFunctionOfSeedAndNames) {
  std::vector<Task> tasks;
  for (int i = 0; i < 200; ++i) tasks.push_back({.id = absl::StrCat("task ", i)});
  const auto eval = EvalTasks(tasks, 0.1, 1);
  EXPECT_EQ(eval.size(), 20);
  std::vector<Task> reversed(tasks.rbegin(), tasks.rend());
  EXPECT_EQ(EvalTasks(reversed, 0.1, 1), eval);
  EXPECT_NE(EvalTasks(tasks, 0.1, 2), eval);
  EXPECT_TRUE(EvalTasks(tasks, 0, 1).empty());
  EXPECT_EQ(EvalTasks({tasks[0], tasks[1]}, 0.01, 1).size(), 1);
  EXPECT_TRUE(EvalTasks({tasks[0]}, 0.01, 1).empty());
}

}  // namespace
}  // namespace tritonrl
