#include "exec/tensor_compare.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "exec/all_near.h"

namespace tritonrl {
namespace {

// Memory of a running job may change under us and offsets need not be aligned: each element is
// copied out before it is looked at.
template <typename T>
T Load(const char* at) {
  T value;
  memcpy(&value, at, sizeof(T));
  return value;
}

// A float of `exponent_bits` and `mantissa_bits`, IEEE 754 style. Types without infinities (fn)
// have NaN at all ones and finite numbers elsewhere in the top binade.
double SmallFloat(uint32_t bits, int exponent_bits, int mantissa_bits, bool finite_only) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const uint32_t top = (1u << exponent_bits) - 1;
  const uint32_t exponent = bits >> mantissa_bits & top;
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1.0 : 1.0;
  const int bias = static_cast<int>(top >> 1);
  if (exponent == top) {
    if (!finite_only) {
      return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
    }
    if (mantissa == (1u << mantissa_bits) - 1) return std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1u << mantissa_bits) + mantissa,
                           static_cast<int>(exponent) - bias - mantissa_bits);
}

struct Half {
  using Wide = double;
  static constexpr int kBytes = 2;
  static Wide Get(const char* at) { return SmallFloat(Load<uint16_t>(at), 5, 10, false); }
};
struct BFloat {
  using Wide = double;
  static constexpr int kBytes = 2;
  static Wide Get(const char* at) {
    const uint32_t bits = static_cast<uint32_t>(Load<uint16_t>(at)) << 16;
    return Load<float>(reinterpret_cast<const char*>(&bits));
  }
};
struct E4M3 {
  using Wide = double;
  static constexpr int kBytes = 1;
  static Wide Get(const char* at) { return SmallFloat(Load<uint8_t>(at), 4, 3, true); }
};
struct E5M2 {
  using Wide = double;
  static constexpr int kBytes = 1;
  static Wide Get(const char* at) { return SmallFloat(Load<uint8_t>(at), 5, 2, false); }
};
template <typename T>
struct Plain {
  using Wide = double;
  static constexpr int kBytes = sizeof(T);
  static Wide Get(const char* at) { return static_cast<double>(Load<T>(at)); }
};
struct Bool {
  using Wide = double;
  static constexpr int kBytes = 1;
  static Wide Get(const char* at) { return Load<uint8_t>(at) != 0 ? 1.0 : 0.0; }
};
template <typename T>
struct Complex {
  using Wide = std::complex<double>;
  static constexpr int kBytes = 2 * sizeof(T);
  static Wide Get(const char* at) { return {Load<T>(at), Load<T>(at + sizeof(T))}; }
};

bool IsNan(double x) { return std::isnan(x); }
bool IsNan(const std::complex<double>& x) { return std::isnan(x.real()) || std::isnan(x.imag()); }
bool IsInf(double x) { return std::isinf(x); }
bool IsInf(const std::complex<double>& x) { return std::isinf(x.real()) || std::isinf(x.imag()); }
std::string Digits(double x, int digits) { return absl::StrFormat("%.*g", digits, x); }
std::string Digits(const std::complex<double>& x, int digits) {
  return absl::StrFormat("%.*g%+.*gj", digits, x.real(), digits, x.imag());
}

constexpr int64_t kBytesForThread = 2 << 20;  // less is not worth starting one

// What a pass over all elements of a pair of tensors found.
struct Difference {
  double largest = 0;
  int64_t bad = 0;
  int64_t first = 0;  // index of the first bad element
  std::string want, got, want_short, got_short;
  bool nan = false;  // NaN where a number is expected
};

