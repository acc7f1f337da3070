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

using Json = nlohmann::json;
using Floats = std::vector<float>;

constexpr int kTrials = 2;
const Floats kRight[kTrials] = {{1, 2, 3, 4}, {5, 6, 7, 8}};

// A runner that answers orders from a function; its memory holds four floats.
class FakeRunner {
 public:
  // Output of an order, or nothing: forward raises.
  using Forward = std::function<std::optional<Floats>(const Json& order)>;

  explicit FakeRunner(Forward forward) : forward_(std::move(forward)) {}

  AblationResult Run(const Json& kernels, absl::Duration time = absl::Seconds(60)) {
    AblationSetup setup;
    setup.trials = kTrials;
    setup.memory_bytes = sizeof(memory_);
    setup.provide = [this](int trial) { provided.push_back(trial); };
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
    return Ablate(setup, Json{{"kernels", kernels}}.dump(), [this](const std::string& order) {
      orders.push_back(Json::parse(order)["ablate"]);
      return answer ? answer(orders.back()) : std::optional<std::string>(Answer(orders.back()));
    });
  }

  std::string Answer(const Json& order) {
    Json json = {{"ablated", orders.size() - 1},
                 {"output", nullptr},
                 {"raised", ""},
                 {"left_out", left_out}};
    json["late"] = false;
    if (const std::optional<Floats> output = forward_(order)) {
      memcpy(memory_, output->data(), sizeof(memory_));
      json["output"] = Layout();
    } else {
      json["raised"] = "ValueError: no";
    }
    return json.dump();
  }

  static Json Layout() {
    return Json::parse(
        R"({"tensor": {"dtype": "float32", "shape": [4], "stride": [1], "device": "cpu",
            "layout": "strided", "offset": 0}})");
  }

  double atol = 1e-2;
  int left_out = 1;
  std::vector<Json> orders;
  std::vector<int> provided;  // trials
  // Takes the place of Answer where it is set.
  std::function<std::optional<std::string>(const Json&)> answer;

 private:
  absl::string_view memory() const { return absl::string_view(memory_, sizeof(memory_)); }

  const Forward forward_;
  SavedOutput kept_;
  alignas(8) char memory_[16] = {};
};

Floats Scaled(const Json& order) {
  Floats values = kRight[order["trial"].get<int>()];
  for (float& value : values) value *= order["scale"].get<float>();
  return values;
}

// What relu makes of it.
Floats Positive(Floats values) {
  for (float& value : values) value = std::max(value, 0.0f);
  return values;
}

const Json kOne = Json::parse(R"([["f", 3]])");
const Json kTwo = Json::parse(R"([["f", 3], ["g", 9]])");

TEST(AblationTest, AKernelThatDoesTheWorkChangesTheResult) {
  FakeRunner runner(
      [](const Json& order) { return order["skip"] == "all" ? Floats(4) : Scaled(order); });
  const AblationResult result = runner.Run(kOne);
  EXPECT_TRUE(result.violation.ok());
  EXPECT_EQ(result.all, ABLATION_CHANGED);
  ASSERT_EQ(result.kernels.size(), 1u);
  EXPECT_EQ(result.kernels[0].name(), "f");
  EXPECT_EQ(result.kernels[0].line(), 3);
  EXPECT_EQ(result.kernels[0].effect(), ABLATION_CHANGED);
  EXPECT_EQ(runner.orders.size(), 1u);  // one call settles it
}

TEST(AblationTest, WhatNeedsNoKernelIsDecoration) {
  FakeRunner runner([](const Json& order) { return Scaled(order); });
  const AblationResult result = runner.Run(kTwo);
  EXPECT_EQ(result.all, ABLATION_UNCHANGED);
  for (const KernelAblation& kernel : result.kernels) {
    EXPECT_EQ(kernel.effect(), ABLATION_UNCHANGED);
  }
  // Confirmed on other inputs, another trial and with another pattern in fresh memory.
  ASSERT_EQ(runner.orders.size(), 5u);
  EXPECT_NE(runner.orders[1]["trial"], runner.orders[0]["trial"]);
  EXPECT_NE(runner.orders[1]["pattern"], runner.orders[0]["pattern"]);
  EXPECT_EQ(runner.orders[2]["skip"], "none");
  EXPECT_NE(runner.orders[3]["trial"], runner.orders[2]["trial"]);
  EXPECT_LT(runner.orders[3]["scale"], 0);
  EXPECT_EQ(runner.orders[4]["skip"], "none");
}

TEST(AblationTest, AKernelThatHasNothingToDoOnTheTasksInputsIsNoDecoration) {
  // relu in place on a copy of inputs that are all positive.
  FakeRunner runner([](const Json& order) {
    return order["skip"] == "none" ? Positive(Scaled(order)) : Scaled(order);
  });
  EXPECT_EQ(runner.Run(kOne).all, ABLATION_CHANGED);
}

TEST(AblationTest, SmallOutputsAreNotTakenForUnchanged) {
  // Zeros are right within a tolerance of 10, but they are not what the kernels make.
  FakeRunner runner(
      [](const Json& order) { return order["skip"] == "none" ? Scaled(order) : Floats(4); });
  runner.atol = 10;
  EXPECT_EQ(runner.Run(kOne).all, ABLATION_CHANGED);
  EXPECT_EQ(runner.orders.size(), 3u);
}

TEST(AblationTest, APatternThatIsRightByChanceIsSeen) {
  FakeRunner runner([](const Json& order) {
    const bool whole = order["skip"] == "none" || order["pattern"] == 0;
    return whole ? Scaled(order) : Floats(4);
  });
  EXPECT_EQ(runner.Run(kOne).all, ABLATION_CHANGED);
}

