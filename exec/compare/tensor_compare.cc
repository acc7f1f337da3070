#include "exec/compare/tensor_compare.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace tritonrl {

namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

// Sets a mismatch whose two sides are texts.
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

// Adds the difference `d` of the values of output `index` to `result`.
void CompareLeafValues(int index, int64_t elements, const Difference& d, Comparison* result) {
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
  if (d.exactly) absl::StrAppendFormat(&message, " in float64 within %.2g", d.tolerance);
  Differ(d.nan ? "nan" : "value", message, d.want, d.got, result);
  if (std::isfinite(d.error)) result->mismatch.set_error(d.error);
  result->mismatch.set_tolerance(d.tolerance);
  if (std::isfinite(d.largest)) result->mismatch.set_max_error(d.largest);
  result->mismatch.set_bad_elements(d.bad);
  result->mismatch.set_elements(elements);
}

absl::Status CompareTensorLeaf(int index, const Leaf& want, const Leaf& got,
                               const CompareElementsOf& compare, Comparison* result) {
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
    ASSIGN_OR_RETURN(const Difference found, compare(index, want, got));
    CompareLeafValues(index, want.elements, found, result);
  }
  return absl::OkStatus();
}

// Compares the elements of a leaf whose tensors are in this process's memory.
Difference CompareHere(int index, const Leaf& want, absl::string_view want_memory, const Leaf& got,
                       absl::string_view got_memory, const Tolerance& tolerance) {
  const char* a = want_memory.data() + *want.offset;
  const char* b = got_memory.data() + *got.offset;
  if (const ExactLeaf* exact = ExactOf(tolerance, index, want); exact != nullptr) {
    std::optional<Difference> found =
        CompareWithExact(want, a,
                         {.exact = want_memory.data() + *exact->exact.offset,
                          .slack = want_memory.data() + *exact->slack.offset,
                          .absolute = exact->absolute,
                          .relative = exact->relative},
                         b);
    if (found.has_value()) return *std::move(found);
  }
  return CompareElements(want, a, b, tolerance.atol, tolerance.rtol);
}

}  // namespace

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

absl::StatusOr<Comparison> CompareOutputs(const std::vector<Leaf>& want,
                                          const std::vector<Leaf>& got, const Tolerance& tolerance,
                                          const CompareElementsOf& compare) {
  Comparison result;
  const size_t count = want.size();
  if (count != got.size()) {
    Differ("count", absl::StrCat(got.size(), " outputs, expected ", count), absl::StrCat(count),
           absl::StrCat(got.size()), &result);
    return result;
  }
  if (count == 1 && want[0].bare != got[0].bare) {
    const char* const names[] = {"a value in a list, tuple or dict", "a value of its own"};
    const char* const a = names[want[0].bare ? 1 : 0];
    const char* const b = names[got[0].bare ? 1 : 0];
    Differ("type", absl::StrCat("the result is ", b, ", expected ", a), a, b, &result);
    return result;
  }
  for (size_t i = 0; i < count && result.equal; ++i) {
    const Leaf& a = want[i];
    const Leaf& b = got[i];
    const int index = static_cast<int>(i);
    result.mismatch.set_output(index);
    if (a.type_name != b.type_name || a.kind != b.kind) {
      Differ("type",
             absl::StrCat("output ", i, " is a ", b.type_name, ", expected a ", a.type_name),
             a.type_name, b.type_name, &result);
    } else if (a.kind == Leaf::Kind::kTensor) {
      RETURN_IF_ERROR(CompareTensorLeaf(index, a, b, compare, &result));
    } else if (a.kind == Leaf::Kind::kNumber) {
      CompareLeafValues(
          index, 1, CompareNumbers(a.number, b.number, tolerance.atol, tolerance.rtol), &result);
    } else if (a.text != b.text) {
      Differ("value",
             absl::StrCat("output ", i, " is ", b.text.substr(0, 80), ", expected ",
                          a.text.substr(0, 80)),
             a.text.substr(0, 80), b.text.substr(0, 80), &result);
    }
  }
  return result;
}

Comparison CompareOutputs(const Tensors& want, const Tensors& got, const Tolerance& tolerance) {
  return *CompareOutputs(want.leaves, got.leaves, tolerance,
                         [&](int index, const Leaf& a, const Leaf& b) {
                           return CompareHere(index, a, want.memory, b, got.memory, tolerance);
                         });
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

namespace {

// Largest absolute element; infinite if an element is not finite. Compares with zeros.
double Largest(const Leaf& leaf, absl::string_view memory) {
  const std::string zeros(leaf.bytes(), '\0');
  Leaf zero = leaf;
  zero.offset = 0;
  const double all = std::numeric_limits<double>::max();
  const std::vector<Leaf> want = {zero}, got = {leaf};
  const Comparison found = CompareOutputs({want, zeros}, {got, memory}, {.atol = all, .rtol = 0});
  if (!found.equal || !found.max_error.has_value()) return std::numeric_limits<double>::infinity();
  return *found.max_error;
}

}  // namespace

bool SameStructure(const std::vector<Leaf>& whole, const std::vector<Leaf>& kept) {
  const auto alike = [](int, const Leaf&, const Leaf&) { return Difference(); };
  const auto found = CompareOutputs(whole, kept, {.atol = 0, .rtol = kSameOutputShare}, alike);
  return found.ok() && found->equal;
}

void SavedOutput::Keep(const Tensors& output) {
  leaves_ = output.leaves;
  bytes_.clear();
  for (Leaf& leaf : leaves_) {
    if (!leaf.offset.has_value()) continue;
    const absl::string_view bytes = output.memory.substr(*leaf.offset, leaf.bytes());
    leaf.offset = bytes_.size();
    bytes_.append(bytes.data(), bytes.size());
  }
}

bool SavedOutput::IsSame(const Tensors& whole) const {
  if (!SameStructure(whole.leaves, leaves_)) return false;
  if (SameTensors(whole, {leaves_, bytes_})) return true;
  for (size_t i = 0; i < whole.leaves.size(); ++i) {
    const std::vector<Leaf> a = {whole.leaves[i]}, b = {leaves_[i]};
    if (a[0].kind != Leaf::Kind::kTensor || a[0].elements == 0) continue;
    double atol = 0;
    const double largest = Largest(a[0], whole.memory);
    if (std::isfinite(largest)) atol = kSameOutputShare * largest;
    if (!CompareOutputs({a, whole.memory}, {b, bytes_}, {.atol = atol, .rtol = 0}).equal) {
      return false;
    }
  }
  return true;
}

}  // namespace tritonrl
