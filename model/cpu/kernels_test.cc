// Compares each kernel with a plain double-precision loop, for every instruction set of this
// machine, and AVX-512 with AVX2 bit for bit.

#include "model/cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace tritonrl {
namespace {

using Floats = std::vector<float>;

std::vector<const CpuKernels*> SupportedKernels() {
  std::vector<const CpuKernels*> tables = {&Sse2Kernels()};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    tables.push_back(&Avx2Kernels());
  }
  if (std::strcmp(BestCpuKernels().name, "avx512") == 0) tables.push_back(&Avx512Kernels());
  return tables;
}

Floats Random(int64_t n, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(n);
  for (float& v : values) v = normal(generator);
  return values;
}

void ExpectNear(const Floats& actual, const std::vector<double>& expected, double tolerance,
                const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::fabs(expected[i])))
        << what << " element " << i;
  }
}

class KernelsTest : public testing::TestWithParam<const CpuKernels*> {
 protected:
  const CpuKernels& k() const { return *GetParam(); }
};

TEST_P(KernelsTest, GemmOfAllTileShapes) {
  for (int64_t m : {1, 5, 12, 13, 97, 130}) {
    for (int64_t n : {1, 16, 31, 32, 47, 160}) {
      for (int64_t depth : {1, 65, 300}) {
        const Floats a = Random(m * depth, 1), b = Random(depth * (n + 3), 2),
                     c0 = Random(m * n, 3);
        for (bool transposed : {false, true}) {
          for (bool accumulate : {false, true}) {
            Floats c = c0;
            k().gemm(m, n, depth, a.data(), transposed ? 1 : depth, transposed ? m : 1, b.data(),
                     n + 3, c.data(), n, accumulate);
            std::vector<double> expected(m * n);
            for (int64_t i = 0; i < m; ++i) {
              for (int64_t j = 0; j < n; ++j) {
                double sum = accumulate ? c0[i * n + j] : 0;
                for (int64_t p = 0; p < depth; ++p) {
                  sum += double{a[transposed ? p * m + i : i * depth + p]} * b[p * (n + 3) + j];
                }
                expected[i * n + j] = sum;
              }
            }
            ExpectNear(c, expected, 2e-5, "gemm");
          }
        }
      }
    }
  }
}

TEST_P(KernelsTest, GemmRowDoesNotDependOnTheOthers) {
  const int64_t m = 97, n = 160, depth = 300;
  const Floats a = Random(m * depth, 1), b = Random(depth * n, 2);
  Floats all(m * n), one(n), narrow(m * 16);
  k().gemm(m, n, depth, a.data(), depth, 1, b.data(), n, all.data(), n, false);
  k().gemm(m, 16, depth, a.data(), depth, 1, b.data(), n, narrow.data(), 16, false);
  for (int64_t i = 0; i < m; ++i) {
    k().gemm(1, n, depth, a.data() + i * depth, depth, 1, b.data(), n, one.data(), n, false);
    ASSERT_EQ(std::memcmp(one.data(), &all[i * n], n * sizeof(float)), 0) << i;
    ASSERT_EQ(std::memcmp(&narrow[i * 16], &all[i * n], 16 * sizeof(float)), 0) << i;
  }
}

TEST_P(KernelsTest, Transpose) {
  const int64_t rows = 37, cols = 21;
  const Floats x = Random(rows * cols, 1);
  Floats y(rows * cols);
  k().transpose(rows, cols, x.data(), cols, y.data(), rows);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) ASSERT_EQ(y[c * rows + r], x[r * cols + c]);
  }
}

