// Whole kernels of the corpus against plain loops.
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

std::vector<float> RandomFloats(int seed, size_t count) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

void LaunchCorpus(const std::string& name, const std::array<int32_t, 3>& grid,
                  const std::vector<KernelArgument>& arguments) {
  const auto kernel = CompileText(CorpusTextOf(name));
  ASSERT_NE(kernel, nullptr);
  LaunchOptions options;
  options.threads = 2;
  const absl::Status status = kernel->Launch(grid, arguments, options);
  EXPECT_TRUE(status.ok()) << name << ": " << status;
}

TEST(KernelsTest, Softmax) {
  constexpr int kRows = 5;
  constexpr int kColumns = 781;
  auto x = RandomFloats(1, kRows * kColumns);
  std::vector<float> out(x.size());
  LaunchCorpus("softmax.ttir", {kRows, 1, 1},
               {ArgumentOf(x), ArgumentOf(out), KernelArgument::Integer(kColumns)});
  for (int row = 0; row < kRows; ++row) {
    double largest = -INFINITY;
    double sum = 0;
    for (int i = 0; i < kColumns; ++i) largest = std::fmax(largest, x[row * kColumns + i]);
    for (int i = 0; i < kColumns; ++i) sum += std::exp(x[row * kColumns + i] - largest);
    for (int i = 0; i < kColumns; ++i) {
      const double expected = std::exp(x[row * kColumns + i] - largest) / sum;
      EXPECT_NEAR(out[row * kColumns + i], expected, 1e-6 * expected + 1e-9);
    }
  }
}

TEST(KernelsTest, LayerNorm) {
  constexpr int kRows = 4;
  constexpr int kColumns = 1000;
  auto x = RandomFloats(2, kRows * kColumns);
  auto w = RandomFloats(3, kColumns);
  std::vector<float> out(x.size());
  LaunchCorpus("layer_norm.ttir", {kRows, 1, 1},
               {ArgumentOf(x), ArgumentOf(w), ArgumentOf(out), KernelArgument::Integer(kColumns),
                KernelArgument::Float(1e-5)});
  for (int row = 0; row < kRows; ++row) {
    double mean = 0;
    double square = 0;
    for (int i = 0; i < kColumns; ++i) mean += x[row * kColumns + i] / kColumns;
    for (int i = 0; i < kColumns; ++i) {
      square += std::pow(x[row * kColumns + i] - mean, 2) / kColumns;
    }
    for (int i = 0; i < kColumns; ++i) {
      const double expected = (x[row * kColumns + i] - mean) / std::sqrt(square + 1e-5) * w[i];
      EXPECT_NEAR(out[row * kColumns + i], expected, 1e-4);
    }
  }
}

TEST(KernelsTest, Matmul) {
  constexpr int kM = 100;
  constexpr int kN = 70;
  constexpr int kK = 90;
  // Halves of small integers: all sums are exact.
  std::mt19937 random(4);
  const auto half_of = [](int value) {
    constexpr uint16_t kBits[] = {0x0000, 0x3C00, 0x4000, 0x4200, 0x4400};
    return kBits[value];
  };
  std::vector<int> a_values(kM * kK);
  std::vector<int> b_values(kK * kN);
  std::vector<uint16_t> a;
  std::vector<uint16_t> b;
  for (int& value : a_values) a.push_back(half_of(value = static_cast<int>(random() % 5)));
  for (int& value : b_values) b.push_back(half_of(value = static_cast<int>(random() % 5)));
  std::vector<float> c(kM * kN, -1);
  LaunchCorpus("matmul.ttir", {(kM + 63) / 64, (kN + 31) / 32, 1},
               {ArgumentOf(a), ArgumentOf(b), ArgumentOf(c), KernelArgument::Integer(kM),
                KernelArgument::Integer(kN), KernelArgument::Integer(kK)});
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      int sum = 0;
      for (int l = 0; l < kK; ++l) sum += a_values[i * kK + l] * b_values[l * kN + j];
      ASSERT_EQ(c[i * kN + j], sum) << i << ", " << j;
    }
  }
}

