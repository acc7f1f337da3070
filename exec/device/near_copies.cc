#include "exec/device/near_copies.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "exec/device/geometry.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kElementsAtOnce = 1 << 16;

// Elements [begin, end) from the tensor's first on; those before it have negative numbers.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};

// Elements of a storage that lie in it as a whole.
Range ElementsOf(const ArgumentBytes& argument) {
  const int64_t size = BytesOf(argument.dtype);
  return {-(argument.place / size), (argument.bytes - argument.place) / size};
}

const uint8_t* At(const ArgumentBytes& argument, const uint8_t* data, int64_t element) {
  return data + argument.place + element * BytesOf(argument.dtype);
}

bool Changed(const ArgumentBytes& before, const uint8_t* after, int64_t element) {
  return memcmp(At(before, before.data, element), At(before, after, element),
                static_cast<size_t>(BytesOf(before.dtype))) != 0;
}

Range ChangedElements(const ArgumentBytes& before, const uint8_t* after) {
  Range range = ElementsOf(before);
  while (range.begin < range.end && !Changed(before, after, range.begin)) ++range.begin;
  while (range.end > range.begin && !Changed(before, after, range.end - 1)) --range.end;
  return range;
}

at::Tensor Elements(const uint8_t* first, int64_t count, at::ScalarType type) {
  return at::from_blob(const_cast<uint8_t*>(first), {count}, at::TensorOptions().dtype(type));
}

bool IsCopy(double stored, double held, const CopyTolerance& tolerance) {
  if (stored == held || (std::isnan(stored) && std::isnan(held))) return true;
  return std::abs(stored - held) <= tolerance.absolute + tolerance.relative * std::abs(held);
}

// Whether what changed among `count` elements, from `to` on, is what was in `from`.
bool AreCopies(const ArgumentBytes& before, const uint8_t* after, int64_t to,
               const ArgumentBytes& source, int64_t from, int64_t count,
               const CopyTolerance& tolerance, std::vector<uint8_t>* is_copied) {
  for (int64_t first = 0; first < count; first += kElementsAtOnce) {
    const int64_t part = std::min(kElementsAtOnce, count - first);
    const at::Tensor stored =
        Elements(At(before, after, to + first), part, before.dtype).to(at::kDouble);
    const at::Tensor held =
        Elements(At(source, source.data, from + first), part, source.dtype).to(at::kDouble);
    for (int64_t i = 0; i < part; ++i) {
      if (!Changed(before, after, to + first + i)) continue;
      if (!IsCopy(stored.const_data_ptr<double>()[i], held.const_data_ptr<double>()[i],
                  tolerance)) {
        return false;
      }
      (*is_copied)[static_cast<size_t>(first + i)] = 1;
    }
  }
  return true;
}

bool IsReal(at::ScalarType type) { return !at::isComplexType(type); }

}  // namespace

std::optional<CopiedElements> FindCopy(const ArgumentBytes& before, const uint8_t* after,
                                       const ArgumentBytes& from, const CopyTolerance& tolerance) {
  if (!IsReal(before.dtype) || !IsReal(from.dtype)) return std::nullopt;
  if (before.dtype != from.dtype && !tolerance.converts) return std::nullopt;
  const Range changed = ChangedElements(before, after);
  const Range held = ElementsOf(from);
  if (changed.count() == 0 || held.count() == 0) return std::nullopt;
  const bool floats = at::isFloatingType(before.dtype) && at::isFloatingType(from.dtype);
  const CopyTolerance allowed = floats ? tolerance : CopyTolerance();
  // What to add to an element's number for that of the source.
  const std::array<int64_t, 3> shifts = {0, -changed.begin, held.end - changed.end};
  for (size_t k = 0; k < shifts.size(); ++k) {
    const int64_t shift = shifts[k];
    if (std::find(shifts.begin(), shifts.begin() + k, shift) != shifts.begin() + k) continue;
    const Range both = {std::max(changed.begin, held.begin - shift),
                        std::min(changed.end, held.end - shift)};
    if (both.count() <= 0 || both.count() * 2 < changed.count()) continue;
    CopiedElements copied;
    copied.is_copied.resize(static_cast<size_t>(both.count()));
    if (!AreCopies(before, after, both.begin, from, both.begin + shift, both.count(), allowed,
                   &copied.is_copied)) {
      continue;
    }
    copied.to = before.place + both.begin * BytesOf(before.dtype);
    copied.from = from.place + (both.begin + shift) * BytesOf(from.dtype);
    copied.converted = Elements(At(from, from.data, both.begin + shift), both.count(), from.dtype)
                           .to(before.dtype, /*non_blocking=*/false, /*copy=*/true);
    return copied;
  }
  return std::nullopt;
}

}  // namespace tritonrl::device