TEST_P(KernelsTest, RmsNorm) {
  for (int64_t cols : {7, 16, 40}) {
    const int64_t rows = 3;
    const Floats x = Random(rows * cols, 1), w = Random(cols, 2);
    Floats y(rows * cols), rstd(rows), again(rows * cols);
    k().rms_norm(rows, cols, x.data(), w.data(), 1e-6f, y.data(), rstd.data());
    k().rms_norm_apply(rows, cols, x.data(), w.data(), rstd.data(), again.data());
    EXPECT_EQ(y, again);
    std::vector<double> expected(rows * cols);
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c) sum += double{x[r * cols + c]} * x[r * cols + c];
      for (int64_t c = 0; c < cols; ++c) {
        expected[r * cols + c] = w[c] * x[r * cols + c] / std::sqrt(sum / cols + 1e-6);
      }
    }
    ExpectNear(y, expected, 1e-5, "rms_norm");
  }
}

TEST_P(KernelsTest, SwigluAndItsSlope) {
  const int64_t rows = 3, size = 21;
  const Floats x = Random(rows * 2 * size, 1), d = Random(rows * size, 2);
  Floats y(rows * size), again(rows * size), d_x(rows * 2 * size);
  k().swiglu(rows, size, x.data(), y.data());
  k().swiglu_backward(rows, size, x.data(), d.data(), d_x.data(), again.data());
  EXPECT_EQ(y, again);
  std::vector<double> expected(rows * size), d_expected(rows * 2 * size);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < size; ++i) {
      const double g = x[r * 2 * size + i], u = x[r * 2 * size + size + i];
      const double s = 1 / (1 + std::exp(-g));
      expected[r * size + i] = g * s * u;
      d_expected[r * 2 * size + i] = d[r * size + i] * u * s * (1 + g * (1 - s));
      d_expected[r * 2 * size + size + i] = d[r * size + i] * g * s;
    }
  }
  ExpectNear(y, expected, 1e-5, "swiglu");
  ExpectNear(d_x, d_expected, 1e-5, "swiglu_backward");
}

TEST_P(KernelsTest, LogSoftmaxWithTemperatureAndLargeLogits) {
  const int64_t rows = 4, vocab = 53;
  Floats x = Random(rows * vocab, 1);
  for (int64_t i = 0; i < vocab; ++i) x[i] = x[i] * 30 + 500;  // exp of these logits overflows
  const std::vector<int64_t> targets = {0, 52, 17, 3};
  const Floats d = {1.0f, -2.0f, 0.0f, 0.5f};
  const double temperature = 0.7;
  const float inverse = static_cast<float>(1 / temperature);
  Floats log_probs(rows), entropy(rows), lse(rows), d_x = x;
  k().log_softmax(rows, vocab, x.data(), inverse, targets.data(), log_probs.data(), entropy.data(),
                  lse.data());
  k().log_softmax_backward(rows, vocab, d_x.data(), inverse, targets.data(), lse.data(), d.data());
  std::vector<double> p(rows), h(rows), g(rows * vocab);
  for (int64_t r = 0; r < rows; ++r) {
    double largest = -1e30, sum = 0;
    for (int64_t i = 0; i < vocab; ++i) largest = std::max(largest, x[r * vocab + i] / temperature);
    for (int64_t i = 0; i < vocab; ++i) sum += std::exp(x[r * vocab + i] / temperature - largest);
    for (int64_t i = 0; i < vocab; ++i) {
      const double l = x[r * vocab + i] / temperature - largest - std::log(sum);
      if (i == targets[r]) p[r] = l;
      h[r] -= std::exp(l) * l;
      g[r * vocab + i] = d[r] / temperature * ((i == targets[r] ? 1 : 0) - std::exp(l));
    }
  }
  ExpectNear(log_probs, p, 1e-5, "log_probs");
  ExpectNear(entropy, h, 1e-5, "entropy");
  ExpectNear(d_x, g, 2e-4, "d_logits");  // row 0: logits near 500 leave five digits after the lse
}

struct AttentionCase {
  int64_t length, dim, group;
  Floats q, k, v, out, lse;

  AttentionCase(int64_t length, int64_t dim, int64_t group)
      : length(length),
        dim(dim),
        group(group),
        q(Random(length * group * dim, 1)),
        k(Random(length * dim, 2)),
        v(Random(length * dim, 3)),
        out(length * group * dim),
        lse(group * length) {}

