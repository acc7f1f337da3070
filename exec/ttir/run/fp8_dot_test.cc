// tt.dot of fp8 numbers against a model of wgmma in integers, which works on their bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "exec/ttir/run/testing/dot_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr absl::string_view kE4M3 = "f8E4M3FN";
constexpr absl::string_view kE5M2 = "f8E5M2";

struct Shape {
  int m = 64;
  int n = 8;
  int k = 32;
  int imprecise = 1 << 30;
};

std::vector<float> RunFp8Dot(absl::string_view x_type, absl::string_view y_type, const Shape& s,
                             const std::vector<uint8_t>& x, const std::vector<uint8_t>& y,
                             const std::vector<float>& c) {
  const std::string options =
      absl::StrCat(", inputPrecision = tf32 {maxNumImpreciseAcc = ", s.imprecise, " : i32}");
  return RunDot(DotText({s.m, s.n, s.k, std::string(x_type), std::string(y_type), "f32"}, options),
                x, y, c);
}

// whole * 2^(exponent - shift), where the exponent is that of the number's leading bit if it is
// normal.
struct Term {
  int64_t whole = 0;
  int exponent = 0;
  int shift = 0;
};

Term Fp8Term(uint8_t bits, absl::string_view type) {
  const int mantissa_bits = type == kE4M3 ? 3 : 2;
  const int field = (bits & 0x7F) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int whole = field == 0 ? mantissa : mantissa | 1 << mantissa_bits;
  return {bits >= 128 ? -whole : whole, std::max(field, 1) - (type == kE4M3 ? 7 : 15),
          mantissa_bits};
}

Term FloatTerm(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const int field = static_cast<int>(bits >> 23 & 0xFF);
  const int64_t mantissa = bits & 0x7FFFFF;
  const int64_t whole = field == 0 ? mantissa : mantissa | 0x800000;
  return {bits >> 31 != 0 ? -whole : whole, std::max(field, 1) - 127, 23};
}

// The terms' sum as one wgmma computes it.
float GroupSum(const std::vector<Term>& terms) {
  int most = -1000;
  for (const Term& term : terms) {
    if (term.whole != 0) most = std::max(most, term.exponent);
  }
  if (most == -1000) return 0;
  int64_t sum = 0;  // in units of 2^(most - 13)
  for (const Term& term : terms) {
    const int shift = 13 - term.shift + term.exponent - most;
    if (term.whole == 0 || shift < -62) continue;
    sum += shift >= 0 ? term.whole << shift : term.whole / (int64_t{1} << -shift);
  }
  const bool negative = sum < 0;
  if (negative) sum = -sum;
  int dropped = 0;
  while (sum >> dropped >= 1 << 14) ++dropped;
  const double kept = std::ldexp(static_cast<double>(sum >> dropped), dropped + most - 13);
  return static_cast<float>(negative ? -kept : kept);
}

std::vector<float> Model(absl::string_view x_type, absl::string_view y_type, const Shape& s,
                         const std::vector<uint8_t>& x, const std::vector<uint8_t>& y,
                         std::vector<float> c) {
  const int chunk = s.imprecise <= s.k ? (s.imprecise + 31) / 32 * 32 : s.k;
  for (int i = 0; i < s.m; ++i) {
    for (int j = 0; j < s.n; ++j) {
      float& result = c[i * s.n + j];
      for (int begin = 0; begin < s.k; begin += chunk) {
        float sum = s.imprecise <= s.k ? 0 : result;
        for (int first = begin; first < std::min(begin + chunk, s.k); first += 32) {
          std::vector<Term> terms = {FloatTerm(sum)};
          for (int k = first; k < first + 32; ++k) {
            const Term a = Fp8Term(x[i * s.k + k], x_type);
            const Term b = Fp8Term(y[k * s.n + j], y_type);
            terms.push_back({a.whole * b.whole, a.exponent + b.exponent, a.shift + b.shift});
          }
          sum = GroupSum(terms);
        }
        result = s.imprecise <= s.k ? result + sum : sum;
      }
    }
  }
  return c;
}

class Numbers {
 public:
  explicit Numbers(uint32_t seed) : random_(seed) {}

  // Finite ones, whose fields are uniform from `least` on; about one of `zeros` is 0.
  std::vector<uint8_t> Fp8(int count, int least, int zeros) {
    std::vector<uint8_t> values(static_cast<size_t>(count));
    for (uint8_t& value : values) {
      value = static_cast<uint8_t>((random_() & 0x80) | (least + random_() % (0x7C - least)));
      if (random_() % zeros == 0) value &= 0x80;
    }
    return values;
  }
  std::vector<float> Floats(int count, int exponents) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      const int exponent = static_cast<int>(random_() % (2 * exponents + 1)) - exponents;
      value = std::ldexp(static_cast<float>(random_()), exponent - 32);
      if ((random_() & 1) != 0) value = -value;
      if (random_() % 5 == 0) value = 0;
    }
    return values;
  }

 private:
  std::mt19937 random_;
};

