#include "trainer/program/training_program.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace tritonrl {
namespace {

TEST(ExtractOverrides, TakesEveryFormAndLeavesTheRest) {
  std::string words[] = {"prog", "--set", "a=1",    "--config=x", "--set=b=c=d",
                         "-set", "e=2",   "--sets", "--set="};
  char* argv[10] = {};
  int argc = 9;
  for (int i = 0; i < argc; ++i) argv[i] = words[i].data();
  const std::vector<std::string> overrides = ExtractOverrides(&argc, argv);
  EXPECT_EQ(overrides, (std::vector<std::string>{"a=1", "b=c=d", "e=2", ""}));
  ASSERT_EQ(argc, 3);
  EXPECT_STREQ(argv[1], "--config=x");
  EXPECT_STREQ(argv[2], "--sets");
  EXPECT_EQ(argv[3], nullptr);
}

TEST(SignalHandler, NotesASignal) {
  const SignalHandler stop = NoteStopSignals();
  EXPECT_FALSE(stop.requested());
  raise(SIGUSR1);
  EXPECT_EQ(stop.received(), SIGUSR1);
}

}  // namespace
}  // namespace tritonrl
