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
#include "exec/tensor_elements.h"

namespace tritonrl {
namespace {

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
  bool nan = false;                 // NaN where a number is expected
  double error = 0, tolerance = 0;  // of the first bad element
  std::optional<double> share;      // the largest error / tolerance, and what it was made of
  double share_error = 0, share_tolerance = 0;
};

// Counts a bad element (a is wanted, b is there) and keeps the first one.
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
    NoteBad(i, a, b, error, atol + rtol * std::abs(a), &result);
  }
  return result;
}

// Bytes of a float64 result and of the slack, both kept as float32.
struct ExactBytes {
  const char* exact;
  const char* slack;
  double absolute, relative;
};

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
    // Overflow and invalid operations come earlier in float32 than in float64.
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
    const Difference& nearest = next.share > all.share ? next : all;  // nothing is below any share
    const auto share = nearest.share;
    const double share_error = nearest.share_error, share_tolerance = nearest.share_tolerance;
    if (all.bad == 0 && next.bad > 0) all = std::move(next);  // with the first bad element
    all.largest = largest;
    all.nan = nan;
    all.bad = bad;
    all.share = share;
    all.share_error = share_error;
    all.share_tolerance = share_tolerance;
  }
  return all;
}

Difference CompareTyped(const Leaf& leaf, const char* want, const char* got, double atol,
                        double rtol) {
  const int64_t bytes = SizeOf(leaf.type);
  return CompareInParts(leaf.elements, bytes, [&](int64_t first, int64_t count) {
    return WithElementReader(leaf.type, [&](auto reader) {
      return CompareElements<decltype(reader)>(leaf.type, want + first * bytes, got + first * bytes,
                                               count, atol, rtol);
    });
  });
}

// Nothing for types that have no float64 result.
std::optional<Difference> CompareWithExact(const Leaf& leaf, const char* want,
                                           const ExactBytes& bytes, const char* got) {
  const auto compare = [&](auto reader) {
    using Type = decltype(reader);
    return CompareInParts(leaf.elements, Type::kBytes, [&](int64_t first, int64_t count) {
      ExactBytes part = bytes;
      part.exact += first * sizeof(float);
      part.slack += first * sizeof(float);
      return CompareExactly<Type>(want + first * Type::kBytes, part, got + first * Type::kBytes,
                                  count);
    });
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
void JudgeValues(int index, int64_t elements, const Difference& d, bool exact, Comparison* result) {
  NoteError(d.largest, result);
  if (d.share.has_value() &&
      (!result->worst_share.has_value() || *d.share > *result->worst_share)) {
    result->worst_share = d.share;
    result->worst_error = d.share_error;
    result->worst_tolerance = d.share_tolerance;
  }
  if (d.bad == 0) return;
  std::string message = absl::StrFormat(
      "output %d: %d of %d elements differ, largest error %.3g; element %d is %s, expected %s",
      index, d.bad, elements, d.largest, d.first, d.got_short, d.want_short);
  if (exact) absl::StrAppendFormat(&message, " in float64 within %.2g", d.tolerance);
  Differ(d.nan ? "nan" : "value", message, d.want, d.got, result);
  if (std::isfinite(d.error)) result->mismatch.set_error(d.error);
  result->mismatch.set_tolerance(d.tolerance);
  if (std::isfinite(d.largest)) result->mismatch.set_max_error(d.largest);
  result->mismatch.set_bad_elements(d.bad);
  result->mismatch.set_elements(elements);
}

// The float64 result of a leaf, null without one. Both its tensors are whole.
const ExactLeaf* ExactOf(const Tolerance& tolerance, int index, const Leaf& want) {
  if (tolerance.exact == nullptr || index >= static_cast<int>(tolerance.exact->size()) ||
      !(*tolerance.exact)[index].has_value()) {
    return nullptr;
  }
  const ExactLeaf& exact = *(*tolerance.exact)[index];
  for (const Leaf* leaf : {&exact.exact, &exact.slack}) {
    if (leaf->type != DType::kFloat32 || leaf->elements != want.elements ||
        !leaf->offset.has_value()) {
      return nullptr;
    }
  }
  return &exact;
}

void CompareTensorLeaf(int index, const Leaf& want, absl::string_view want_memory, const Leaf& got,
                       absl::string_view got_memory, const Tolerance& tolerance,
                       Comparison* result) {
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
    const char* a = want_memory.data() + *want.offset;
    const char* b = got_memory.data() + *got.offset;
    const ExactLeaf* exact = ExactOf(tolerance, index, want);
    std::optional<Difference> found;
    if (exact != nullptr) {
      found = CompareWithExact(want, a,
                               {.exact = want_memory.data() + *exact->exact.offset,
                                .slack = want_memory.data() + *exact->slack.offset,
                                .absolute = exact->absolute,
                                .relative = exact->relative},
                               b);
    }
    const bool exactly = found.has_value();
    if (!exactly) found = CompareTyped(want, a, b, tolerance.atol, tolerance.rtol);
    JudgeValues(index, want.elements, *found, exactly, result);
  }
}

}  // namespace

Comparison CompareOutputs(const Tensors& want, const Tensors& got, const Tolerance& tolerance) {
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
      CompareTensorLeaf(index, a, want.memory, b, got.memory, tolerance, &result);
    } else if (a.kind == Leaf::Kind::kNumber) {
      const char* want_value = reinterpret_cast<const char*>(&a.number);
      const char* got_value = reinterpret_cast<const char*>(&b.number);
      JudgeValues(index, 1,
                  CompareElements<PlainElement<double>>(DType::kFloat64, want_value, got_value, 1,
                                                        tolerance.atol, tolerance.rtol),
                  /*exact=*/false, &result);
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
