// Dot products of fp8 numbers as the tensor cores of sm_90 compute them (wgmma, f32 accumulator):
// of 32 products and the accumulator, each is cut off (toward zero) below 2^(e - 13), where e is
// the largest exponent among them; their exact sum keeps 13 bits of its mantissa. The exponent of a
// product is the sum of its factors' exponents, those of subnormal numbers are the least of the
// format, and zeros have none. Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores
// and Matrix Cores", 2025 (arXiv 2511.10909) found these rules and tested them on an H100.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

constexpr int kGroup = 32;  // products of one addition
constexpr int kFraction = 13;
constexpr int kVectors = 4;  // of floats, whose exponents fill one vector of bytes
constexpr int kLanes = kVectorBytes / 4;
constexpr int kColumns = kVectorBytes;
// Exponents of fp8 products are in [-28, 30]. With a zero as a factor they are below kLeast.
constexpr int8_t kZeroExponent = -60;
constexpr int kLeast = -40;

typedef float Floats __attribute__((vector_size(kVectorBytes)));
typedef int32_t Integers __attribute__((vector_size(kVectorBytes)));
typedef int8_t Bytes __attribute__((vector_size(kVectorBytes)));
typedef int8_t FewBytes __attribute__((vector_size(kLanes)));

template <typename Vector>
inline Vector Load(const void* p) {
  Vector v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

// A group of rows k of b, kColumns columns wide.
struct Panel {
  float values[kGroup][kColumns];
  int8_t exponents[kGroup][kColumns];
};

inline bool IsFinite(float x) { return (std::bit_cast<uint32_t>(x) & 0x7F800000u) != 0x7F800000u; }

// Of `count` fp8 numbers; those that are not finite become zeros.
inline void Split(const float* x, int64_t count, int least, float* values, int8_t* exponents) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<int32_t>(x[i]) & 0x7FFFFFFF;
    const int32_t exponent = (bits >> 23) - 127;
    const bool counts = bits != 0 && exponent < 128;
    values[i] = counts ? x[i] : 0.0f;
    exponents[i] = static_cast<int8_t>(!counts            ? kZeroExponent
                                       : exponent < least ? least
                                                          : exponent);
  }
}

// The accumulators `c` of kColumns columns with one row's products of a group added.
inline void AddGroup(const float* a, const int8_t* a_exponents, const Panel& panel, float* c) {
  Bytes most = Load<Bytes>(panel.exponents[0]) + a_exponents[0];
  for (int k = 1; k < kGroup; ++k) {
    const Bytes exponents = Load<Bytes>(panel.exponents[k]) + a_exponents[k];
    most = exponents > most ? exponents : most;
  }
  Floats units[kVectors];     // 2^(e - 13)
  Floats inverses[kVectors];  // 2^(13 - e)
  Integers sums[kVectors];
  Integers alone[kVectors];  // whether all products are zeros
  for (int v = 0; v < kVectors; ++v) {
    FewBytes part;
    std::memcpy(&part, reinterpret_cast<const char*>(&most) + v * kLanes, sizeof(part));
    const Integers products = __builtin_convertvector(part, Integers);
    const Floats before = Load<Floats>(c + v * kLanes);
    const Integers own = (reinterpret_cast<Integers>(before) >> 23 & 0xFF) - 127;
    alone[v] = products < kLeast || own == 128;
    Integers exponent = own > products ? own : products;
    exponent = alone[v] ? own - own : exponent;
    units[v] = reinterpret_cast<Floats>((exponent - kFraction + 127) << 23);
    inverses[v] = reinterpret_cast<Floats>((kFraction - exponent + 127) << 23);
    sums[v] = __builtin_convertvector(alone[v] ? before - before : before * inverses[v], Integers);
  }
  for (int k = 0; k < kGroup; ++k) {
    for (int v = 0; v < kVectors; ++v) {
      // Both products are exact. The conversion truncates.
      const Floats product = Load<Floats>(panel.values[k] + v * kLanes) * a[k] * inverses[v];
      sums[v] += __builtin_convertvector(product, Integers);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const Integers before = Load<Integers>(c + v * kLanes);
    const auto sum = reinterpret_cast<Integers>(__builtin_convertvector(sums[v], Floats));
    const auto scaled =
        reinterpret_cast<Integers>(reinterpret_cast<Floats>(sum & ~0x3FF) * units[v]);
    const Integers kept = (before & 0x7F800000) == 0x7F800000 ? before : before & ~0x3FF;
    const Integers after = alone[v] ? kept : scaled;
    std::memcpy(c + v * kLanes, &after, sizeof(after));
  }
}

// Elements with a factor that is not finite are NaN or infinite, in whatever order they are added.
void AddNotFinite(float* c, const float* a, const float* b, const Fp8DotShape& fp8) {
  const DotShape& shape = fp8.shape;
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t k = fp8.begin; k < fp8.end; ++k) {
      const float left = a[i * shape.k + k];
      const float* const row = b + k * shape.n;
      float* const sums = c + i * shape.n;
      for (int64_t j = 0; j < shape.n; ++j) {
        if (!IsFinite(left) || !IsFinite(row[j])) sums[j] += left * row[j];
      }
    }
  }
}

bool AreFinite(const float* x, int64_t count) {
  uint32_t most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFu;
    most = bits > most ? bits : most;
  }
  return most < 0x7F800000u;
}

}  // namespace

void DotFp8(float* c, const float* a, const float* b, const Fp8DotShape& fp8) {
  const DotShape& shape = fp8.shape;
  Panel panel;
  float row[kGroup];
  int8_t row_exponents[kGroup];
  for (int64_t j = 0; j < shape.n; j += kColumns) {
    const int64_t columns = shape.n - j < kColumns ? shape.n - j : kColumns;
    if (columns < kColumns) {
      std::memset(panel.values, 0, sizeof(panel.values));
      std::memset(panel.exponents, kZeroExponent, sizeof(panel.exponents));
    }
    for (int64_t first = fp8.begin; first < fp8.end; first += kGroup) {
      for (int64_t k = 0; k < kGroup; ++k) {
        Split(b + (first + k) * shape.n + j, columns, fp8.least_exponents[1], panel.values[k],
              panel.exponents[k]);
      }
      for (int64_t i = 0; i < shape.m; ++i) {
        Split(a + i * shape.k + first, kGroup, fp8.least_exponents[0], row, row_exponents);
        float* const out = c + i * shape.n + j;
        if (columns == kColumns) {
          AddGroup(row, row_exponents, panel, out);
          continue;
        }
        float sums[kColumns] = {};
        std::memcpy(sums, out, static_cast<size_t>(columns) * sizeof(float));
        AddGroup(row, row_exponents, panel, sums);
        std::memcpy(out, sums, static_cast<size_t>(columns) * sizeof(float));
      }
    }
  }
  if (!AreFinite(a, shape.m * shape.k) || !AreFinite(b, shape.k * shape.n)) {
    AddNotFinite(c, a, b, fp8);
  }
  for (int64_t i = 0; i < shape.m * shape.n; ++i) {
    if (c[i] != c[i]) c[i] = std::bit_cast<float>(0x7FFFFFFFu);
  }
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
