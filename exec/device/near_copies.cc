#include "exec/device/near_copies.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>

#include "exec/device/geometry.h"
#include "exec/device/storage_table.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kElementsAtOnce = 1 << 20;  // as comparisons take 30 bytes for each

// Elements [begin, end) from the tensor's first on; those before it have negative numbers.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};

// Elements of a storage that lie in it as a whole.
Range ElementsOf(const ArgumentBytes& argument) {
  const int64_t size = BytesOf(argument.dtype);
  return {-(argument.place / size), (argument.bytes.numel() - argument.place) / size};
}

int64_t ByteOf(const ArgumentBytes& argument, int64_t element) {
  return argument.place + element * BytesOf(argument.dtype);
}

// `count` elements from a byte of a storage on.
at::Tensor ElementsAt(const at::Tensor& bytes, int64_t byte, int64_t count, at::ScalarType type) {
  return bytes.narrow(0, byte, count * BytesOf(type)).view(type);
}

// Calls f(first, how many) until there are none left, or it returns false.
template <typename F>
bool ForSlices(int64_t count, const F& f) {
  for (int64_t first = 0; first < count; first += kElementsAtOnce) {
    if (!f(first, std::min(kElementsAtOnce, count - first))) return false;
  }
  return true;
}

// Of each element whether the launch changed it.
at::Tensor Changed(const ArgumentBytes& before, const at::Tensor& after, int64_t element,
                   int64_t count) {
  const int64_t size = BytesOf(before.dtype);
  const int64_t byte = ByteOf(before, element);
  const at::Tensor old = before.bytes.narrow(0, byte, count * size).to(after.device());
  return after.narrow(0, byte, count * size).ne(old).view({count, size}).any(1);
}

Range ChangedElements(const ArgumentBytes& before, const at::Tensor& after) {
  const Range all = ElementsOf(before);
  Range changed;
  ForSlices(all.count(), [&](int64_t first, int64_t count) {
    const at::Tensor places = Changed(before, after, all.begin + first, count).nonzero();
    if (places.numel() == 0) return true;
    const int64_t begin = all.begin + first;
    if (changed.count() == 0) changed.begin = begin + places[0].item<int64_t>();
    changed.end = begin + places[-1].item<int64_t>() + 1;
    return true;
  });
  return changed;
}

at::Tensor AreNear(const at::Tensor& stored, const at::Tensor& held,
                   const CopyTolerance& tolerance) {
  at::Tensor near = stored.eq(held).logical_or_(stored.isnan().logical_and_(held.isnan()));
  if (tolerance.absolute == 0 && tolerance.relative == 0) return near;
  const at::Tensor allowed = held.abs().mul_(tolerance.relative).add_(tolerance.absolute);
  return near.logical_or_(stored.sub(held).abs_().le(allowed));
}

// Whether what changed among the elements of `is_copied`, from `to` on, is what was in `from`.
bool AreCopies(const ArgumentBytes& before, const at::Tensor& after, int64_t to,
               const ArgumentBytes& source, int64_t from, const CopyTolerance& tolerance,
               const at::Tensor& is_copied) {
  return ForSlices(is_copied.numel(), [&](int64_t first, int64_t count) {
    const at::Tensor stored =
        ElementsAt(after, ByteOf(before, to + first), count, before.dtype).to(at::kDouble);
    const at::Tensor held =
        ElementsAt(source.bytes, ByteOf(source, from + first), count, source.dtype)
            .to(after.device())
            .to(at::kDouble);
    const at::Tensor changed = Changed(before, after, to + first, count);
    const at::Tensor near = AreNear(stored, held, tolerance);
    if (changed.logical_and(near.logical_not()).any().item<bool>()) return false;
    is_copied.narrow(0, first, count).copy_(changed);
    return true;
  });
}

bool IsReal(at::ScalarType type) { return !at::isComplexType(type); }

}  // namespace

std::optional<CopiedElements> FindCopy(const ArgumentBytes& before, const at::Tensor& after,
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
    copied.is_copied = at::empty({both.count()}, after.options().dtype(at::kBool));
    if (!AreCopies(before, after, both.begin, from, both.begin + shift, allowed,
                   copied.is_copied)) {
      continue;
    }
    copied.to = ByteOf(before, both.begin);
    copied.from = ByteOf(from, both.begin + shift);
    return copied;
  }
  return std::nullopt;
}

void TakeCopied(const CopiedElements& copied, const ArgumentBytes& from,
                const at::Tensor& from_tags, at::ScalarType to_type, const at::Tensor& target,
                const at::Tensor& target_tags) {
  const int64_t from_size = BytesOf(from.dtype), to_size = BytesOf(to_type);
  const at::ScalarType bits = TagType(to_size);
  ForSlices(copied.is_copied.numel(), [&](int64_t first, int64_t count) {
    const at::Tensor taken = copied.is_copied.narrow(0, first, count);
    const int64_t to = copied.to + first * to_size, source = copied.from + first * from_size;
    const at::Tensor values = ElementsAt(from.bytes, source, count, from.dtype)
                                  .to(target.device())
                                  .to(to_type)
                                  .view(bits);
    at::Tensor stored = ElementsAt(target, to, count, bits);
    stored.copy_(at::where(taken, values, stored));
    const at::Tensor tags =
        from_tags.narrow(0, source, count * from_size).view({count, from_size}).narrow(1, 0, 1);
    at::Tensor stored_tags = target_tags.narrow(0, to, count * to_size).view({count, to_size});
    stored_tags.copy_(at::where(taken.unsqueeze(1), tags, stored_tags));
    return true;
  });
}

}  // namespace tritonrl::device
