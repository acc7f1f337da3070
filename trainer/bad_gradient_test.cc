#include "trainer/bad_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/file.h"
#include "trainer/test_model.h"

namespace tritonrl {
namespace {

TEST(KeepBadGradient, NamesTheParametersAndKeepsTheSequences) {
  const auto folder = MakeTempDirectory("bad_gradient");
  ASSERT_TRUE(folder.ok());
  const auto weights = std::make_shared<Weights>(TinyModelConfig(), at::kCPU, at::kFloat);
  Gradients gradients(*weights);
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  gradients.Get(name)[0][0].fill_(NAN);
  gradients.Get(name)[0][1].fill_(-std::numeric_limits<float>::infinity());
  gradients.Get(name)[1][1].fill_(-2.5);
  const auto path = KeepBadGradient(*folder + "/bad", 12, 3, gradients, {{{"tokens", {1, 2}}}});
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, *folder + "/bad/update_000012_rank_3.json");
  const nlohmann::json kept = nlohmann::json::parse(*ReadFile(*path));
  ASSERT_EQ(kept["parameters"].size(), 1);
  EXPECT_EQ(kept["parameters"][0]["name"], name);
  EXPECT_EQ(kept["parameters"][0]["nan"], 1);
  EXPECT_EQ(kept["parameters"][0]["infinite"], 1);
  EXPECT_EQ(kept["parameters"][0]["largest_finite"], 2.5);
  EXPECT_EQ(kept["sequences"][0]["tokens"][1], 2);
  RemoveTree(*folder).IgnoreError();
}

TEST(KeepBadGradient, AFewAreEnough) {
  const auto folder = MakeTempDirectory("bad_gradient");
  ASSERT_TRUE(folder.ok());
  const auto weights = std::make_shared<Weights>(TinyModelConfig(), at::kCPU, at::kFloat);
  const Gradients gradients(*weights);
  for (int update = 0; update < 20; ++update) {
    const auto path = KeepBadGradient(*folder, update, 0, gradients, {});
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(path->empty(), update >= 16) << update;
  }
  EXPECT_FALSE(KeepBadGradient(*folder, 1, 1, gradients, {})->empty());  // another rank's
  RemoveTree(*folder).IgnoreError();
}

}  // namespace
}  // namespace tritonrl