  AttentionTask Task(Floats* scratch, const CpuKernels& kernels) {
    scratch->assign(kernels.attention_scratch(length, dim), NAN);
    return {.length = length,
            .head_dim = dim,
            .group = group,
            .scale = 1 / std::sqrt(static_cast<float>(dim)),
            .q = q.data(),
            .q_row = group * dim,
            .k = k.data(),
            .k_row = dim,
            .v = v.data(),
            .v_row = dim,
            .out = out.data(),
            .out_row = group * dim,
            .lse = lse.data(),
            .lse_head = length,
            .scratch = scratch->data()};
  }
};

TEST_P(KernelsTest, AttentionForward) {
  for (int64_t length : {1, 17, 48, 113}) {
    for (int64_t dim : {8, 32}) {
      AttentionCase c(length, dim, 2);
      Floats scratch;
      k().attention(c.Task(&scratch, k()));
      std::vector<double> expected(c.out.size());
      for (int64_t g = 0; g < 2; ++g) {
        for (int64_t i = 0; i < length; ++i) {
          std::vector<double> p(i + 1);
          double sum = 0;
          for (int64_t j = 0; j <= i; ++j) {
            double score = 0;
            for (int64_t d = 0; d < dim; ++d) {
              score += double{c.q[i * 2 * dim + g * dim + d]} * c.k[j * dim + d];
            }
            sum += p[j] = std::exp(score / std::sqrt(dim));
          }
          for (int64_t j = 0; j <= i; ++j) {
            for (int64_t d = 0; d < dim; ++d) {
              expected[i * 2 * dim + g * dim + d] += p[j] / sum * c.v[j * dim + d];
            }
          }
        }
      }
      ExpectNear(c.out, expected, 2e-5, "attention");
    }
  }
}

// The keys and values of an AttentionCase in pages in scattered order; all other elements are NaN.
struct PagedCase {
  std::vector<int32_t> pages;
  Floats keys, values;

  explicit PagedCase(const AttentionCase& c) {
    const int64_t count = (c.length + 15) / 16, dim = c.dim;
    for (int64_t i = 0; i < count; ++i) pages.push_back((i * 7 + 3) % (7 * count + 4));
    keys.assign((7 * count + 4) * dim * 16, NAN);
    values = keys;
    for (int64_t j = 0; j < c.length; ++j) {
      for (int64_t d = 0; d < dim; ++d) {
        keys[(pages[j / 16] * dim + d) * 16 + j % 16] = c.k[j * dim + d];
        values[(pages[j / 16] * 16 + j % 16) * dim + d] = c.v[j * dim + d];
      }
    }
  }

  // Runs rows [first, first + rows) of the case and writes them to the same rows of
  // out[length, group * D].
  void Run(const CpuKernels& kernels, const AttentionCase& c, int64_t first, int64_t rows,
           Floats* out) const {
    const int64_t width = (first + rows + 15) / 16 * 16, row = c.group * c.dim;
    Floats scratch(std::max<int64_t>(rows, 2) * width, NAN);
    kernels.attention_paged({.first = first,
                             .rows = rows,
                             .head_dim = c.dim,
                             .group = c.group,
                             .scale = 1 / std::sqrt(static_cast<float>(c.dim)),
                             .q = c.q.data() + first * row,
                             .q_row = row,
                             .keys = keys.data(),
                             .values = values.data(),
                             .page_stride = c.dim * 16,
                             .pages = pages.data(),
                             .out = out->data() + first * row,
                             .out_row = row,
                             .scratch = scratch.data()});
  }
};

