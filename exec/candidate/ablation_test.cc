#include "exec/candidate/ablation.h"

#include <gtest/gtest.h>
#include <string.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/compare/tensor_compare.h"
#include "exec/compare/tensor_layout.h"

namespace tritonrl {
namespace {

using Floats = std::vector<float>;

constexpr int kTrials = 2;
const Floats kRight[kTrials] = {{1, 2, 3, 4}, {5, 6, 7, 8}};

// An executor whose calls a function makes; its memory holds four floats.
class FakeCalls {
 public:
  // Output of a call, or nothing: forward raises.
  using Forward = std::function<std::optional<Floats>(const AblatedCall& call)>;

  explicit FakeCalls(Forward forward) : forward_(std::move(forward)) {}

  AblationResult Run(const std::vector<KernelAblation>& kernels,
                     absl::Duration time = absl::Seconds(60)) {
    AblationSetup setup;
    setup.trials = kTrials;
    setup.call = [this](const AblatedCall& call) {
      calls.push_back(call);
      return answer ? answer(call) : Answer(call);
    };
    setup.keep = [this](const std::vector<Leaf>& output) { kept_.Keep({output, memory()}); };
    setup.same_as_kept = [this](const std::vector<Leaf>& output) {
      return kept_.IsSame({output, memory()});
    };
    setup.is_right = [this](int trial, const std::vector<Leaf>&) {
      for (int i = 0; i < 4; ++i) {
        float value;
        memcpy(&value, memory_ + 4 * i, 4);
        if (!(std::abs(value - kRight[trial][i]) <= atol)) return false;
      }
      return true;
    };
    setup.until = absl::Now() + time;
    return Ablate(setup, kernels);
  }

  absl::StatusOr<AblatedOutput> Answer(const AblatedCall& call) {
    const std::optional<Floats> output = forward_(call);
    if (!output.has_value()) return absl::InternalError("ValueError: no");
    memcpy(memory_, output->data(), sizeof(memory_));
    return AblatedOutput{Layout(), left_out};
  }

  static std::vector<Leaf> Layout() {
    return *ParseLayout(
        nlohmann::json::parse(
            R"({"tensor": {"dtype": "float32", "shape": [4], "stride": [1], "device": "cpu",
                "layout": "strided", "offset": 0}})"),
        sizeof(memory_));
  }

  double atol = 1e-2;
  int left_out = 1;
  std::vector<AblatedCall> calls;
  // Takes the place of Answer where it is set.
  std::function<absl::StatusOr<AblatedOutput>(const AblatedCall&)> answer;

 private:
  absl::string_view memory() const { return absl::string_view(memory_, sizeof(memory_)); }

  const Forward forward_;
  SavedOutput kept_;
  alignas(8) char memory_[16] = {};
};

bool IsWhole(const AblatedCall& call) { return !call.all && !call.kernel.has_value(); }

Floats Scaled(const AblatedCall& call) {
  Floats values = kRight[call.trial];
  for (float& value : values) value *= static_cast<float>(call.scale);
  return values;
}

// What relu makes of it.
Floats Positive(Floats values) {
  for (float& value : values) value = std::max(value, 0.0f);
  return values;
}

std::vector<KernelAblation> Kernels(int count) {
  std::vector<KernelAblation> kernels(count);
  for (int i = 0; i < count; ++i) {
    kernels[i].set_name(absl::StrCat("f", i));
    kernels[i].set_line(i);
  }
  return kernels;
}

TEST(AblationTest, AKernelThatDoesTheWorkChangesTheResult) {
  FakeCalls runs([](const AblatedCall& call) { return call.all ? Floats(4) : Scaled(call); });
  const AblationResult result = runs.Run(Kernels(1));
  EXPECT_EQ(result.all, ABLATION_CHANGED);
  ASSERT_EQ(result.kernels.size(), 1u);
  EXPECT_EQ(result.kernels[0].name(), "f0");
  EXPECT_EQ(result.kernels[0].effect(), ABLATION_CHANGED);
  EXPECT_EQ(runs.calls.size(), 1u);  // one call settles it
}

TEST(AblationTest, WhatNeedsNoKernelIsDecoration) {
  FakeCalls runs([](const AblatedCall& call) { return Scaled(call); });
  const AblationResult result = runs.Run(Kernels(2));
  EXPECT_EQ(result.all, ABLATION_UNCHANGED);
  for (const KernelAblation& kernel : result.kernels) {
    EXPECT_EQ(kernel.effect(), ABLATION_UNCHANGED);
  }
  // Confirmed on other inputs, another trial and with another pattern in fresh memory.
  ASSERT_EQ(runs.calls.size(), 5u);
  EXPECT_NE(runs.calls[1].trial, runs.calls[0].trial);
  EXPECT_NE(runs.calls[1].pattern, runs.calls[0].pattern);
  EXPECT_TRUE(IsWhole(runs.calls[2]));
  EXPECT_NE(runs.calls[3].trial, runs.calls[2].trial);
  EXPECT_LT(runs.calls[3].scale, 0);
  EXPECT_TRUE(IsWhole(runs.calls[4]));
}

