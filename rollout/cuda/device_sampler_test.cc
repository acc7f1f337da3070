// Compares draws on the GPU with those of rollout/engine/sampler.h from the same logits.

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "rollout/cuda/sampling/gpu_sampler.h"
#include "rollout/cuda/testing/device_fixture.h"
#include "rollout/engine/sampler.h"

namespace tritonrl {
namespace {

// A uniform number this near to the boundary of two tokens may give either of them, because sums of
// weights are rounded in another order.
constexpr double kRounding = 2e-6;

struct Logits {
  std::string name;
  std::vector<float> values;
};

std::vector<float> NormalLogits(int64_t vocab, double scale, uint64_t seed) {
  const at::Tensor numbers = RandomTensor({vocab}, seed, scale).to(at::kFloat).contiguous();
  const float* data = numbers.const_data_ptr<float>();
  return {data, data + vocab};
}

// Logits for each path through the kernels: few likely tokens, many, equal ones, a small
// vocabulary.
std::vector<Logits> TestedLogits() {
  const int64_t vocab = 151936;
  std::vector<Logits> all = {{"peaked", NormalLogits(vocab, 3.0, 1)},
                             {"flat", NormalLogits(vocab, 1.0, 2)},
                             {"all equal", std::vector<float>(vocab, 1.5f)},
                             {"bf16", NormalLogits(vocab, 4.0, 3)},
                             {"small", NormalLogits(1000, 2.0, 4)}};
  for (int i = 0; i < 20; ++i) all[0].values[7919 * (i + 1) % vocab] += 14 - 0.5f * i;
  for (float& z : all[3].values) z = static_cast<float>(c10::BFloat16(z));
  return all;
}

std::vector<SamplingSettings> TestedSettings() {
  std::vector<SamplingSettings> all;
  const auto add = [&](double temperature, int top_k, double top_p) {
    all.push_back({.temperature = temperature, .top_p = top_p, .top_k = top_k});
  };
  add(1, 0, 1);
  add(0.6, 0, 1);
  add(30, 0, 1);
  add(0, 0, 1);
  add(0, 50, 0.9);
  add(1, 1, 1);
  add(1, 50, 1);
  add(0.8, 20, 0.95);
  add(1, 3000, 0.9);
  add(1, 0, 0.95);
  add(0.6, 0, 0.5);
  add(5, 0, 0.999);
  add(1, 0, 1e-6);
  return all;
}

class GpuSamplerTest : public DeviceTest {
 protected:
  static std::vector<DrawnToken> Run(const at::Tensor& logits,
                                     const std::vector<SamplingRow>& draws,
                                     at::Tensor* last_tokens = nullptr) {
    const int count = static_cast<int>(draws.size());
    const at::Tensor rows = Bytes(draws);
    at::Tensor workspace = Empty({SamplingWorkspaceBytes(count, logits.size(1))}, at::kByte);
    at::Tensor drawn = Empty({count * static_cast<int64_t>(sizeof(DrawnToken))}, at::kByte);
    LaunchSampling(
        {.logits = logits.const_data_ptr<float>(),
         .vocab = logits.size(1),
         .draws = static_cast<const SamplingRow*>(rows.const_data_ptr()),
         .count = count,
         .workspace = workspace.data_ptr(),
         .drawn = static_cast<DrawnToken*>(drawn.data_ptr()),
         .last_tokens = last_tokens == nullptr ? nullptr : last_tokens->data_ptr<int32_t>(),
         .stream = stream()});
    return Read(drawn, count);
  }

  static std::vector<DrawnToken> Read(const at::Tensor& drawn, int count) {
    const at::Tensor host = drawn.cpu();
    std::vector<DrawnToken> tokens(count);
    std::memcpy(tokens.data(), host.const_data_ptr(), count * sizeof(DrawnToken));
    return tokens;
  }

