#include "exec/compare/compare_elements.h"

#include <string.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"

namespace tritonrl {
namespace {

// Compiles a function for several instruction sets; the best one of the machine is chosen at run
// time. The loops below vectorise because they have no branch and keep the running maximum on the
// bits of doubles, whose order for non-negative numbers is that of the numbers.
#ifdef __SANITIZE_THREAD__  // the choice among clones runs before TSan's runtime starts, and
                            // crashes
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

// IEEE half precision: shifts exponent and mantissa to their place in a float and scales by the
// difference of the biases, 2^(127 - 15), which is right for subnormal numbers too. An exponent of
// all ones means infinity or NaN, and stays so, as Near rejects both.
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

namespace {

bool IsNan(double x) { return std::isnan(x); }
bool IsNan(const std::complex<double>& x) { return std::isnan(x.real()) || std::isnan(x.imag()); }
bool IsInf(double x) { return std::isinf(x); }
bool IsInf(const std::complex<double>& x) { return std::isinf(x.real()) || std::isinf(x.imag()); }
std::string Digits(double x, int digits) { return ElementText({x}, digits); }
std::string Digits(const std::complex<double>& x, int digits) {
  return ElementText({x.real(), x.imag()}, digits);
}

constexpr int64_t kBytesForThread = 2 << 20;  // fewer bytes do not justify a thread

// Counts a bad element (`a` is expected, `b` the candidate's) and records the first one.
template <typename Wide>
void NoteBad(int64_t index, const Wide& a, const Wide& b, double error, double tolerance,
             Difference* result) {
  if (result->bad++ == 0) {
    result->first = index;
    result->want = Digits(a, 9);
    result->got = Digits(b, 9);
    result->want_short = Digits(a, 6);
    result->got_short = Digits(b, 6);
    result->error = error;
    result->tolerance = tolerance;
  }
  result->nan = result->nan || (IsNan(b) && !IsNan(a));
}

template <typename Type>
Difference CompareRun(DType type, const char* want, const char* got, int64_t count, double atol,
                      double rtol) {
  Difference result;
  for (int64_t i = 0; i < count; ++i) {
    if (i % kAllCloseBlock == 0 && i + kAllCloseBlock <= count &&
        BlockAllClose(type, want + i * Type::kBytes, got + i * Type::kBytes, atol, rtol,
                      &result.largest)) {
      i += kAllCloseBlock - 1;
      continue;
    }
    const typename Type::Wide a = Type::Get(want + i * Type::kBytes);
    const typename Type::Wide b = Type::Get(got + i * Type::kBytes);
    const double error = std::abs(b - a);
    // The common case first: within the tolerance and finite (a finite error implies both).
    if (error <= atol + rtol * std::abs(a) && std::isfinite(error)) {
      result.largest = std::max(result.largest, error);
      continue;
    }
    if (a == b || (IsNan(a) && IsNan(b))) continue;
    const bool finite = !std::isnan(error);
    result.largest =
        std::max(result.largest, finite ? error : std::numeric_limits<double>::infinity());
    if (error <= atol + rtol * std::abs(a) && !IsInf(a)) continue;
    NoteBad(i, a, b, error, atol + rtol * std::abs(a), &result);
  }
  return result;
}

template <typename Type>
Difference CompareExactly(const char* want, const ExactBytes& bytes, const char* got,
                          int64_t count) {
  Difference result;
  for (int64_t i = 0; i < count; ++i) {
    const double exact = LoadElement<float>(bytes.exact + i * sizeof(float));
    const double slack = LoadElement<float>(bytes.slack + i * sizeof(float));
    const double b = Type::Get(got + i * Type::kBytes);
    const double error = std::abs(b - exact);
    const double tolerance = bytes.absolute + bytes.relative * std::abs(exact) + slack;
    if (error <= tolerance && std::isfinite(error)) {
      result.largest = std::max(result.largest, error);
      if (tolerance > 0 && (!result.share.has_value() || error / tolerance > *result.share)) {
        result.share = error / tolerance;
        result.share_error = error;
        result.share_tolerance = tolerance;
      }
      continue;
    }
    // float32 overflows and becomes invalid earlier than float64, so where either result is not
    // finite the candidate may agree with either.
    const double own = Type::Get(want + i * Type::kBytes);
    if (!std::isfinite(own) || !std::isfinite(exact)) {
      if (b == own || b == exact || (IsNan(b) && (IsNan(own) || IsNan(exact)))) continue;
    }
    result.largest =
        std::max(result.largest, IsNan(error) ? std::numeric_limits<double>::infinity() : error);
    NoteBad(i, exact, b, error, tolerance, &result);
  }
  return result;
}

// Merges compare(first, count) over all elements. Several threads compare a large tensor, one range
// each. Indices in the result refer to the whole tensor.
template <typename Compare>
Difference CompareInParts(int64_t count, int64_t bytes, const Compare& compare) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency() / 2);
  const int64_t parts =
      std::clamp<int64_t>(count * bytes / kBytesForThread, 1, std::min<int64_t>(cores, 8));
  const int64_t length = (count / parts / kAllCloseBlock + 1) * kAllCloseBlock;
  std::vector<Difference> found(parts);
  std::vector<std::thread> threads;
  const auto compare_part = [&](int64_t part) {
    const int64_t first = std::min(part * length, count);
    found[part] = compare(first, std::min(length, count - first));
    found[part].first += first;
  };
  for (int64_t part = 1; part < parts; ++part) threads.emplace_back(compare_part, part);
  compare_part(0);
  for (std::thread& thread : threads) thread.join();
  Difference all = std::move(found[0]);
  for (int64_t part = 1; part < parts; ++part) {
    Difference& next = found[part];
    const double largest = std::max(all.largest, next.largest);
    const bool nan = all.nan || next.nan;
    const int64_t bad = all.bad + next.bad;
    const Difference& nearest = next.share > all.share ? next : all;  // nullopt < any share
    const auto share = nearest.share;
    const double share_error = nearest.share_error, share_tolerance = nearest.share_tolerance;
    if (all.bad == 0 && next.bad > 0) all = std::move(next);  // takes the first bad element
    all.largest = largest;
    all.nan = nan;
    all.bad = bad;
    all.share = share;
    all.share_error = share_error;
    all.share_tolerance = share_tolerance;
  }
  return all;
}

}  // namespace

