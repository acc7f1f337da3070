// The fuzzer finds what it must find, and a short run of it finds nothing.
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "exec/testing/fuzz/fuzz_run.h"
#include "exec/testing/fuzz/fuzz_target.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

// Three of its inputs fail, each in another way.
class FailingTarget : public FuzzTarget {
 public:
  std::string Input(uint64_t number) override { return absl::StrCat(number); }
  absl::Status Run(uint64_t number) override {
    if (number == 7) kill(getpid(), SIGTERM);
    if (number == 12) pause();
    if (number == 20) return absl::InternalError("a promise");
    return absl::OkStatus();
  }
};

std::string ReasonFor(const FuzzReport& report, uint64_t number) {
  for (const FuzzFailure& failure : report.failures) {
    if (failure.number == number) return failure.reason;
  }
  return "";
}

TEST(FuzzTest, FailuresAreFoundAndTheOthersRun) {
  for (const int jobs : {1, 3}) {
    FailingTarget target;
    FuzzOptions options{.first = 2, .count = 98, .jobs = jobs, .limit = absl::Seconds(1)};
    uint64_t told = 0;
    options.tell = [&](uint64_t done, size_t) { told = done; };
    const auto report = RunFuzz(&target, options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->done, 98u);
    EXPECT_EQ(told, 98u);
    EXPECT_EQ(report->failures.size(), 3u);
    EXPECT_TRUE(absl::StrContains(ReasonFor(*report, 7), "signal 15"));
    EXPECT_EQ(ReasonFor(*report, 12), "no end in 1s");
    EXPECT_TRUE(absl::StrContains(ReasonFor(*report, 20), "a promise"));
  }
}

TEST(FuzzTest, TheRunEndsAfterSomeFailures) {
  class Broken : public FailingTarget {
   public:
    absl::Status Run(uint64_t) override { return absl::InternalError("always"); }
  } target;
  const auto report = RunFuzz(&target, {.count = 1'000'000, .most_failures = 2});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->failures.size(), 2u);
}

TEST(FuzzTest, AnInputIsAFunctionOfSeedAndNumber) {
  for (const std::string kind : {"streams", "texts", "launches"}) {
    const auto one = MakeFuzzTarget({kind}, 1);
    const auto other = MakeFuzzTarget({kind}, 2);
    ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
    std::vector<std::string> inputs;
    for (uint64_t i = 0; i < 20; ++i) inputs.push_back((*one)->Input(i));
    int different = 0;
    for (uint64_t i = 20; i-- > 0;) {
      EXPECT_EQ((*one)->Input(i), inputs[i]) << kind;
      different += (*other)->Input(i) != inputs[i];
    }
    EXPECT_GT(different, 10) << kind;
  }
  EXPECT_FALSE(MakeFuzzTarget({"cubins"}, 1).ok());
  EXPECT_FALSE(MakeFuzzTarget({}, 1).ok());
}

TEST(FuzzTest, DamagedInputsOfAllKindsHoldWhatMustHold) {
  const auto target = MakeFuzzTarget({"streams", "texts", "launches"}, 5);
  ASSERT_TRUE(target.ok()) << target.status();
  const auto report = RunFuzz(target->get(), {.count = 3000});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->done, 3000u);
  for (const FuzzFailure& failure : report->failures) {
    ADD_FAILURE() << "input " << failure.number << ": " << failure.reason;
  }
}

}  // namespace
}  // namespace tritonrl
