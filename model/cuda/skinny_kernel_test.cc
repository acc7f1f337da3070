// The kernel of products of few rows, thread by thread on a CPU: which bytes it copies and when it
// reads them, which elements its fragments hold, what it writes. What the instructions really do,
// and how fast, is up to //rollout/cuda:device_test and kernel_bench on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "model/cuda/emulated_block.h"

// In place of skinny_ptx.cuh.
#define TRITONRL_MODEL_CUDA_SKINNY_PTX_CUH_

namespace tritonrl {

struct Copy {
  uint4* to;
  uint4 value;
};

// What asynchronous copies see of the test, and the test of them.
struct Copies {
  std::vector<uint4> shared = std::vector<uint4>(228 * 64);
  const char *begin = nullptr, *end = nullptr;  // of the memory that may be read
  int64_t read = 0;                             // packs of 16 bytes
  bool outside = false;
  // By thread: those that have not been waited for.
  std::vector<std::vector<Copy>> groups[EmulatedBlock::kThreads];
  std::vector<Copy> open[EmulatedBlock::kThreads];
} copies;

uint4* LaunchedSharedMemory() { return copies.shared.data(); }
uint64_t EvictFirstPolicy() { return 0; }
void LetNextKernelBegin() {}
void WaitForEarlierKernels() {}

// What is not waited for reads as NaN.
void CopyAsync(uint4* to, const void* from, bool there, uint64_t /*policy*/) {
  Copy copy = {to, {0, 0, 0, 0}};
  if (there) {
    const auto* bytes = static_cast<const char*>(from);
    if (bytes < copies.begin || bytes + 16 > copies.end) {
      copies.outside = true;
    } else {
      std::memcpy(&copy.value, bytes, 16);
    }
    ++copies.read;
  }
  std::memset(to, 0xff, 16);
  copies.open[EmulatedBlock::Current().thread()].push_back(copy);
}

void CommitCopies() {
  const int thread = EmulatedBlock::Current().thread();
  copies.groups[thread].push_back(std::exchange(copies.open[thread], {}));
}

template <int kGroups>
void WaitForCopies() {
  auto& groups = copies.groups[EmulatedBlock::Current().thread()];
  while (static_cast<int>(groups.size()) > kGroups) {
    for (const Copy& copy : groups.front()) *copy.to = copy.value;
    groups.erase(groups.begin());
  }
}

float HalfOf(uint32_t pair, int64_t which) {
  const uint32_t bits = which == 0 ? pair << 16 : pair & 0xffff0000u;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// mma.m16n8k16 as the PTX ISA's tables of fragments have it.
void MultiplyAdd(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                 uint32_t b1) {
  static std::array<std::array<uint32_t, 6>, EmulatedBlock::kThreads> all;
  EmulatedBlock& block = EmulatedBlock::Current();
  all[block.thread()] = {a0, a1, a2, a3, b0, b1};
  block.WaitForWarp();
  const auto* lanes = &all[block.thread() / 32 * 32];
  const int lane = block.thread() % 32;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) {
      const uint32_t a = lanes[row % 8 * 4 + k % 8 / 2][row / 8 + 2 * (k / 8)];
      const uint32_t b = lanes[column * 4 + k % 8 / 2][4 + k / 8];
      d[i] += HalfOf(a, k % 2) * HalfOf(b, k % 2);
    }
  }
  block.WaitForWarp();
}

}  // namespace tritonrl

#include "model/cuda/skinny_kernel.cuh"

namespace tritonrl {
namespace {

using Element = __nv_bfloat16;
using Numbers = std::vector<Element>;

Numbers Drawn(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Numbers numbers(count);
  for (Element& x : numbers) x = __float2bfloat16_rn(normal(random));
  return numbers;
}

// x of 16 rows and what belongs to it; behind the last row that is used there is NaN.
struct Product {
  Product(int rows, int64_t inner, int64_t columns, bool swiglu = false)
      : rows(rows),
        inner(inner),
        columns(columns),
        swiglu(swiglu),
        x(Drawn(16 * inner, 1)),
        weight(Drawn(columns * inner, 2)),
        norm(Drawn(inner, 3)),
        add(Drawn(16 * columns, 4)) {}

