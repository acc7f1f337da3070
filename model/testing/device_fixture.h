// Test fixture that runs a layer on each device of this machine in fp32 and bf16, compares it with
// ATen in fp64 on the CPU, and checks that a second run gives the same bits. (LayersFixture
// compares the fp64 path with autograd.)

#ifndef TRITONRL_MODEL_TESTING_DEVICE_FIXTURE_H_
#define TRITONRL_MODEL_TESTING_DEVICE_FIXTURE_H_

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "model/layers/layer_context.h"
#include "model/testing/test_util.h"

namespace tritonrl {

using Tensors = std::vector<at::Tensor>;

// The CPU, a GPU, and a GPU that is not the thread's current device, like that of a machine's
// second rank. Tests on a device that this machine lacks are skipped.
inline std::vector<std::string> TestedDevices() { return {"cpu", "cuda", "cuda:1"}; }

// Returns the device's name for test names, which must not contain a colon.
inline std::string DeviceLabel(const std::string& device) {
  return absl::StrReplaceAll(device, {{":", "_"}});
}

// Returns SmallConfig with sizes that the GPU kernels support.
inline ModelConfig KernelConfig(ModelFamily family, bool tied = true) {
  ModelConfig config = SmallConfig(family, tied);
  config.head_dim = 64;
  config.hidden_size = 128;
  config.intermediate_size = 192;
  config.vocab_size = 104;
  return config;
}

struct Setting {
  std::string device;
  at::ScalarType type;
};

inline std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (const std::string& device : TestedDevices()) {
    settings.push_back({device, at::kFloat});
    settings.push_back({device, at::kBFloat16});
  }
  return settings;
}

// The type and the device of one run of a layer. The inputs are fp64 numbers that the tested type
// represents exactly.
struct Runner {
  const LayerContext& context;
  at::Device device;
  at::ScalarType type;
  at::ScalarType sums;  // type of the tensors that are fp32 for every type of the model

  at::Tensor Put(const at::Tensor& x) const { return x.to(type).to(device); }
  at::Tensor PutSums(const at::Tensor& x) const { return x.to(sums).to(device); }
  at::Tensor PutIds(const at::Tensor& x) const { return x.to(device); }
  at::Tensor Empty(at::IntArrayRef shape) const {
    at::Tensor x = at::empty(shape, at::TensorOptions(device).dtype(type));
    return x.fill_(std::nan(""));  // every element must be written
  }
};

// Returns the largest difference relative to the largest expected value; the absolute difference if
// all expected values are zero (gradients of queries and keys of single tokens).
inline double Difference(const at::Tensor& actual, const at::Tensor& expected) {
  const bool zero = expected.abs().max().item<double>() < 1e-12;
  return zero ? MaxDifference(actual.cpu(), expected) : RelativeDifference(actual.cpu(), expected);
}

class DeviceFixture : public testing::TestWithParam<Setting> {
 protected:
  using Computation = std::function<Tensors(const Runner&)>;

  void SetUp() override {
    const std::string missing = MissingDevice(at::Device(GetParam().device));
    if (!missing.empty()) GTEST_SKIP() << missing;
  }

  static constexpr double kFloatTolerance = 5e-5;
  static constexpr double kHalfTolerance = 0.02;  // 5 roundings to bf16 at the largest value

  // Returns normally distributed numbers, rounded to the tested type, in fp64.
  static at::Tensor Numbers(at::IntArrayRef shape, uint64_t seed, double scale = 1.0) {
    return RandomTensor(shape, seed, scale).to(GetParam().type).to(at::kDouble);
  }

  // Runs `compute` twice in the tested setting and once as the reference, and compares all results.
  // names: of the results, for failure messages.
  void Compare(const Computation& compute, const std::vector<const char*>& names,
               const LayerContext& context, double half_tolerance = kHalfTolerance) const {
    const at::Device device(GetParam().device);
    const Runner tested = {context, device, GetParam().type, at::kFloat};
    const Runner reference = {reference_, at::kCPU, at::kDouble, at::kDouble};
    const Tensors expected = compute(reference), first = compute(tested), second = compute(tested);
    ASSERT_EQ(expected.size(), names.size());
    const double tolerance = GetParam().type == at::kFloat ? kFloatTolerance : half_tolerance;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(first[i].sizes(), expected[i].sizes()) << names[i];
      EXPECT_LT(Difference(first[i], expected[i]), tolerance) << names[i];
      EXPECT_TRUE(SameBits(first[i].cpu(), second[i].cpu())) << names[i] << " again";
    }
  }
  void Compare(const Computation& compute, const std::vector<const char*>& names,
               double half_tolerance = kHalfTolerance) const {
    Compare(compute, names, context_, half_tolerance);
  }

  const LayerContext context_{2};
  const LayerContext reference_{2, true};
};

inline std::string SettingName(const testing::TestParamInfo<Setting>& info) {
  return absl::StrCat(DeviceLabel(info.param.device),
                      info.param.type == at::kFloat ? "_fp32" : "_bf16");
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TESTING_DEVICE_FIXTURE_H_