TEST_P(KernelsTest, PagedAttentionIsTheSameForRowsAloneAndTogether) {
  for (int64_t length : {1, 16, 17, 48, 113}) {
    for (int64_t dim : {8, 32, 128}) {
      for (int64_t group : {1, 2, 5}) {
        AttentionCase c(length, dim, group);
        Floats scratch;
        k().attention(c.Task(&scratch, k()));
        const PagedCase paged(c);
        Floats alone(c.out.size(), NAN), together(c.out.size(), NAN), parts(c.out.size(), NAN);
        for (int64_t i = 0; i < length; ++i) paged.Run(k(), c, i, 1, &alone);
        paged.Run(k(), c, 0, length, &together);
        for (int64_t i = 0; i < length; i += 13) {
          paged.Run(k(), c, i, std::min<int64_t>(13, length - i), &parts);
        }
        for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(alone[i], c.out[i], 2e-6) << i;
        ASSERT_EQ(alone, together);
        ASSERT_EQ(alone, parts);
      }
    }
  }
}

// Compares the gradient of sum(out * w) with central differences of the forward kernel.
TEST_P(KernelsTest, AttentionBackwardAgainstDifferences) {
  const int64_t length = 53, dim = 8, group = 2;
  AttentionCase c(length, dim, group);
  const Floats w = Random(c.out.size(), 4);
  Floats scratch, d_q(c.q.size(), NAN), d_k(c.k.size(), NAN), d_v(c.v.size(), NAN);
  auto loss = [&] {
    AttentionCase copy = c;
    Floats memory;
    k().attention(copy.Task(&memory, k()));
    double sum = 0;
    for (size_t i = 0; i < w.size(); ++i) sum += double{copy.out[i]} * w[i];
    return sum;
  };
  k().attention(c.Task(&scratch, k()));
  AttentionTask task = c.Task(&scratch, k());
  task.d_out = w.data();
  task.d_out_row = task.d_q_row = group * dim;
  task.d_k_row = task.d_v_row = dim;
  task.d_q = d_q.data();
  task.d_k = d_k.data();
  task.d_v = d_v.data();
  k().attention_backward(task);
  const std::pair<Floats*, Floats*> pairs[] = {{&c.q, &d_q}, {&c.k, &d_k}, {&c.v, &d_v}};
  for (auto [x, d] : pairs) {
    for (size_t i = 0; i < x->size(); i += 7) {
      const float kept = (*x)[i], step = 1e-2f;
      (*x)[i] = kept + step;
      const double up = loss();
      (*x)[i] = kept - step;
      const double down = loss();
      (*x)[i] = kept;
      ASSERT_NEAR((*d)[i], (up - down) / (2 * step), 3e-3) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, KernelsTest, testing::ValuesIn(SupportedKernels()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(KernelsTest, Avx512AndAvx2GiveTheSameBits) {
  if (std::strcmp(BestCpuKernels().name, "avx512") != 0) {
    EXPECT_NE(BestCpuKernels().gemm, Avx512Kernels().gemm);
    return;  // this machine has no AVX-512
  }
  const int64_t m = 61, n = 75, depth = 300;
  const Floats a = Random(m * depth, 1), b = Random(depth * n, 2);
  Floats c[2] = {Floats(m * n), Floats(m * n)};
  Floats out[2], paged[2] = {Floats(77 * 64), Floats(77 * 64)};
  const CpuKernels* tables[2] = {&Avx512Kernels(), &Avx2Kernels()};
  for (int i = 0; i < 2; ++i) {
    tables[i]->gemm(m, n, depth, a.data(), depth, 1, b.data(), n, c[i].data(), n, false);
    AttentionCase attention(77, 32, 2);
    Floats scratch;
    tables[i]->attention(attention.Task(&scratch, *tables[i]));
    out[i] = attention.out;
    PagedCase(attention).Run(*tables[i], attention, 0, 77, &paged[i]);
  }
  EXPECT_EQ(c[0], c[1]);
  EXPECT_EQ(out[0], out[1]);
  EXPECT_EQ(paged[0], paged[1]);
}

}  // namespace
}  // namespace tritonrl
