#include "trainer/optimizer/adamw.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "model/testing/test_util.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

TEST(LearningRate, RisesLinearlyThenStays) {
  OptimizerConfig config;
  config.set_learning_rate(0.4);
  config.set_warmup_steps(4);
  EXPECT_DOUBLE_EQ(LearningRate(config, 0, 100), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(config, 2, 100), 0.3);
  EXPECT_DOUBLE_EQ(LearningRate(config, 3, 100), 0.4);
  EXPECT_DOUBLE_EQ(LearningRate(config, 99, 100), 0.4);
}

TEST(LearningRate, TheWarmUpMayBeAShareOfTheSteps) {
  OptimizerConfig config;
  config.set_warmup_share(0.1);
  EXPECT_EQ(WarmupSteps(config, 7500), 750);
  EXPECT_EQ(WarmupSteps(config, 19), 1);
  config.set_learning_rate(0.4);
  EXPECT_DOUBLE_EQ(LearningRate(config, 0, 40), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(config, 3, 40), 0.4);
  EXPECT_DOUBLE_EQ(LearningRate(config, 0, 9), 0.4);  // less than one step: none
}

TEST(LearningRate, CosineEndsAtTheFinalFraction) {
  OptimizerConfig config;
  config.set_learning_rate(2.0);
  config.set_schedule(COSINE);
  config.set_final_fraction(0.1);
  config.set_warmup_steps(10);
  EXPECT_DOUBLE_EQ(LearningRate(config, 9, 111), 2.0);
  EXPECT_DOUBLE_EQ(LearningRate(config, 10, 111), 2.0);
  EXPECT_NEAR(LearningRate(config, 60, 111), 2.0 * (0.1 + 0.9 * 0.5), 1e-12);  // half way
  EXPECT_NEAR(LearningRate(config, 110, 111), 0.2, 1e-12);                     // last step
  EXPECT_NEAR(LearningRate(config, 500, 111), 0.2, 1e-12);                     // never rises again
}

// AdamW for one scalar parameter in double, as in the paper.
struct Scalar {
  double w, m = 0, v = 0;
  void Step(double g, double lr, double decay, const OptimizerConfig& c, int t) {
    m = c.beta1() * m + (1 - c.beta1()) * g;
    v = c.beta2() * v + (1 - c.beta2()) * g * g;
    const double m_hat = m / (1 - std::pow(c.beta1(), t));
    const double v_hat = v / (1 - std::pow(c.beta2(), t));
    w = w - lr * decay * w - lr * m_hat / (std::sqrt(v_hat) + c.adam_epsilon());
  }
};

OptimizerConfig TestConfig() {
  OptimizerConfig config;
  config.set_weight_decay(0.1);
  config.set_clip_norm(0);
  return config;
}

TEST(AdamW, FirstStepIsTheSignOfTheGradient) {
  auto weights = std::make_shared<Weights>(TinyModelConfig(), at::kCPU, at::kFloat);
  AdamW optimizer(TestConfig(), weights);
  Gradients gradients(*weights);
  gradients.flat().fill_(-3);
  const UpdateResult result = optimizer.Step(0.01, &gradients).value();
  // Zero weights do not decay; m_hat / sqrt(v_hat) = -1.
  EXPECT_NEAR(weights->Get("model.norm.weight")[0].item<float>(), 0.01, 1e-7);
  EXPECT_FALSE(result.skipped);
  EXPECT_EQ(optimizer.updates(), 1);
}

TEST(AdamW, FollowsTheFormulaAndDecaysOnlyMatrices) {
  const OptimizerConfig config = TestConfig();
  auto weights = Weights::RandomInit(TinyModelConfig(), 1);
  AdamW optimizer(config, weights);
  Gradients gradients(*weights);
  const std::string matrix = "model.layers.0.mlp.up_proj.weight", norm = "model.norm.weight";
  Scalar m{weights->Get(matrix)[1][2].item<float>()}, n{weights->Get(norm)[3].item<float>()};
  Philox random(5);
  for (int t = 1; t <= 10; ++t) {
    const double gm = static_cast<float>(random.Normal()), gn = static_cast<float>(random.Normal());
    gradients.Zero();
    gradients.Get(matrix)[1][2].fill_(gm);
    gradients.Get(norm)[3].fill_(gn);
    const UpdateResult result = optimizer.Step(0.01, &gradients).value();
    EXPECT_NEAR(result.gradient_norm, std::hypot(gm, gn), 1e-5);
    m.Step(gm, 0.01, 0.1, config, t);
    n.Step(gn, 0.01, 0.0, config, t);
    EXPECT_NEAR(weights->Get(matrix)[1][2].item<float>(), m.w, 1e-6) << t;
    EXPECT_NEAR(weights->Get(norm)[3].item<float>(), n.w, 1e-6) << t;
  }
}

TEST(AdamW, ClipsTheGlobalNorm) {
  OptimizerConfig config = TestConfig();
  config.set_clip_norm(1.0);
  auto weights = Weights::RandomInit(TinyModelConfig(), 1);
  AdamW optimizer(config, weights);
  Gradients gradients(*weights);
  gradients.Get("model.norm.weight")[0].fill_(3);
  gradients.Get("model.norm.weight")[1].fill_(4);
  EXPECT_NEAR(optimizer.Step(0.01, &gradients)->gradient_norm, 5.0, 1e-6);
  // The moments are updated with the clipped gradient (0.6, 0.8).
  const ParameterInfo* info = nullptr;
  for (const ParameterInfo& p : weights->layout().parameters) {
    if (p.name == "model.norm.weight") info = &p;
  }
  ASSERT_NE(info, nullptr);
  EXPECT_NEAR(optimizer.first_moment()[info->offset].item<float>(), 0.1 * 0.6, 1e-6);
  EXPECT_NEAR(optimizer.second_moment()[info->offset + 1].item<float>(), 0.05 * 0.64, 1e-6);
}

