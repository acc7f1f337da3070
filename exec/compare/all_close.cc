#include "exec/compare/all_close.h"

#include <string.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace tritonrl {
namespace {

// Compiled for several instruction sets, of which the machine's best is taken at run time. The
// loops below are written so that the compiler turns them into vector code: no branch, and the
// running maximum on the bits of doubles, which for numbers above 0 are ordered like the numbers.
#ifdef __SANITIZE_THREAD__  // the choice among clones runs before its runtime does, and crashes
#define TRITONRL_VECTOR
#else
#define TRITONRL_VECTOR __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif

TRITONRL_VECTOR bool Near(const double* want, const double* got, double atol, double rtol,
                          double* largest) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  int64_t most = std::bit_cast<int64_t>(*largest);
  int64_t far = 0;
  for (int i = 0; i < kAllCloseBlock; ++i) {
    const double error = __builtin_fabs(got[i] - want[i]);
    const double allowed = atol + rtol * __builtin_fabs(want[i]);
    far += !(error <= allowed) | !(error < kInfinity);
    most = std::max(most, std::bit_cast<int64_t>(error));
  }
  if (far != 0) return false;
  *largest = std::bit_cast<double>(most);
  return true;
}

TRITONRL_VECTOR void WidenFloats(const char* from, double* to) {
  float values[kAllCloseBlock];
  memcpy(values, from, sizeof(values));
  for (int i = 0; i < kAllCloseBlock; ++i) to[i] = static_cast<double>(values[i]);
}

TRITONRL_VECTOR void WidenBfloats(const char* from, double* to) {
  uint16_t values[kAllCloseBlock];
  memcpy(values, from, sizeof(values));
  for (int i = 0; i < kAllCloseBlock; ++i) {
    to[i] = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(values[i]) << 16));
  }
}

// IEEE half precision: exponent and mantissa moved to their place in a float and scaled by the
// difference of the biases, 2^(127 - 15), which is right for subnormal numbers too. All ones in the
// exponent mean infinity or NaN; they become infinity, which is never near.
TRITONRL_VECTOR void WidenHalves(const char* from, double* to) {
  uint16_t values[kAllCloseBlock];
  memcpy(values, from, sizeof(values));
  for (int i = 0; i < kAllCloseBlock; ++i) {
    const uint32_t bits = values[i];
    const float size = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
    const uint32_t special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
    to[i] = static_cast<double>(
        std::bit_cast<float>(std::bit_cast<uint32_t>(size) | special | (bits & 0x8000u) << 16));
  }
}

void Widen(DType type, const char* from, double* to) {
  if (type == DType::kFloat32) {
    WidenFloats(from, to);
  } else if (type == DType::kBFloat16) {
    WidenBfloats(from, to);
  } else if (type == DType::kFloat16) {
    WidenHalves(from, to);
  } else {
    memcpy(to, from, kAllCloseBlock * sizeof(double));
  }
}

}  // namespace

bool BlockAllClose(DType type, const char* want, const char* got, double atol, double rtol,
                   double* largest) {
  if (type != DType::kFloat32 && type != DType::kFloat64 && type != DType::kFloat16 &&
      type != DType::kBFloat16) {
    return false;
  }
  double a[kAllCloseBlock], b[kAllCloseBlock];
  Widen(type, want, a);
  Widen(type, got, b);
  return Near(a, b, atol, rtol, largest);
}

}  // namespace tritonrl