TEST(AblationTest, AnAdditionTooSmallToSeeHidesNothing) {
  FakeRunner runner([](const Json& order) {
    Floats values = Scaled(order);
    if (order["skip"] == "none") values[0] += 1e-5f;
    return values;
  });
  EXPECT_EQ(runner.Run(kOne).all, ABLATION_UNCHANGED);
}

TEST(AblationTest, EachKernelIsLeftOutInTurn) {
  FakeRunner runner([](const Json& order) {
    const bool changed = order["skip"] == "all" || order["skip"] == 1;
    return changed ? Floats(4) : Scaled(order);
  });
  const AblationResult result = runner.Run(kTwo);
  EXPECT_EQ(result.all, ABLATION_CHANGED);
  EXPECT_EQ(result.kernels[0].effect(), ABLATION_UNCHANGED);
  EXPECT_EQ(result.kernels[1].effect(), ABLATION_CHANGED);
}

TEST(AblationTest, AKernelThatIsNotLaunchedAgainCannotBeTried) {
  FakeRunner runner(
      [](const Json& order) { return order["skip"] == "all" ? Floats(4) : Scaled(order); });
  runner.left_out = 0;
  const AblationResult result = runner.Run(kTwo);
  EXPECT_EQ(result.all, ABLATION_CHANGED);
  EXPECT_EQ(result.kernels[0].effect(), ABLATION_NOT_TRIED);
  EXPECT_NE(result.kernels[0].text(), "");
}

TEST(AblationTest, AnErrorIsAChange) {
  FakeRunner runner([](const Json& order) {
    return order["skip"] == "none" ? std::optional<Floats>(Scaled(order)) : std::nullopt;
  });
  const AblationResult result = runner.Run(kOne);
  EXPECT_EQ(result.all, ABLATION_CHANGED);
  EXPECT_EQ(result.kernels[0].text(), "ValueError: no");
}

TEST(AblationTest, OnlySoManyKernelsAreTried) {
  FakeRunner runner(
      [](const Json& order) { return order["skip"] == "none" ? Scaled(order) : Floats(4); });
  Json kernels = Json::array();
  for (int i = 0; i < kMostAblations + 2; ++i)
    kernels.push_back(Json::array({absl::StrCat("f", i), i}));
  const AblationResult result = runner.Run(kernels);
  EXPECT_EQ(result.kernels[kMostAblations - 1].effect(), ABLATION_CHANGED);
  EXPECT_EQ(result.kernels[kMostAblations].effect(), ABLATION_NOT_TRIED);
  EXPECT_NE(result.kernels[kMostAblations].text(), "");
  EXPECT_EQ(static_cast<int>(runner.orders.size()), 1 + kMostAblations);
}

TEST(AblationTest, LateAndLostCallsAreNotTried) {
  FakeRunner late([](const Json& order) { return Scaled(order); });
  late.answer = [](const Json&) {
    return std::string(
        R"({"ablated": 0, "output": null, "raised": "too slow", "late": true, "left_out": 1})");
  };
  AblationResult result = late.Run(kTwo);
  EXPECT_EQ(result.all, ABLATION_NOT_TRIED);
  EXPECT_EQ(result.kernels[1].text(), "too slow");
  EXPECT_EQ(late.Run(kTwo, absl::Seconds(-1)).all, ABLATION_NOT_TRIED);
  EXPECT_EQ(late.orders.size(), 1u);  // no time, no order

  FakeRunner lost(
      [](const Json& order) { return order["skip"] == "all" ? Floats(4) : Scaled(order); });
  lost.answer = [&lost](const Json& order) {
    return order["skip"] == "all" ? std::optional<std::string>(lost.Answer(order)) : std::nullopt;
  };
  result = lost.Run(kTwo);
  EXPECT_TRUE(result.ended);
  EXPECT_EQ(result.kernels[0].effect(), ABLATION_CHANGED);  // it died of it
  EXPECT_EQ(result.kernels[1].effect(), ABLATION_NOT_TRIED);
}

TEST(AblationTest, WhatCannotBeConfirmedIsUnclear) {
  FakeRunner runner([](const Json& order) { return Scaled(order); });
  runner.answer = [&runner](const Json& order) {
    return runner.orders.size() < 4 ? std::optional<std::string>(runner.Answer(order))
                                    : std::nullopt;
  };
  const AblationResult result = runner.Run(kOne);
  EXPECT_EQ(result.all, ABLATION_UNCLEAR);
  EXPECT_NE(result.kernels[0].text(), "");
}

TEST(AblationTest, NonsenseIsAViolation) {
  for (
      const char* bad :
      {"", "[]", "{}",
       R"({"ablated": 1, "output": null, "raised": "x", "late": false, "left_out": 1})",
       R"({"ablated": 0, "output": {"tensor": {}}, "raised": "", "late": false, "left_out": 1})",
       R"({"ablated": 0, "output": null, "raised": 3, "late": false, "left_out": 1})",
       R"({"ablated": 0, "output": null, "raised": "x", "late": false, "left_out": 1, "more": 1})"}) {
    FakeRunner runner([](const Json& order) { return Scaled(order); });
    runner.answer = [bad](const Json&) { return std::string(bad); };
    EXPECT_FALSE(runner.Run(kTwo).violation.ok()) << bad;
    EXPECT_EQ(runner.orders.size(), 1u) << bad;
  }
  for (const char* bad :
       {"null", R"([["f"]])", R"([["f", "3"]])", R"([["f", -1]])", R"([[3, 3]])"}) {
    FakeRunner runner([](const Json& order) { return Scaled(order); });
    EXPECT_FALSE(runner.Run(Json::parse(bad)).violation.ok()) << bad;
  }
}

}  // namespace
}  // namespace tritonrl