// a is packed e2m1, b e4m3; c is their product with both scales and the one with a's scale alone.
TEST(KernelsTest, ScaledDot) {
  constexpr int kM = 128;
  constexpr int kN = 64;
  constexpr int kK = 64;
  std::mt19937 random(7);
  std::vector<uint8_t> a(kM * kK / 2);
  std::vector<uint8_t> a_scale(kM * 2);
  std::vector<uint8_t> b_scale(kN * 2);
  std::vector<uint8_t> b(kK * kN);
  for (uint8_t& value : a) value = static_cast<uint8_t>(random());
  for (uint8_t& value : a_scale) value = static_cast<uint8_t>(126 + random() % 3);
  for (uint8_t& value : b_scale) value = static_cast<uint8_t>(126 + random() % 3);
  // 1 to 1.875 in eighths.
  for (uint8_t& value : b) value = static_cast<uint8_t>(0x38 + random() % 8);
  std::vector<float> c(kM * kN, -1);
  LaunchCorpus(
      "scaled_dot.ttir", {1, 1, 1},
      {ArgumentOf(a), ArgumentOf(a_scale), ArgumentOf(b_scale), ArgumentOf(b), ArgumentOf(c)});
  constexpr float kFour[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = 0;  // all sums are exact
      for (int k = 0; k < kK; ++k) {
        const int byte = a[i * kK / 2 + k / 2];
        const float left =
            kFour[k % 2 == 0 ? byte & 15 : byte >> 4] * std::exp2f(a_scale[i * 2 + k / 32] - 127.f);
        const float right = 1 + static_cast<float>(b[k * kN + j] - 0x38) / 8;
        sum += left * right * (1 + std::exp2f(b_scale[j * 2 + k / 32] - 127.f));
      }
      ASSERT_EQ(c[i * kN + j], sum) << i << ", " << j;
    }
  }
}

TEST(KernelsTest, Welford) {
  constexpr int kCount = 201;
  auto x = RandomFloats(5, kCount);
  std::vector<float> out(2);
  LaunchCorpus("welford.ttir", {1, 1, 1},
               {ArgumentOf(x), ArgumentOf(out), KernelArgument::Integer(kCount)});
  double mean = 0;
  double square = 0;
  for (const float value : x) mean += value / static_cast<double>(kCount);
  for (const float value : x) square += std::pow(value - mean, 2) / kCount;
  EXPECT_NEAR(out[0], mean, 1e-6);
  EXPECT_NEAR(out[1], square, 1e-5);
}

TEST(KernelsTest, TheSpinLockOrdersPrograms) {
  std::vector<int32_t> lock(1);
  std::vector<int32_t> count(1);
  std::vector<float> x(64);
  LaunchCorpus("spin_lock.ttir", {40, 1, 1}, {ArgumentOf(lock), ArgumentOf(count), ArgumentOf(x)});
  EXPECT_EQ(lock[0], 0);
  EXPECT_EQ(count[0], 1);
  EXPECT_EQ(x, std::vector<float>(64, 39));
}

TEST(KernelsTest, ThreadsDoNotChangeABit) {
  constexpr int kRows = 64;
  constexpr int kColumns = 1000;
  auto x = RandomFloats(6, kRows * kColumns);
  const auto kernel = CompileText(CorpusTextOf("softmax.ttir"));
  ASSERT_NE(kernel, nullptr);
  std::vector<float> out[2];
  for (const int i : {0, 1}) {
    out[i].resize(x.size());
    LaunchOptions options;
    options.threads = 1 + 3 * i;
    ASSERT_TRUE(kernel
                    ->Launch({kRows, 1, 1},
                             {ArgumentOf(x), ArgumentOf(out[i]), KernelArgument::Integer(kColumns)},
                             options)
                    .ok());
  }
  EXPECT_EQ(out[0], out[1]);
}

// What a text needs that is not here yet.
TEST(KernelsTest, TheCorpusCompilesButForWhatIsMissing) {
  const std::set<std::string> missing = {"inline_assembly.ttir"};  // it asks for a processor
  for (const CorpusText& entry : ReadCorpus()) {
    const auto module = ParseTtir(entry.text);
    ASSERT_TRUE(module.ok()) << module.status();
    const auto kernel = Compile(*module);
    EXPECT_NE(kernel.ok(), missing.contains(entry.name)) << entry.name << ": " << kernel.status();
    if (kernel.ok()) continue;
    EXPECT_TRUE(absl::StartsWith(kernel.status().message(), "not executable: ")) << kernel.status();
  }
}

}  // namespace
}  // namespace tritonrl::ttir