TEST(AblationTest, AKernelThatHasNothingToDoOnTheTasksInputsIsNoDecoration) {
  // relu in place on a copy of inputs that are all positive.
  FakeCalls runs([](const AblatedCall& call) {
    return IsWhole(call) ? Positive(Scaled(call)) : Scaled(call);
  });
  EXPECT_EQ(runs.Run(Kernels(1)).all, ABLATION_CHANGED);
}

TEST(AblationTest, SmallOutputsAreNotTakenForUnchanged) {
  // Zeros are right within a tolerance of 10, but they are not what the kernels make.
  FakeCalls runs([](const AblatedCall& call) { return IsWhole(call) ? Scaled(call) : Floats(4); });
  runs.atol = 10;
  EXPECT_EQ(runs.Run(Kernels(1)).all, ABLATION_CHANGED);
  EXPECT_EQ(runs.calls.size(), 3u);
}

TEST(AblationTest, APatternThatIsRightByChanceIsSeen) {
  FakeCalls runs([](const AblatedCall& call) {
    const bool whole = IsWhole(call) || !call.pattern;
    return whole ? Scaled(call) : Floats(4);
  });
  EXPECT_EQ(runs.Run(Kernels(1)).all, ABLATION_CHANGED);
}

TEST(AblationTest, AnAdditionTooSmallToSeeHidesNothing) {
  FakeCalls runs([](const AblatedCall& call) {
    Floats values = Scaled(call);
    if (IsWhole(call)) values[0] += 1e-5f;
    return values;
  });
  EXPECT_EQ(runs.Run(Kernels(1)).all, ABLATION_UNCHANGED);
}

TEST(AblationTest, EachKernelIsLeftOutInTurn) {
  FakeCalls runs([](const AblatedCall& call) {
    const bool changed = call.all || call.kernel == 1;
    return changed ? Floats(4) : Scaled(call);
  });
  const AblationResult result = runs.Run(Kernels(2));
  EXPECT_EQ(result.all, ABLATION_CHANGED);
  EXPECT_EQ(result.kernels[0].effect(), ABLATION_UNCHANGED);
  EXPECT_EQ(result.kernels[1].effect(), ABLATION_CHANGED);
}

TEST(AblationTest, AKernelThatIsNotLaunchedAgainCannotBeTried) {
  FakeCalls runs([](const AblatedCall& call) { return call.all ? Floats(4) : Scaled(call); });
  runs.left_out = 0;
  const AblationResult result = runs.Run(Kernels(2));
  EXPECT_EQ(result.all, ABLATION_CHANGED);
  EXPECT_EQ(result.kernels[0].effect(), ABLATION_NOT_TRIED);
  EXPECT_NE(result.kernels[0].text(), "");
}

TEST(AblationTest, AnErrorIsAChange) {
  FakeCalls runs([](const AblatedCall& call) {
    return IsWhole(call) ? std::optional<Floats>(Scaled(call)) : std::nullopt;
  });
  const AblationResult result = runs.Run(Kernels(1));
  EXPECT_EQ(result.all, ABLATION_CHANGED);
  EXPECT_EQ(result.kernels[0].text(), "ValueError: no");
}

TEST(AblationTest, OnlySoManyKernelsAreTried) {
  FakeCalls runs([](const AblatedCall& call) { return IsWhole(call) ? Scaled(call) : Floats(4); });
  const AblationResult result = runs.Run(Kernels(kMostAblations + 2));
  EXPECT_EQ(result.kernels[kMostAblations - 1].effect(), ABLATION_CHANGED);
  EXPECT_EQ(result.kernels[kMostAblations].effect(), ABLATION_NOT_TRIED);
  EXPECT_NE(result.kernels[kMostAblations].text(), "");
  EXPECT_EQ(static_cast<int>(runs.calls.size()), 1 + kMostAblations);
}

TEST(AblationTest, LateCallsAreNotTried) {
  FakeCalls late([](const AblatedCall& call) { return Scaled(call); });
  late.answer = [](const AblatedCall&) { return absl::DeadlineExceededError("too slow"); };
  const AblationResult result = late.Run(Kernels(2));
  EXPECT_EQ(result.all, ABLATION_NOT_TRIED);
  EXPECT_EQ(result.kernels[1].text(), "too slow");
  EXPECT_EQ(late.Run(Kernels(2), absl::Seconds(-1)).all, ABLATION_NOT_TRIED);
  EXPECT_EQ(late.calls.size(), 1u);  // no time, no call
}

TEST(AblationTest, WhatCannotBeConfirmedIsUnclear) {
  FakeCalls runs([](const AblatedCall& call) { return Scaled(call); });
  runs.answer = [&runs](const AblatedCall& call) -> absl::StatusOr<AblatedOutput> {
    if (runs.calls.size() >= 4) return absl::DeadlineExceededError("too slow");
    return runs.Answer(call);
  };
  const AblationResult result = runs.Run(Kernels(1));
  EXPECT_EQ(result.all, ABLATION_UNCLEAR);
  EXPECT_NE(result.kernels[0].text(), "");
}

}  // namespace
}  // namespace tritonrl