template <typename Type>
Difference CompareElements(DType type, const char* want, const char* got, int64_t count,
                           double atol, double rtol) {
  Difference result;
  for (int64_t i = 0; i < count; ++i) {
    if (i % kNearBlock == 0 && i + kNearBlock <= count &&
        BlockIsNear(type, want + i * Type::kBytes, got + i * Type::kBytes, atol, rtol,
                    &result.largest)) {
      i += kNearBlock - 1;
      continue;
    }
    const typename Type::Wide a = Type::Get(want + i * Type::kBytes);
    const typename Type::Wide b = Type::Get(got + i * Type::kBytes);
    const double error = std::abs(b - a);
    // The common case first: near enough, and neither NaN nor infinite (error is finite then).
    if (error <= atol + rtol * std::abs(a) && std::isfinite(error)) {
      result.largest = std::max(result.largest, error);
      continue;
    }
    if (a == b || (IsNan(a) && IsNan(b))) continue;
    const bool finite = !std::isnan(error);
    result.largest =
        std::max(result.largest, finite ? error : std::numeric_limits<double>::infinity());
    if (error <= atol + rtol * std::abs(a) && !IsInf(a)) continue;
    if (result.bad++ == 0) {
      result.first = i;
      result.want = Digits(a, 9);
      result.got = Digits(b, 9);
      result.want_short = Digits(a, 6);
      result.got_short = Digits(b, 6);
    }
    result.nan = result.nan || (IsNan(b) && !IsNan(a));
  }
  return result;
}

Difference ComparePart(DType type, const char* want, const char* got, int64_t count, double atol,
                       double rtol) {
  switch (type) {
#define TRITONRL_CASE(name, reader) \
  case DType::name:                 \
    return CompareElements<reader>(type, want, got, count, atol, rtol)
    TRITONRL_CASE(kBool, Bool);
    TRITONRL_CASE(kUint8, Plain<uint8_t>);
    TRITONRL_CASE(kUint16, Plain<uint16_t>);
    TRITONRL_CASE(kUint32, Plain<uint32_t>);
    TRITONRL_CASE(kUint64, Plain<uint64_t>);
    TRITONRL_CASE(kInt8, Plain<int8_t>);
    TRITONRL_CASE(kInt16, Plain<int16_t>);
    TRITONRL_CASE(kInt32, Plain<int32_t>);
    TRITONRL_CASE(kInt64, Plain<int64_t>);
    TRITONRL_CASE(kFloat8E4M3Fn, E4M3);
    TRITONRL_CASE(kFloat8E5M2, E5M2);
    TRITONRL_CASE(kFloat16, Half);
    TRITONRL_CASE(kBFloat16, BFloat);
    TRITONRL_CASE(kFloat32, Plain<float>);
    TRITONRL_CASE(kFloat64, Plain<double>);
    TRITONRL_CASE(kComplex64, Complex<float>);
    TRITONRL_CASE(kComplex128, Complex<double>);
#undef TRITONRL_CASE
  }
  return {};
}

// What `compare(first, count)` finds in all elements. Large tensors are compared by several
// threads, each of which takes one stretch; indices are of the whole.
template <typename Compare>
Difference CompareInParts(int64_t count, int64_t bytes, const Compare& compare) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency() / 2);
  const int64_t parts =
      std::clamp<int64_t>(count * bytes / kBytesForThread, 1, std::min<int64_t>(cores, 8));
  const int64_t length = (count / parts / kNearBlock + 1) * kNearBlock;
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
    if (all.bad == 0 && next.bad > 0) all = std::move(next);  // with the first bad element
    all.largest = largest;
    all.nan = nan;
    all.bad = bad;
  }
  return all;
}