TEST(AdamW, LeavesOutAGradientThatIsNotFinite) {
  auto weights = Weights::RandomInit(TinyModelConfig(), 1);
  const at::Tensor before = weights->flat().clone();
  AdamW optimizer(TestConfig(), weights);
  Gradients gradients(*weights);
  gradients.Get("model.norm.weight")[0].fill_(std::numeric_limits<float>::quiet_NaN());
  const UpdateResult result = optimizer.Step(0.01, &gradients).value();
  EXPECT_TRUE(result.skipped);
  EXPECT_TRUE(weights->flat().equal(before));
  EXPECT_EQ(optimizer.updates(), 0);

  OptimizerConfig config;
  config.set_max_consecutive_skipped(2);
  int in_a_row = 0;
  EXPECT_TRUE(CountSkippedUpdate(config, result, &in_a_row).ok());
  EXPECT_TRUE(CountSkippedUpdate(config, UpdateResult{}, &in_a_row).ok());
  EXPECT_EQ(in_a_row, 0);
  EXPECT_TRUE(CountSkippedUpdate(config, result, &in_a_row).ok());
  EXPECT_FALSE(CountSkippedUpdate(config, result, &in_a_row).ok());
}

TEST(AdamW, KeepsAnFp32MasterOfBf16Weights) {
  auto weights = Weights::RandomInit(TinyModelConfig(), 1, at::kCPU, at::kBFloat16);
  AdamW optimizer(TestConfig(), weights);
  Gradients gradients(*weights);
  const at::Tensor before = weights->Get("model.norm.weight")[0].clone();  // 1.0
  for (int i = 0; i < 10; ++i) {
    gradients.flat().fill_(1);
    ASSERT_TRUE(optimizer.Step(1e-3, &gradients).ok());
  }
  // One step of 1e-3 is below bf16's resolution at 1 (1/256 below it), but ten steps are not.
  EXPECT_LT(weights->Get("model.norm.weight")[0].item<float>(), before.item<float>());
  EXPECT_TRUE(optimizer.master().to(at::kBFloat16).equal(weights->flat()));
}

// Compares all elements with the formula, with several buckets, clipping and decay, on each of this
// machine's devices and in both types of weights.
class AdamWOnDevice : public testing::TestWithParam<std::pair<at::Device, at::ScalarType>> {
 protected:
  void SetUp() override {
    const std::string missing = MissingDevice(GetParam().first);
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_P(AdamWOnDevice, AllElementsFollowTheFormula) {
  const auto& [device, dtype] = GetParam();
  OptimizerConfig config = TestConfig();
  config.set_clip_norm(2.0);
  auto weights = Weights::RandomInit(TinyModelConfig(), 1, device, dtype);
  std::vector<Scalar> expected;
  const at::Tensor start = weights->flat().to(at::kCPU, at::kFloat);
  for (int64_t i = 0; i < start.numel(); ++i) {
    expected.push_back({static_cast<double>(start.const_data_ptr<float>()[i])});
  }
  std::vector<bool> decays(expected.size());
  for (const ParameterInfo& info : weights->layout().parameters) {
    std::fill_n(decays.begin() + info.offset, info.size, info.decay());
  }
  AdamW optimizer(config, weights, nullptr, /*bucket_elements=*/64 * 21);
  ASSERT_GT(optimizer.plan().buckets(), 2);
  Gradients gradients(*weights);
  Philox random(3);
  for (int t = 1; t <= 3; ++t) {
    at::Tensor g = at::empty({start.numel()}, at::kFloat);
    for (int64_t i = 0; i < g.numel(); ++i) {
      g.mutable_data_ptr<float>()[i] = static_cast<float>(random.Normal());
    }
    gradients.flat().copy_(g);
    const UpdateResult result = optimizer.Step(0.01, &gradients).value();
    ASSERT_GT(result.gradient_norm, 2.0);
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i].Step(g.const_data_ptr<float>()[i] * 2.0 / result.gradient_norm, 0.01,
                       decays[i] ? 0.1 : 0.0, config, t);
    }
  }
  const at::Tensor master = optimizer.master().cpu(), m = optimizer.first_moment().cpu(),
                   v = optimizer.second_moment().cpu();
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(master.const_data_ptr<float>()[i], expected[i].w, 3e-6) << i;
    ASSERT_NEAR(m.const_data_ptr<float>()[i], expected[i].m, 1e-7) << i;
    ASSERT_NEAR(v.const_data_ptr<float>()[i], expected[i].v, 1e-9) << i;
  }
  EXPECT_TRUE(optimizer.master().to(dtype).equal(weights->flat()));
}

std::vector<std::pair<at::Device, at::ScalarType>> Settings() {
  std::vector<std::pair<at::Device, at::ScalarType>> settings;
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA, 0)}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
      settings.push_back({device, type});
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Devices, AdamWOnDevice, testing::ValuesIn(Settings()),
                         [](const auto& info) {
                           return info.param.first.type() == at::kCUDA
                                      ? absl::StrCat("cuda", info.index)
                                      : absl::StrCat("cpu", info.index);
                         });

}  // namespace
}  // namespace tritonrl
