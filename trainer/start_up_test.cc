#include "trainer/start_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace tritonrl {
namespace {

TEST(StartUpTest, NamesWhatTookLongAndSumsTheRest) {
  StartUp start_up;
  start_up.Part("nothing");
  absl::SleepFor(absl::Milliseconds(120));
  start_up.Part("weights");
  start_up.Part("nothing either");
  absl::SleepFor(absl::Milliseconds(120));
  start_up.Part("weights");
  const std::string text = start_up.Text();
  EXPECT_THAT(text, testing::StartsWith("first step begins "));
  EXPECT_THAT(text, testing::HasSubstr(" s after the launch: "));
  EXPECT_THAT(text, testing::HasSubstr("weights 0."));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("weights 0.1")));  // both times together
  EXPECT_THAT(text, testing::HasSubstr("the rest 0."));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("nothing")));
}

}  // namespace
}  // namespace tritonrl