Difference CompareTyped(DType type, const char* want, const char* got, int64_t count, double atol,
                        double rtol) {
  const int64_t bytes = SizeOf(type);
  return CompareInParts(count, bytes, [&](int64_t first, int64_t part) {
    return ComparePart(type, want + first * bytes, got + first * bytes, part, atol, rtol);
  });
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

// Fills in a mismatch whose sides are described by words.
void Differ(const char* kind, const std::string& message, const std::string& want,
            const std::string& got, Comparison* result) {
  result->equal = false;
  result->message = message;
  result->mismatch.set_kind(kind);
  result->mismatch.set_want(want);
  result->mismatch.set_got(got);
}

void NoteError(double error, Comparison* result) {
  if (!result->max_error.has_value() || error > *result->max_error) result->max_error = error;
}

// The values of output `index` differ as `d` says, or do not.
void JudgeValues(int index, int64_t elements, const Difference& d, Comparison* result) {
  NoteError(d.largest, result);
  if (d.bad == 0) return;
  Differ(d.nan ? "nan" : "value",
         absl::StrFormat("output %d: %d of %d elements differ, largest error %.3g; element %d is "
                         "%s, expected %s",
                         index, d.bad, elements, d.largest, d.first, d.got_short, d.want_short),
         d.want, d.got, result);
  if (std::isfinite(d.largest)) result->mismatch.set_max_error(d.largest);
  result->mismatch.set_bad_elements(d.bad);
  result->mismatch.set_elements(elements);
}

void CompareTensorLeaf(int index, const Leaf& want, absl::string_view want_memory, const Leaf& got,
                       absl::string_view got_memory, double atol, double rtol, Comparison* result) {
  const std::string output = absl::StrCat("output ", index);
  if (want.device != got.device) {
    Differ("device", absl::StrCat(output, " is on ", got.device, ", expected ", want.device),
           want.device, got.device, result);
  } else if (want.layout != got.layout) {
    Differ("type", absl::StrCat(output, " has layout ", got.layout, ", expected ", want.layout),
           want.layout, got.layout, result);
  } else if (want.shape != got.shape) {
    const std::string a = ShapeText(want.shape), b = ShapeText(got.shape);
    Differ("shape", absl::StrCat(output, " has shape ", b, ", expected ", a), a, b, result);
  } else if (want.dtype != got.dtype) {
    Differ("dtype", absl::StrCat(output, " has type ", got.dtype, ", expected ", want.dtype),
           want.dtype, got.dtype, result);
  } else if (want.elements == 0) {
    NoteError(0, result);
  } else if (!want.offset.has_value() || !got.offset.has_value()) {
    Differ("type", absl::StrCat(output, " was not handed over"), "its values", "none", result);
  } else {
    JudgeValues(index, want.elements,
                CompareTyped(want.type, want_memory.data() + *want.offset,
                             got_memory.data() + *got.offset, want.elements, atol, rtol),
                result);
  }
}

}  // namespace

Comparison CompareOutputs(const Tensors& want, const Tensors& got, double atol, double rtol) {
  Comparison result;
  const size_t count = want.leaves.size();
  if (count != got.leaves.size()) {
    Differ("count", absl::StrCat(got.leaves.size(), " outputs, expected ", count),
           absl::StrCat(count), absl::StrCat(got.leaves.size()), &result);
    return result;
  }
  for (size_t i = 0; i < count && result.equal; ++i) {
    const Leaf& a = want.leaves[i];
    const Leaf& b = got.leaves[i];
    const int index = static_cast<int>(i);
    result.mismatch.set_output(index);
    if (a.type_name != b.type_name || a.kind != b.kind) {
      Differ("type",
             absl::StrCat("output ", i, " is a ", b.type_name, ", expected a ", a.type_name),
             a.type_name, b.type_name, &result);
    } else if (a.kind == Leaf::Kind::kTensor) {
      CompareTensorLeaf(index, a, want.memory, b, got.memory, atol, rtol, &result);
    } else if (a.kind == Leaf::Kind::kNumber) {
      const char* want_value = reinterpret_cast<const char*>(&a.number);
      const char* got_value = reinterpret_cast<const char*>(&b.number);
      JudgeValues(
          index, 1,
          CompareElements<Plain<double>>(DType::kFloat64, want_value, got_value, 1, atol, rtol),
          &result);
    } else if (a.text != b.text) {
      Differ("value",
             absl::StrCat("output ", i, " is ", b.text.substr(0, 80), ", expected ",
                          a.text.substr(0, 80)),
             a.text.substr(0, 80), b.text.substr(0, 80), &result);
    }
  }
  return result;
}

bool SameTensors(const Tensors& want, const Tensors& got) {
  if (want.leaves.size() != got.leaves.size()) return false;
  for (size_t i = 0; i < want.leaves.size(); ++i) {
    const Leaf& a = want.leaves[i];
    const Leaf& b = got.leaves[i];
    if (a.kind != Leaf::Kind::kTensor) continue;
    if (b.kind != a.kind || a.shape != b.shape || a.dtype != b.dtype) return false;
    if (a.elements == 0) continue;
    if (!a.offset.has_value() || !b.offset.has_value()) return false;
    if (memcmp(want.memory.data() + *a.offset, got.memory.data() + *b.offset, a.bytes()) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace tritonrl
