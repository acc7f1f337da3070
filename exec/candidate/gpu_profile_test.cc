#include "exec/candidate/gpu_profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace tritonrl {
namespace {

using Json = nlohmann::json;

Json Answer() {
  return Json::parse(R"js({"profiled": {
    "output": {"tensor": {"dtype": "float32", "shape": [4], "stride": [1], "device": "cuda",
                          "layout": "strided", "offset": 0}},
    "kernels": [{"name": "softmax", "calls": 1, "seconds": 2e-5, "own": true},
                {"name": "Memset (Device)", "calls": 2, "seconds": 1e-6, "own": false}],
    "note": ""
}
})js");
}

TEST(GpuProfileTest, ReadsAnAnswer) {
  const auto profile = ParseGpuProfile(Answer().dump(), 64);
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_TRUE(profile->output.has_value());
  EXPECT_EQ(profile->output->at(0).elements, 4);
  ASSERT_EQ(profile->kernels.size(), 2u);
  EXPECT_EQ(profile->kernels[0].name(), "softmax");
  EXPECT_TRUE(profile->kernels[0].own());
  EXPECT_EQ(profile->kernels[1].calls(), 2);
  EXPECT_EQ(profile->kernels[1].seconds(), 1e-6);
}

TEST(GpuProfileTest, ACallThatFailedHasANoteAndNoOutput) {
  Json answer = Answer();
  answer["profiled"]["output"] = nullptr;
  answer["profiled"]["kernels"] = Json::array();
  answer["profiled"]["note"] = "the call failed";
  const auto profile = ParseGpuProfile(answer.dump(), 64);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_FALSE(profile->output.has_value());
  EXPECT_EQ(profile->note, "the call failed");
}

TEST(GpuProfileTest, NonsenseIsRefused) {
  EXPECT_FALSE(ParseGpuProfile("", 64).ok());
  EXPECT_FALSE(ParseGpuProfile("{}", 64).ok());
  EXPECT_FALSE(ParseGpuProfile(Answer().dump(), 8).ok());  // the output does not fit
  const std::pair<const char*, Json> bad[] = {{"calls", -1},
                                              {"seconds", -1.0},
                                              {"seconds", "1"},
                                              {"own", 1},
                                              {"name", 3},
                                              {"more", 1},
                                              {"name", std::string(2000, 'x')}};
  for (const auto& [name, value] : bad) {
    Json answer = Answer();
    answer["profiled"]["kernels"][0][name] = value;
    EXPECT_FALSE(ParseGpuProfile(answer.dump(), 64).ok()) << name;
  }
  Json many = Answer();
  for (int i = 0; i < 100; ++i) {
    many["profiled"]["kernels"].push_back(many["profiled"]["kernels"][0]);
  }
  EXPECT_FALSE(ParseGpuProfile(many.dump(), 64).ok());
  Json more = Answer();
  more["profiled"]["correct"] = true;
  EXPECT_FALSE(ParseGpuProfile(more.dump(), 64).ok());
}

TEST(GpuProfileTest, TheOrderNamesTrialAndTime) {
  EXPECT_EQ(Json::parse(ProfileOrder(2, 1.5)),
            Json::parse(R"({"profile": {"trial": 2, "seconds": 1.5}})"));
}

}  // namespace
}  // namespace tritonrl