  static at::Tensor Put(const std::vector<std::vector<float>>& rows) {
    std::vector<float> flat;
    for (const std::vector<float>& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    return Bytes(flat).view(at::kFloat).view({static_cast<int64_t>(rows.size()), -1});
  }

  static SamplingRow Row(const SamplingSettings& settings, const SampleKey& key, int index,
                         int position) {
    return {.key = MixKeys({key.run_seed, key.step, key.task, static_cast<uint64_t>(index)}),
            .temperature = settings.temperature,
            .top_p = settings.top_p,
            .position = position,
            .top_k = settings.top_k,
            .logits_row = 0};
  }
};

// The CPU's tokens for numbers just below and just above `uniform`.
std::set<int32_t> NearTokens(const Logits& logits, const SamplingSettings& settings, double uniform,
                             Sampler* sampler) {
  std::set<int32_t> tokens;
  for (const double shift : {-kRounding, kRounding}) {
    const double shifted = std::clamp(uniform + shift, 0.0, 1.0 - 1e-15);
    tokens.insert(sampler->Draw(logits.values, settings, shifted)->token);
  }
  return tokens;
}

TEST_P(GpuSamplerTest, DrawsWhatTheCpuDraws) {
  const SampleKey key = {11, 22, 33};
  const int draws = 24;
  Sampler sampler;
  for (const Logits& logits : TestedLogits()) {
    const at::Tensor on_gpu = Put({logits.values});
    for (const SamplingSettings& settings : TestedSettings()) {
      SCOPED_TRACE(testing::Message()
                   << logits.name << ", temperature " << settings.temperature << ", top_k "
                   << settings.top_k << ", top_p " << settings.top_p);
      std::vector<SamplingRow> rows;
      for (int i = 0; i < draws; ++i) rows.push_back(Row(settings, key, i % 3, i));
      const std::vector<DrawnToken> drawn = Run(on_gpu, rows);
      for (int i = 0; i < draws; ++i) {
        const double uniform = TokenUniform(key, i % 3, i);
        const TokenDraw expected = *sampler.Draw(logits.values, settings, uniform);
        ASSERT_GE(drawn[i].token, 0);
        ASSERT_LT(drawn[i].token, logits.values.size());
        if (drawn[i].token == expected.token) {
          EXPECT_NEAR(drawn[i].log_prob, expected.log_prob, 1e-5) << "draw " << i;
        } else {
          EXPECT_EQ(NearTokens(logits, settings, uniform, &sampler).count(drawn[i].token), 1)
              << "draw " << i << " with " << uniform << ": " << drawn[i].token << " of logit "
              << logits.values[drawn[i].token] << ", not " << expected.token << " of logit "
              << logits.values[expected.token];
        }
      }
    }
  }
}

TEST_P(GpuSamplerTest, ADrawDependsOnItsRowAlone) {
  const std::vector<Logits> all = TestedLogits();
  const at::Tensor logits = Put({all[0].values, all[1].values, all[2].values, all[3].values});
  std::vector<SamplingRow> draws;
  for (const SamplingSettings& settings : TestedSettings()) {
    for (int row = 0; row < 4; ++row) {
      draws.push_back(Row(settings, {1, 2, 3}, row, static_cast<int>(draws.size())));
      draws.back().logits_row = row;
    }
  }
  const std::vector<DrawnToken> together = Run(logits, draws);
  for (size_t i = 0; i < draws.size(); ++i) {
    SamplingRow alone = draws[i];
    alone.logits_row = 0;
    const DrawnToken drawn = Run(logits.slice(0, i % 4, i % 4 + 1).clone(), {alone})[0];
    EXPECT_EQ(drawn.token, together[i].token) << "draw " << i;
    EXPECT_EQ(drawn.log_prob, together[i].log_prob) << "draw " << i;
  }
}

TEST_P(GpuSamplerTest, FlagsLogitsThatAreNotFinite) {
  const int64_t vocab = 4096;
  std::vector<std::vector<float>> rows(5, NormalLogits(vocab, 1.0, 5));
  rows[0][4095] = std::nanf("");
  rows[1][0] = std::numeric_limits<float>::infinity();
  rows[2][700] = -std::numeric_limits<float>::infinity();
  rows[3][1] = 3e38f;  // finite and so large that no other token has a weight
  std::vector<SamplingRow> draws;
  const std::vector<SamplingSettings> all_settings = {{}, {.top_k = 5}, {.temperature = 0}};
  for (const SamplingSettings& settings : all_settings) {
    for (int row = 0; row < 5; ++row) {
      draws.push_back(Row(settings, {}, 0, row));
      draws.back().logits_row = row;
      draws.back().slot = static_cast<int32_t>(draws.size()) - 1;
    }
  }
  draws.push_back({.logits_row = -1, .slot = 15});  // no draw
  at::Tensor last = at::zeros({17}, at::TensorOptions(device()).dtype(at::kInt)).fill_(-5);
  const std::vector<DrawnToken> drawn = Run(Put(rows), draws, &last);
  const at::Tensor tokens = last.cpu();
  for (int i = 0; i < 15; ++i) {
    const int32_t token = tokens[i].item<int32_t>();
    if (i % 5 < 3) {
      EXPECT_EQ(drawn[i].token, -1) << i;
      EXPECT_EQ(token, 0) << i;
    } else {
      EXPECT_EQ(drawn[i].token, token) << i;
      EXPECT_GE(token, 0) << i;
    }
    if (i % 5 == 3) {
      EXPECT_EQ(token, 1) << i;
    }
  }
  EXPECT_EQ(tokens[15].item<int32_t>(), -5);
  EXPECT_EQ(tokens[16].item<int32_t>(), -5);
}

TEST_P(GpuSamplerTest, AGraphReadsSettingsWhenItRuns) {
  const std::vector<Logits> all = TestedLogits();
  const at::Tensor logits = Put({all[0].values, all[1].values});
  const int count = 26;
  at::Tensor rows = Empty({count * static_cast<int64_t>(sizeof(SamplingRow))}, at::kByte);
  at::Tensor drawn = Empty({count * static_cast<int64_t>(sizeof(DrawnToken))}, at::kByte);
  at::Tensor workspace = Empty({SamplingWorkspaceBytes(count, logits.size(1))}, at::kByte);
  rows.copy_(Bytes(std::vector<SamplingRow>(count)));  // no draws
  const Graph graph([&] {
    LaunchSampling({.logits = logits.const_data_ptr<float>(),
                    .vocab = logits.size(1),
                    .draws = static_cast<const SamplingRow*>(rows.const_data_ptr()),
                    .count = count,
                    .workspace = workspace.data_ptr(),
                    .drawn = static_cast<DrawnToken*>(drawn.data_ptr()),
                    .stream = stream()});
  });
  for (const int position : {0, 1000}) {
    std::vector<SamplingRow> draws;
    for (const SamplingSettings& settings : TestedSettings()) {
      for (int row = 0; row < 2; ++row) {
        draws.push_back(Row(settings, {1, 2, 3}, row, position));
        draws.back().logits_row = row;
      }
    }
    rows.copy_(Bytes(draws));
    graph.Replay();
    const std::vector<DrawnToken> replayed = Read(drawn, count), eager = Run(logits, draws);
    for (int i = 0; i < count; ++i) EXPECT_EQ(replayed[i].token, eager[i].token) << i;
  }
}

// 2^17 draws of 64 tokens; the 99.9th percentile of chi-square with 63 degrees of freedom is 103.4.
TEST_P(GpuSamplerTest, DrawsAreDistributedAsTheSoftmax) {
  const int64_t vocab = 64;
  const int count = 1 << 15, launches = 4;
  const std::vector<float> values = NormalLogits(vocab, 1.0, 6);
  const at::Tensor logits = Put({values});
  std::vector<double> seen(vocab), weights(vocab);
  double total = 0;
  for (int i = 0; i < vocab; ++i) total += weights[i] = std::exp(static_cast<double>(values[i]));
  for (int launch = 0; launch < launches; ++launch) {
    std::vector<SamplingRow> draws;
    for (int i = 0; i < count; ++i) draws.push_back(Row({}, {7, 8, 9}, launch, i));
    for (const DrawnToken& drawn : Run(logits, draws)) {
      ASSERT_GE(drawn.token, 0);
      seen[drawn.token] += 1;
    }
  }
  double chi_square = 0;
  for (int i = 0; i < vocab; ++i) {
    const double expected = weights[i] / total * count * launches;
    chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 103.4);
}

INSTANTIATE_TEST_SUITE_P(Gpus, GpuSamplerTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
