// Tests which gradients share memory, and a backward pass that writes to a ring buffer.
#include "model/weights/gradient_ring_buffer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/testing/test_util.h"
#include "model/transformer.h"

namespace tritonrl {
namespace {

constexpr int64_t kBucket = 64 * 16;

// Runs on the CPU and, if this machine has one, on a GPU.
class GradientRingBufferTest : public testing::TestWithParam<at::Device> {
 protected:
  void SetUp() override {
    if (const std::string missing = MissingDevice(GetParam()); !missing.empty()) {
      GTEST_SKIP() << missing;
    }
  }

  // A model so large that its gradients do not fit the ring buffer.
  static ModelConfig DeepConfig(bool tied) {
    ModelConfig config = SmallConfig(ModelFamily::kQwen3, tied);
    config.num_layers = 9;
    if (!GetParam().is_cuda()) return config;
    config.hidden_size = 256;
    config.head_dim = 64;
    config.intermediate_size = 768;
    return config;
  }

  static std::shared_ptr<Weights> DeepWeights(bool tied) {
    const ModelConfig config = DeepConfig(tied);
    auto weights = std::make_shared<Weights>(config, GetParam(), at::kFloat);
    weights->flat().copy_(SmallWeights(config, 1)->flat());
    return weights;
  }

  static GradientRingBuffer RingBufferOf(const ParameterLayout& layout, bool tied) {
    return GradientRingBufferFor(layout, tied, kBucket, GetParam());
  }
};

TEST_P(GradientRingBufferTest, ElementsARingApartAreTheSameMemory) {
  const int64_t unit = GetParam().is_cuda() ? 1 << 19 : 1 << 10;
  for (const int64_t own : {int64_t{0}, 2 * unit}) {
    const GradientRingBuffer buffer = {.own = own, .ring = 3 * unit};
    const int64_t size = own + 10 * unit + 17;  // a multiple neither of the ring nor of a page
    const at::Tensor flat = MapGradientRingBuffer(buffer, size, GetParam());
    ASSERT_EQ(flat.numel(), size);
    EXPECT_EQ(flat.abs().max().item<float>(), 0.0f);
    // The last write to shared memory wins: each element then holds the value that its last-written
    // alias received.
    const at::Tensor numbers = at::arange(size, flat.options());
    for (int64_t begin = size; begin > 0; begin -= unit) {
      const int64_t from = std::max<int64_t>(0, begin - unit);
      flat.slice(0, from, begin).copy_(numbers.slice(0, from, begin));
    }
    EXPECT_TRUE(flat.slice(0, 0, own + 3 * unit).equal(numbers.slice(0, 0, own + 3 * unit)));
    EXPECT_TRUE(flat.slice(0, own + 3 * unit).equal(flat.slice(0, own, size - 3 * unit)));
    EXPECT_EQ(buffer.bytes(), 4 * (own + 3 * unit));
    EXPECT_EQ(buffer.FirstOverwritten(own + 5), own + 5 + 3 * unit);
    EXPECT_EQ(buffer.FirstOverwritten(0), own + 3 * unit);
  }
}

TEST_P(GradientRingBufferTest, HoldsABucketBesideThreeLayersAndTheLargestPart) {
  for (const bool tied : {true, false}) {
    const ParameterLayout layout(DeepConfig(tied));
    const GradientRingBuffer buffer = RingBufferOf(layout, tied);
    ASSERT_TRUE(buffer.is_ring());
    EXPECT_LT(buffer.own + buffer.ring, layout.flat_size * 3 / 4);
    EXPECT_EQ(buffer.own >= layout.parts[0].end, tied);
    for (size_t i = 1; i + 1 < layout.parts.size(); ++i) {
      EXPECT_GE(buffer.ring, 3 * layout.parts[i].size() + kBucket);
      EXPECT_EQ(layout.parts[i].end, layout.parts[i + 1].begin);
      EXPECT_EQ(layout.parts[i].past_last, layout.parts[i + 1].first);
    }
    EXPECT_GE(buffer.ring, layout.parts.back().size() + kBucket);
    EXPECT_EQ(layout.parts.back().end, layout.flat_size);
    EXPECT_EQ(layout.parts.back().past_last, layout.parameters.size());
    // A ring saves no memory if one bucket is as large as the whole buffer.
    EXPECT_FALSE(GradientRingBufferFor(layout, tied, layout.flat_size, GetParam()).is_ring());
  }
}

// Copies final gradients out in buckets, each at the last moment that overwrite_hook allows.
class Collector {
 public:
  Collector(const Gradients& gradients, at::Tensor all)
      : gradients_(gradients), all_(std::move(all)), taken_(all_.numel()), final_(taken_) {}

