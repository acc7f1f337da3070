#include "tools/augment_inputs/variant_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RequestKeyTest, TheFirstRoundHasTheTasksName) {
  EXPECT_EQ(RequestKey("level1/a", 1), "level1/a");
  EXPECT_EQ(RequestKey("level1/a", 3), "level1/a#3");
}

class AgainPromptTest : public testing::Test {
 protected:
  AgainPromptTest() {
    options_.prompt_again = "{task}|{variants}|{shapes}|{failed}|{limits}";
    options_.check.wall_seconds = 90;
    task_.source = "the {shapes} of x";
    family_.task = &task_;
  }

  AugmentOptions options_;
  Task task_;
  Family family_;
};

TEST_F(AgainPromptTest, NamesWhatIsThereAndWhatFailed) {
  family_.inputs = {"float32[4, 8]", "number"};
  family_.variants = {
      {.finding = {"ok", "", {"float32[5, 8]", "number"}}},
      {.finding = {"ok", "", {"float32[6]", "number"}}, .left_out = "other inputs: why"},
      {.function = "def get_inputs():\n    return [big]", .left_out = "timeout: slow"}};
  EXPECT_EQ(AgainPrompt(options_, family_),
            "the {shapes} of x|4|- float32[4, 8], number\n- float32[5, 8], number|"
            "- float32[6], number: other inputs: why\n"
            "- def get_inputs(): return [big]: timeout: slow|90 seconds and 4 GiB");
}

TEST_F(AgainPromptTest, StaysShort) {
  EXPECT_EQ(AgainPrompt(options_, family_),
            "the {shapes} of x|5|- none so far|- none|90 seconds and 4 GiB");
  for (int i = 0; i < 30; ++i) {
    family_.variants.push_back({.function = absl::StrCat("variant ", i, std::string(5000, 'x')),
                                .left_out = absl::StrCat("run_error: ", std::string(5000, 'y'))});
  }
  const std::string prompt = AgainPrompt(options_, family_);
  EXPECT_LT(prompt.size(), 5000);
  EXPECT_THAT(prompt, HasSubstr("- variant 29x"));
  EXPECT_THAT(prompt, Not(HasSubstr("- variant 19x")));
}

}  // namespace
}  // namespace tritonrl