TEST(Fp8DotTest, IsWhatTensorCoresOfHopperCompute) {
  const Shape shapes[] = {{64, 8, 32},        {64, 64, 128},     {128, 128, 64}, {64, 32, 256, 64},
                          {64, 16, 128, 100}, {64, 256, 64, 32}, {64, 8, 64, 64}};
  uint32_t seed = 0;
  for (const Shape& shape : shapes) {
    for (const auto x_type : {kE4M3, kE5M2}) {
      for (const auto y_type : {kE4M3, kE5M2}) {
        Numbers numbers(++seed);
        // Exponents that differ much, or hardly; few zeros, or many.
        const int least = seed % 3 == 0 ? 0x30 : 0;
        const auto x = numbers.Fp8(shape.m * shape.k, least, seed % 4 == 0 ? 2 : 50);
        const auto y = numbers.Fp8(shape.k * shape.n, least, 50);
        const auto c = numbers.Floats(shape.m * shape.n, seed % 2 == 0 ? 60 : 8);
        const auto result = RunFp8Dot(x_type, y_type, shape, x, y, c);
        const auto model = Model(x_type, y_type, shape, x, y, c);
        int differing = 0;
        for (size_t i = 0; i < c.size(); ++i) {
          differing += std::bit_cast<uint32_t>(result[i]) != std::bit_cast<uint32_t>(model[i]);
        }
        EXPECT_EQ(differing, 0) << shape.m << " " << shape.n << " " << shape.k << " " << x_type;
      }
    }
  }
}

TEST(Fp8DotTest, CutsProductsOff) {
  const Shape shape;
  std::vector<uint8_t> x(64 * 32, 0);
  std::vector<uint8_t> y(32 * 8, 0x38);       // 1
  for (int k = 0; k < 32; ++k) x[k] = 0x01;   // 2^-9
  x[0] = 0x7E;                                // 448 = 1.75 * 2^8, so that 2^-5 is the last place
  for (int k = 32; k < 64; ++k) x[k] = 0xB8;  // -1
  std::vector<float> c(64 * 8, 0.0f);
  c[9] = 65536 + 4;  // the last place is 8
  auto result = RunFp8Dot(kE4M3, kE4M3, shape, x, y, c);
  EXPECT_EQ(result[0], 448);
  EXPECT_EQ(result[8], -32);
  EXPECT_EQ(result[9], 65536);
  EXPECT_EQ(result[16], 0);
  // All of it where wgmma is not used: the products of small tiles are those of f16 numbers.
  const Shape small{32, 8, 32};
  x.resize(32 * 32);
  c.resize(32 * 8);
  result = RunFp8Dot(kE4M3, kE4M3, small, x, y, c);
  EXPECT_EQ(result[0], 448 + 31.0f / 512);
  EXPECT_EQ(result[9], 65536 + 4 - 32);
  // Or the program asks for sums in full precision.
  const Shape precise{64, 8, 32, 0};
  x.resize(64 * 32);
  c.resize(64 * 8);
  EXPECT_EQ(RunFp8Dot(kE4M3, kE4M3, precise, x, y, c)[0], 448 + 31.0f / 512);
}

TEST(Fp8DotTest, InfinitiesAndNan) {
  const Shape shape{64, 8, 64};
  std::vector<uint8_t> x(64 * 64, 0x3C);  // 1
  std::vector<uint8_t> y(64 * 8, 0x3C);
  std::vector<float> c(64 * 8, 1.0f);
  x[40] = 0x7C;      // infinity
  x[64 + 3] = 0x7E;  // NaN
  x[128] = 0x7C;     // infinity - infinity
  x[128 + 33] = 0xFC;
  y[50 * 8 + 7] = 0xFC;  // -infinity
  const float infinity = std::numeric_limits<float>::infinity();
  c[3 * 8] = infinity;
  c[4 * 8] = std::numeric_limits<float>::quiet_NaN();
  const auto result = RunFp8Dot(kE5M2, kE5M2, shape, x, y, c);
  const auto bits = [&](int i) { return std::bit_cast<uint32_t>(result[i]); };
  EXPECT_EQ(result[0], infinity);
  EXPECT_EQ(bits(7), 0x7FFFFFFFu);
  EXPECT_EQ(bits(8), 0x7FFFFFFFu);
  EXPECT_EQ(bits(16), 0x7FFFFFFFu);
  EXPECT_EQ(result[3 * 8], infinity);
  EXPECT_EQ(bits(4 * 8), 0x7FFFFFFFu);
  EXPECT_EQ(result[5 * 8], 65);
  EXPECT_EQ(result[5 * 8 + 7], -infinity);
}

}  // namespace
}  // namespace tritonrl::ttir