  void ReadyHook(int64_t offset) {
    final_ = offset;
    if (offset == 0) TakeFrom(0);
  }
  void OverwriteHook(int64_t offset) {
    EXPECT_LT(offset, final_);
    TakeFrom(gradients_.ring_buffer().FirstOverwritten(offset));
  }

 private:
  void TakeFrom(int64_t offset) {
    const int64_t from = offset / kBucket * kBucket;
    if (from >= taken_) return;
    EXPECT_GE(from, final_) << "a bucket that is not complete is overwritten";
    all_.slice(0, from, taken_).copy_(gradients_.flat().slice(0, from, taken_));
    taken_ = from;
  }

  const Gradients& gradients_;
  const at::Tensor all_;
  int64_t taken_, final_;
};

TEST_P(GradientRingBufferTest, ABackwardThroughItHasTheSameBits) {
  for (const bool tied : {true, false}) {
    const auto weights = DeepWeights(tied);
    Transformer::Options options;
    options.cpu_threads = 2;
    options.gpu.attention.deterministic = true;
    const Transformer model(weights->config(), weights, options);
    const PackedBatch batch =
        PackSequences(RandomTokens(weights->config(), {60, 21}, 2), GetParam());
    const auto loss = [](const at::Tensor&, const at::Tensor& log_probs, const at::Tensor&) {
      return at::full_like(log_probs, -0.5);
    };
    Gradients whole(*weights), ring(*weights, RingBufferOf(weights->layout(), tied));
    ASSERT_TRUE(ring.ring_buffer().is_ring());
    // An earlier update may leave any values in the memory.
    ring.flat().slice(0, 0, ring.ring_buffer().own + ring.ring_buffer().ring).fill_(std::nan(""));
    for (const bool empty : {false, true, false}) {
      at::Tensor targets = NextTokenTargets(batch);
      if (empty) targets = targets.clone().fill_(-1);
      model.ForwardBackward(batch, targets, 1.0, loss, Transformer::GradientWrite::kOverwrite,
                            &whole);
      const at::Tensor all = at::full({whole.flat().numel()}, 7, whole.flat().options());
      Collector collector(ring, all);
      model.ForwardBackward(
          batch, targets, 1.0, loss, Transformer::GradientWrite::kOverwrite, &ring,
          [&](int64_t offset) { collector.ReadyHook(offset); },
          [&](int64_t offset) { collector.OverwriteHook(offset); });
      EXPECT_TRUE(all.equal(whole.flat())) << tied << empty;
      EXPECT_EQ(whole.flat().abs().max().item<float>() == 0, empty);
    }
    EXPECT_ANY_THROW(model.ForwardBackward(batch, NextTokenTargets(batch), 1.0, loss,
                                           Transformer::GradientWrite::kAccumulate, &ring));
    EXPECT_ANY_THROW(ring.Zero());
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GradientRingBufferTest,
                         testing::Values(at::Device(at::kCPU), at::Device(at::kCUDA, 0)),
                         [](const auto& info) { return info.param.is_cuda() ? "cuda" : "cpu"; });

}  // namespace
}  // namespace tritonrl