  int rows;
  int64_t inner, columns;
  bool swiglu;
  Numbers x, weight, norm, add;
};

constexpr float kUntouched = 12345.0f;

template <int kTiles, int kGroups, bool kNorm>
std::vector<float> Multiplied(const Product& p, int blocks, bool wide, bool add) {
  const int64_t columns = p.swiglu ? p.columns / 2 : p.columns, each = p.swiglu ? 1 : kTiles;
  const Element nan = __float2bfloat16_rn(std::numeric_limits<float>::quiet_NaN());
  Numbers x = p.x;
  std::fill(x.begin() + p.rows * p.inner, x.end(), nan);
  const int64_t size = p.rows * columns;
  std::vector<float> floats(size + 64, kUntouched);
  Numbers rounded(size + 64, __float2bfloat16_rn(kUntouched));
  copies = {};
  copies.begin = reinterpret_cast<const char*>(p.weight.data());
  copies.end = copies.begin + 2 * p.weight.size();
  const SkinnyArguments at = {.rows = p.rows,
                              .inner = p.inner,
                              .columns = columns,
                              .x = x.data(),
                              .weight = p.weight.data(),
                              .norm_weight = kNorm ? p.norm.data() : nullptr,
                              .eps = 1e-6f,
                              .add = add ? p.add.data() : nullptr,
                              .out = wide ? static_cast<void*>(floats.data()) : rounded.data(),
                              .wide = wide,
                              .swiglu = p.swiglu,
                              .passes = static_cast<int>((columns + 16 * each - 1) / (16 * each)),
                              .spans = static_cast<int>((p.inner + 511) / 512)};
  EXPECT_LE(static_cast<size_t>(SkinnySharedBytes<kTiles, kGroups>()), 16 * copies.shared.size());
  EmulatedBlock::Run(blocks, [&] { SkinnyKernel<kTiles, kGroups, kNorm>(at); });
  EXPECT_FALSE(copies.outside) << "a copy reads outside of W";
  EXPECT_EQ(copies.read, p.columns * p.inner / 8) << "W is read once";
  if (!wide) std::transform(rounded.begin(), rounded.end(), floats.begin(), __bfloat162float);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(floats[size + i], wide ? kUntouched : __bfloat162float(rounded.back()));
  }
  floats.resize(size);
  return floats;
}

// Rows of x as the norm's kernel rounds them.
std::vector<double> RowOf(const Product& p, int m, bool norm) {
  std::vector<double> row(p.inner);
  double squares = 0;
  for (int64_t k = 0; k < p.inner; ++k) {
    row[k] = __bfloat162float(p.x[m * p.inner + k]);
    squares += row[k] * row[k];
  }
  const double inverse = 1 / std::sqrt(squares / static_cast<double>(p.inner) + 1e-6);
  for (int64_t k = 0; norm && k < p.inner; ++k) {
    const float normed = __bfloat162float(__double2bfloat16(row[k] * inverse));
    row[k] = __bfloat162float(__float2bfloat16_rn(normed * __bfloat162float(p.norm[k])));
  }
  return row;
}

// The largest error, as a share of what rounding explains.
double Error(const Product& p, const std::vector<float>& out, bool norm, bool wide, bool add) {
  const int64_t columns = p.swiglu ? p.columns / 2 : p.columns;
  double worst = 0;
  for (int m = 0; m < p.rows; ++m) {
    const std::vector<double> x = RowOf(p, m, norm);
    const auto dot = [&](int64_t n) {
      double sum = 0;
      for (int64_t k = 0; k < p.inner; ++k)
        sum += x[k] * __bfloat162float(p.weight[n * p.inner + k]);
      return sum;
    };
    for (int64_t n = 0; n < columns; ++n) {
      double exact = dot(n), size = std::sqrt(static_cast<double>(p.inner));
      if (p.swiglu) {
        const double up = dot(columns + n);
        exact = exact / (1 + std::exp(-exact)) * up;
        size += std::abs(up);
      }
      if (add) exact += __bfloat162float(p.add[m * columns + n]);
      // A norm at the edge of rounding takes one step of bf16 in a few elements.
      const double slack = (norm ? 3e-3 : 1e-5) * size;
      const double rounding = wide ? 0 : std::abs(exact) / (p.swiglu ? 64 : 256);
      const double error = std::abs(out[m * columns + n] - exact) / (slack + rounding);
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

TEST(SkinnyKernelTest, ProductsOfAllSizes) {
  struct Sizes {
    int rows;
    int64_t inner, columns;
  };
  for (const auto& [rows, inner, columns] :
       {Sizes{1, 8, 1}, Sizes{1, 512, 16}, Sizes{3, 72, 17}, Sizes{8, 1032, 100}, Sizes{5, 64, 96},
        Sizes{7, 640, 144}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << inner << " -> " << columns);
    const Product p(rows, inner, columns);
    const std::vector<float> out = Multiplied<1, 1, false>(p, 2, true, false);
    EXPECT_LE(Error(p, out, false, true, false), 1);
    EXPECT_EQ((Multiplied<2, 1, false>(p, 1, true, false)), out);
    EXPECT_EQ((Multiplied<3, 1, false>(p, 2, true, false)), out);
    EXPECT_EQ((Multiplied<1, 2, false>(p, 3, true, false)), out);
    EXPECT_LE(Error(p, Multiplied<2, 1, false>(p, 2, false, true), false, false, true), 1);
  }
}

TEST(SkinnyKernelTest, MoreThanEightRowsHaveTheBitsOfEachAlone) {
  Product p(13, 1096, 70);
  const std::vector<float> all = Multiplied<3, 2, false>(p, 1, true, false);
  EXPECT_LE(Error(p, all, false, true, false), 1);
  EXPECT_EQ((Multiplied<2, 2, false>(p, 2, true, false)), all);
  p.rows = 4;
  const std::vector<float> few = Multiplied<2, 1, false>(p, 2, true, false);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin()));
}

TEST(SkinnyKernelTest, NormInFront) {
  for (const int rows : {1, 6, 8}) {
    const Product p(rows, 2056, 40);
    EXPECT_LE(Error(p, Multiplied<2, 1, true>(p, 2, true, false), true, true, false), 1) << rows;
  }
  const Product p(15, 136, 40);
  EXPECT_LE(Error(p, Multiplied<3, 2, true>(p, 1, true, false), true, true, false), 1);
}

TEST(SkinnyKernelTest, SwigluBehind) {
  for (const int64_t columns : {2 * 28, 2 * 48}) {
    const Product p(3, 520, columns, /*swiglu=*/true);
    EXPECT_LE(Error(p, Multiplied<2, 1, false>(p, 2, false, false), false, false, false), 1);
    EXPECT_LE(Error(p, Multiplied<2, 2, true>(p, 1, false, false), true, false, false), 1);
  }
}

}  // namespace
}  // namespace tritonrl