std::string ElementText(const std::vector<double>& parts, int digits) {
  if (parts.size() != 2) return absl::StrFormat("%.*g", digits, parts.empty() ? 0 : parts[0]);
  return absl::StrFormat("%.*g%+.*gj", digits, parts[0], digits, parts[1]);
}

Difference CompareElements(const Leaf& leaf, const char* want, const char* got, double atol,
                           double rtol) {
  const int64_t bytes = SizeOf(leaf.type);
  return CompareInParts(leaf.elements, bytes, [&](int64_t first, int64_t count) {
    return WithElementReader(leaf.type, [&](auto reader) {
      return CompareRun<decltype(reader)>(leaf.type, want + first * bytes, got + first * bytes,
                                          count, atol, rtol);
    });
  });
}

std::optional<Difference> CompareWithExact(const Leaf& leaf, const char* want,
                                           const ExactBytes& bytes, const char* got) {
  const auto compare = [&](auto reader) {
    using Type = decltype(reader);
    auto found = CompareInParts(leaf.elements, Type::kBytes, [&](int64_t first, int64_t count) {
      ExactBytes part = bytes;
      part.exact += first * sizeof(float);
      part.slack += first * sizeof(float);
      return CompareExactly<Type>(want + first * Type::kBytes, part, got + first * Type::kBytes,
                                  count);
    });
    found.exactly = true;
    return found;
  };
  switch (leaf.type) {
    case DType::kFloat16:
      return compare(HalfElement());
    case DType::kBFloat16:
      return compare(BFloatElement());
    case DType::kFloat32:
      return compare(PlainElement<float>());
    default:
      return std::nullopt;
  }
}

Difference CompareNumbers(double want, double got, double atol, double rtol) {
  return CompareRun<PlainElement<double>>(DType::kFloat64, reinterpret_cast<const char*>(&want),
                                          reinterpret_cast<const char*>(&got), 1, atol, rtol);
}

}  // namespace tritonrl
