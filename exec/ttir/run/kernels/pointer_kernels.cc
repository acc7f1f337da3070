// Address arithmetic, and copies between memory and buffers.
#include <cstdint>
#include <cstring>

#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

template <typename T, int kForm>
void AddLoop(int64_t* out, const int64_t* base, const T* offsets, int64_t bytes, int64_t count) {
  const auto base0 = static_cast<uint64_t>(base[0]);
  const uint64_t offset0 =
      static_cast<uint64_t>(int64_t{offsets[0]}) * static_cast<uint64_t>(bytes);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t start = (kForm & kFirstUniform) != 0 ? base0 : static_cast<uint64_t>(base[i]);
    const uint64_t offset =
        (kForm & kSecondUniform) != 0
            ? offset0
            : static_cast<uint64_t>(int64_t{offsets[i]}) * static_cast<uint64_t>(bytes);
    out[i] = static_cast<int64_t>(start + offset);
  }
}

template <typename T>
void AddOf(int form, int64_t* out, const int64_t* base, const void* offsets, int64_t bytes,
           int64_t count) {
  const T* const typed = static_cast<const T*>(offsets);
  if (form == kFirstUniform) return AddLoop<T, kFirstUniform>(out, base, typed, bytes, count);
  if (form == kSecondUniform) return AddLoop<T, kSecondUniform>(out, base, typed, bytes, count);
  AddLoop<T, 0>(out, base, typed, bytes, count);
}

template <typename T>
void GatherLoop(void* out, const int64_t* pointers, const uint8_t* mask, int64_t count) {
  T* const r = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) {
    T value = 0;
    if (mask == nullptr || mask[i] != 0) {
      std::memcpy(&value, reinterpret_cast<const void*>(pointers[i] & kAddressMask), sizeof(T));
    }
    r[i] = value;
  }
}

template <typename T>
void ScatterLoop(const int64_t* pointers, const void* values, const uint8_t* mask, int64_t count) {
  const T* const x = static_cast<const T*>(values);
  for (int64_t i = 0; i < count; ++i) {
    if (mask != nullptr && mask[i] == 0) continue;
    std::memcpy(reinterpret_cast<void*>(pointers[i] & kAddressMask), &x[i], sizeof(T));
  }
}

}  // namespace

void AddPointer(Lane offset, int form, int64_t* out, const int64_t* base, const void* offsets,
                int64_t bytes, int64_t count) {
  switch (offset) {
    case Lane::kBool:
      return AddOf<uint8_t>(form, out, base, offsets, bytes, count);
    case Lane::kI8:
      return AddOf<int8_t>(form, out, base, offsets, bytes, count);
    case Lane::kI16:
      return AddOf<int16_t>(form, out, base, offsets, bytes, count);
    case Lane::kI32:
      return AddOf<int32_t>(form, out, base, offsets, bytes, count);
    default:
      return AddOf<int64_t>(form, out, base, offsets, bytes, count);
  }
}

bool IsSequence(const int64_t* pointers, int64_t stride, int64_t count) {
  // Without signs: a pointer may be any number, and the sums wrap around.
  const auto first = static_cast<uint64_t>(pointers[0]);
  const auto by = static_cast<uint64_t>(stride);
  const auto last = static_cast<uint64_t>(count - 1);
  // Most others differ here already.
  if (static_cast<uint64_t>(pointers[last]) != first + last * by) return false;
  uint64_t difference = 0;
  for (uint64_t i = 0; i <= last; ++i) {
    difference |= static_cast<uint64_t>(pointers[i]) ^ (first + i * by);
  }
  return difference == 0;
}

PointerRange RangeOf(const int64_t* pointers, const uint8_t* mask, int64_t count) {
  int64_t least = INT64_MAX;
  int64_t most = INT64_MIN;
  int64_t low_bits = 0;
  if (mask == nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t p = pointers[i];
      least = p < least ? p : least;
      most = p > most ? p : most;
      low_bits |= p;
    }
    return {least, most, low_bits};
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t p = pointers[i];
    const bool on = mask[i] != 0;
    const int64_t low = on ? p : INT64_MAX;
    const int64_t high = on ? p : INT64_MIN;
    least = low < least ? low : least;
    most = high > most ? high : most;
    low_bits |= on ? p : 0;
  }
  return {least, most, low_bits};
}

void Gather(int bytes, void* out, const int64_t* pointers, const uint8_t* mask, int64_t count) {
  switch (bytes) {
    case 1:
      return GatherLoop<uint8_t>(out, pointers, mask, count);
    case 2:
      return GatherLoop<uint16_t>(out, pointers, mask, count);
    case 4:
      return GatherLoop<uint32_t>(out, pointers, mask, count);
    default:
      return GatherLoop<uint64_t>(out, pointers, mask, count);
  }
}

void Scatter(int bytes, const int64_t* pointers, const void* values, const uint8_t* mask,
             int64_t count) {
  switch (bytes) {
    case 1:
      return ScatterLoop<uint8_t>(pointers, values, mask, count);
    case 2:
      return ScatterLoop<uint16_t>(pointers, values, mask, count);
    case 4:
      return ScatterLoop<uint32_t>(pointers, values, mask, count);
    default:
      return ScatterLoop<uint64_t>(pointers, values, mask, count);
  }
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
