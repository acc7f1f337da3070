// Compares the whole model with `transformers`: that library loads the files of Weights::Save and
// gives the same log-probabilities, entropies and gradients, and LoadWeights reads the files that
// it saves.

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "model/testing/test_util.h"
#include "model/transformer.h"
#include "model/weights/safetensors.h"
#include "model/weights/weights_load.h"

namespace tritonrl {
namespace {

constexpr double kTemperature = 0.8;

struct Case {
  std::string name;
  ModelConfig config;
  int64_t max_shard_bytes;
};

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"qwen3_tied", SmallConfig(ModelFamily::kQwen3, true), int64_t{1} << 40},
      {"qwen3_untied_in_shards", SmallConfig(ModelFamily::kQwen3, false), 40000},
      {"llama3_scaled_rope", SmallConfig(ModelFamily::kLlama, false), int64_t{1} << 40}};
  const auto add = [&](const char* name, ModelFamily family, const RopeScaling& scaling) {
    cases.push_back({name, SmallConfig(family, false), int64_t{1} << 40});
    cases.back().config.rope_scaling = scaling;
    cases.back().config.attention_bias = family != ModelFamily::kQwen2;
    cases.back().config.mlp_bias = family == ModelFamily::kLlama;
  };
  add("qwen2", ModelFamily::kQwen2, {});
  add("qwen3_biases_yarn", ModelFamily::kQwen3,
      {.type = RopeType::kYarn,
       .factor = 4,
       .original_max_positions = 64,
       .attention_factor = 1.2});
  add("llama_biases_linear_rope", ModelFamily::kLlama, {.type = RopeType::kLinear, .factor = 2});
  cases[1].config.rope_theta = 1e6;
  cases[2].config.rope_scaling = {RopeType::kLlama3, 8.0, 1.0, 4.0, 64};
  return cases;
}

class HfTest : public testing::Test {
 protected:
  void SetUp() override { root_ = MakeTempDirectory("hf").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(root_).ok()); }

  void RunOracle(const std::vector<std::string>& folders) {
    const PythonEnv python = FindPythonEnv().value();
    RunCommandOptions options;
    options.timeout = absl::Seconds(200);
    options.env = python.Environment();
    std::vector<std::string> argv = {python.interpreter, Runfile("model/hf_reference.py").value()};
    argv.insert(argv.end(), folders.begin(), folders.end());
    const auto run = RunCommand(argv, options);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(run->ok()) << run->err;
  }

  std::string root_;
};

TEST_F(HfTest, SameNumbersAsTransformers) {
  const std::vector<Case> cases = Cases();
  std::vector<std::string> folders;
  std::vector<std::shared_ptr<Weights>> weights;
  const PackedBatch batch = PackSequences(RandomTokens(cases[0].config, {70, 1, 33}, 2));
  const at::Tensor targets = NextTokenTargets(batch, {20, 1, 3});
  const at::Tensor w = RandomTensor({batch.num_tokens()}, 9).to(at::kFloat);
  at::Tensor offsets = at::empty({4}, at::kLong);
  std::copy(batch.offsets.begin(), batch.offsets.end(), offsets.data_ptr<int64_t>());
  for (const Case& c : cases) {
    folders.push_back(JoinPath(root_, c.name));
    weights.push_back(SmallWeights(c.config, 1));
    ASSERT_TRUE(weights.back()->Save(folders.back(), at::kFloat, c.max_shard_bytes).ok());
    ASSERT_TRUE(WriteSafetensors(JoinPath(folders.back(), "batch.safetensors"),
                                 {{"tokens", batch.tokens},
                                  {"targets", targets},
                                  {"weights", w},
                                  {"offsets", offsets},
                                  {"temperature", at::full({1}, kTemperature, at::kFloat)}})
                    .ok());
  }
  RunOracle(folders);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].name);
    const auto expected =
        SafetensorsReader::OpenFile(JoinPath(folders[i], "expected.safetensors")).value();
    const Transformer model(cases[i].config, weights[i]);
    Activations saved;
    Gradients gradients(*weights[i]);
    const ForwardResult result = model.Forward(batch, targets, kTemperature, &saved);
    model.Backward(saved, w, &gradients);
    EXPECT_LT(MaxDifference(result.log_probs, expected.Read("log_probs").value()), 3e-5);
    EXPECT_LT(MaxDifference(result.entropy, expected.Read("entropy").value()), 3e-5);
    for (const ParameterInfo& info : weights[i]->layout().parameters) {
      const at::Tensor gradient = expected.Read("gradient." + info.name).value();
      EXPECT_LT(RelativeDifference(gradients.Get(info.name), gradient), 5e-5) << info.name;
    }
    const auto resaved = LoadWeights(JoinPath(folders[i], "resaved"), at::kCPU, at::kFloat);
    ASSERT_TRUE(resaved.ok()) << resaved.status();
    EXPECT_TRUE(SameBits((*resaved)->flat(), weights[i]->flat()));
    EXPECT_EQ((*resaved)->config().NumParameters(), cases[i].config.NumParameters());
    EXPECT_EQ((*resaved)->config().rope_theta, cases[i].config.rope_theta);
  }
}

}  // namespace
}  // namespace tritonrl
