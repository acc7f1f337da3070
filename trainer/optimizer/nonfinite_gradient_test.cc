#include "trainer/optimizer/nonfinite_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/file.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

TEST(DumpNonFiniteGradient, NamesTheParametersAndKeepsTheSequences) {
  const auto folder = MakeTempDirectory("bad_gradient");
  ASSERT_TRUE(folder.ok());
  const auto weights = std::make_shared<Weights>(TinyModelConfig(), at::kCPU, at::kFloat);
  Gradients gradients(*weights);
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  gradients.Get(name)[0][0].fill_(NAN);
  gradients.Get(name)[0][1].fill_(-std::numeric_limits<float>::infinity());
  gradients.Get(name)[1][1].fill_(-2.5);
  const std::string path = *folder + "/bad/update_000012_rank_0.json";
  const AdamW optimizer(OptimizerConfig(), weights);
  const std::string said =
      DumpNonFiniteGradient(*folder + "/bad", 12, optimizer, gradients, {{{"tokens", {1, 2}}}});
  EXPECT_NE(said.find("kept in " + path), std::string::npos) << said;
  const nlohmann::json kept = nlohmann::json::parse(*ReadFile(path));
  ASSERT_EQ(kept["parameters"].size(), 1);
  EXPECT_EQ(kept["gradient"], "of this rank, not reduced");
  EXPECT_EQ(kept["parameters"][0]["name"], name);
  EXPECT_EQ(kept["parameters"][0]["nan"], 1);
  EXPECT_EQ(kept["parameters"][0]["infinite"], 1);
  EXPECT_EQ(kept["parameters"][0]["largest_finite"], 2.5);
  EXPECT_EQ(kept["sequences"][0]["tokens"][1], 2);
  RemoveTree(*folder).IgnoreError();
}

TEST(DumpNonFiniteGradient, AFewAreEnough) {
  const auto folder = MakeTempDirectory("bad_gradient");
  ASSERT_TRUE(folder.ok());
  const auto weights = std::make_shared<Weights>(TinyModelConfig(), at::kCPU, at::kFloat);
  const Gradients gradients(*weights);
  const AdamW optimizer(OptimizerConfig(), weights);
  for (int update = 0; update < 20; ++update) {
    const std::string said = DumpNonFiniteGradient(*folder, update, optimizer, gradients, {});
    EXPECT_EQ(said.substr(0, 7) == "kept in", update < 16) << said;
  }
  ASSERT_TRUE(WriteFileAtomic(*folder + "/file", "").ok());
  EXPECT_EQ(DumpNonFiniteGradient(*folder + "/file/x", 1, optimizer, gradients, {}).substr(0, 20),
            "it could not be kept");
  RemoveTree(*folder).IgnoreError();
}

}  // namespace
}  // namespace tritonrl
