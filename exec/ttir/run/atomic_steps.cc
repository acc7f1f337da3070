// Atomic operations on the real memory: they order programs of different threads as on the GPU.
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/kernels/number_formats.h"
#include "exec/ttir/run/launch_state.h"
#include "exec/ttir/run/memory_steps.h"
#include "exec/ttir/run/observer.h"

namespace tritonrl::ttir {

namespace {

uint64_t LoadBits(const std::byte* from, int bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(bytes));  // little-endian
  return bits;
}

int64_t SignExtend(uint64_t bits, int bytes) {
  const int shift = 64 - 8 * bytes;
  return static_cast<int64_t>(bits << shift) >> shift;
}

// The sum of two floats, given and returned as bits in memory.
uint64_t AddFloats(uint64_t a, uint64_t b, ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kF64:
      return std::bit_cast<uint64_t>(std::bit_cast<double>(a) + std::bit_cast<double>(b));
    case ScalarKind::kF32: {
      const float sum = std::bit_cast<float>(static_cast<uint32_t>(a)) +
                        std::bit_cast<float>(static_cast<uint32_t>(b));
      return std::bit_cast<uint32_t>(sum);
    }
    case ScalarKind::kBF16: {
      const float sum = std::bit_cast<float>(static_cast<uint32_t>(a) << 16) +
                        std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
      return std::bit_cast<uint32_t>(RoundToBfloat(sum)) >> 16;
    }
    default: {
      const SmallFormat format = SmallFormatOf(kind);
      const float sum = DecodeSmallFloat(static_cast<uint32_t>(a), format) +
                        DecodeSmallFloat(static_cast<uint32_t>(b), format);
      return EncodeSmallFloat(sum, format, /*toward_zero=*/false);
    }
  }
}

uint64_t Combine(const AtomicData& data, uint64_t old, uint64_t value) {
  const int64_t a = SignExtend(old, data.bytes);
  const int64_t b = SignExtend(value, data.bytes);
  switch (data.kind) {
    case AtomicKind::kAnd:
      return old & value;
    case AtomicKind::kOr:
      return old | value;
    case AtomicKind::kXor:
      return old ^ value;
    case AtomicKind::kAdd:
      return old + value;
    case AtomicKind::kFadd:
      return AddFloats(old, value, data.element);
    case AtomicKind::kMax:
      return a > b ? old : value;
    case AtomicKind::kMin:
      return a < b ? old : value;
    case AtomicKind::kUmax:
      return old > value ? old : value;
    case AtomicKind::kUmin:
      return old < value ? old : value;
    case AtomicKind::kExchange:
      return value;
  }
  return old;
}

template <typename T>
uint64_t Modify(const AtomicData& data, std::byte* at, uint64_t value) {
  std::atomic_ref<T> memory(*reinterpret_cast<T*>(at));
  if (data.kind == AtomicKind::kAdd) return memory.fetch_add(static_cast<T>(value));
  T old = memory.load();
  while (!memory.compare_exchange_weak(old, static_cast<T>(Combine(data, old, value)))) {
  }
  return old;
}

template <typename T>
uint64_t Swap(std::byte* at, uint64_t expected, uint64_t desired) {
  std::atomic_ref<T> memory(*reinterpret_cast<T*>(at));
  T old = static_cast<T>(expected);
  memory.compare_exchange_strong(old, static_cast<T>(desired));
  return old;
}

uint64_t ModifyOf(const AtomicData& data, std::byte* at, uint64_t value) {
  switch (data.bytes) {
    case 1:
      return Modify<uint8_t>(data, at, value);
    case 2:
      return Modify<uint16_t>(data, at, value);
    case 4:
      return Modify<uint32_t>(data, at, value);
    default:
      return Modify<uint64_t>(data, at, value);
  }
}

uint64_t SwapOf(const AtomicData& data, std::byte* at, uint64_t expected, uint64_t desired) {
  switch (data.bytes) {
    case 1:
      return Swap<uint8_t>(at, expected, desired);
    case 2:
      return Swap<uint16_t>(at, expected, desired);
    case 4:
      return Swap<uint32_t>(at, expected, desired);
    default:
      return Swap<uint64_t>(at, expected, desired);
  }
}

// Elements of a buffer as bits in memory.
class Bits {
 public:
  explicit Bits(const AtomicData& data)
      : data_(data),
        is_small_(!data.is_pointer && IsFloat(data.element) && data.bytes < 4),
        lane_bytes_(is_small_ ? 4 : data.bytes) {}

  uint64_t Get(const std::byte* buffer, int64_t i) const {
    const uint64_t bits = LoadBits(buffer + i * lane_bytes_, lane_bytes_);
    if (data_.is_pointer) return bits & static_cast<uint64_t>(kAddressMask);
    if (!is_small_) return bits;
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (data_.element == ScalarKind::kBF16) return bits >> 16;
    return EncodeSmallFloat(value, SmallFormatOf(data_.element), /*toward_zero=*/false);
  }

  int lane_bytes() const { return lane_bytes_; }

  void Set(std::byte* buffer, int64_t i, uint64_t bits) const {
    if (is_small_ && data_.element == ScalarKind::kBF16) {
      bits <<= 16;
    } else if (is_small_) {
      bits = std::bit_cast<uint32_t>(
          DecodeSmallFloat(static_cast<uint32_t>(bits), SmallFormatOf(data_.element)));
    }
    std::memcpy(buffer + i * lane_bytes_, &bits, static_cast<size_t>(lane_bytes_));
  }

 private:
  const AtomicData& data_;
  bool is_small_;
  int lane_bytes_;
};

// For launches that check. `writes`: of each element, or null: all do.
void CheckModified(const Step& step, Program& program, const uint8_t* mask, const uint8_t* writes) {
  const auto& data = static_cast<const AtomicData&>(*step.data);
  const bool swaps = step.run == RunCompareAndSwap;
  const Bits bits(data);
  CheckedAccess access;
  access.pointers = program.At<int64_t>(step.in[0]);
  access.mask = mask;
  access.count = step.count;
  access.bytes = data.bytes;
  access.shape = data.shape;
  access.pointer_marks = {program, step.in[0], 8};
  access.value_marks = {program, step.in[1], bits.lane_bytes()};
  access.mask_marks = {program, swaps ? kNoBuffer : step.in[2], 1};
  program.check->CheckAtomic(step, access, writes, data.semantic, data.scope);
  if (swaps) {
    access.value_marks = {program, step.in[2], bits.lane_bytes()};
    program.check->ReportMarks(step, access, "an atomic operation depends on it");
  }
  // An exchange does not look at what was there.
  const Mark mark = program.check->MarkUnwritten(step, access, program, "changes");
  const bool exchanges = !swaps && data.kind == AtomicKind::kExchange;
  if (mark != 0 && !exchanges) {
    program.check->ReportMark(step, mark, "an atomic operation depends on it");
  }
  const MarkedElements out(program, step.out[0], bits.lane_bytes());
  for (int64_t i = 0; program.marks != nullptr && i < step.count; ++i) {
    const bool unwritten = mark != 0 && access.IsActive(i) && !program.check->IsWritten(access, i);
    out.Set(i, exchanges && unwritten ? mark : 0);
  }
}

void Observe(const Step& step, Program& program, const uint8_t* mask, int bytes) {
  Observer* const storing = program.storing;
  if (storing == nullptr) return;
  storing->Begin(AccessKind::kAtomic);
  storing->AddElements(program.At<int64_t>(step.in[0]), mask, step.count, bytes);
  storing->End(/*repeat=*/1);
}

}  // namespace

bool RunAtomic(const Step& step, Program& program) {
  const auto& data = static_cast<const AtomicData&>(*step.data);
  const int64_t* const pointers = program.At<int64_t>(step.in[0]);
  const std::byte* const values = program.At<std::byte>(step.in[1]);
  const uint8_t* const mask = step.in[2] >= 0 ? program.At<uint8_t>(step.in[2]) : nullptr;
  std::byte* const out = program.At<std::byte>(step.out[0]);
  if (!CheckAccess(step, program, "atomic", pointers, mask, step.count, data.bytes,
                   BestKernels())) {
    return false;
  }
  if (program.check != nullptr) {
    CheckModified(step, program, mask, /*writes=*/nullptr);
  }
  const Bits bits(data);
  for (int64_t i = 0; i < step.count; ++i) {
    uint64_t old = 0;
    if (mask == nullptr || mask[i] != 0) {
      std::byte* const at = reinterpret_cast<std::byte*>(pointers[i] & kAddressMask);
      old = ModifyOf(data, at, bits.Get(values, i));
    }
    bits.Set(out, i, old);
  }
  Observe(step, program, mask, data.bytes);
  return true;
}

bool RunCompareAndSwap(const Step& step, Program& program) {
  const auto& data = static_cast<const AtomicData&>(*step.data);
  const int64_t* const pointers = program.At<int64_t>(step.in[0]);
  const std::byte* const expected = program.At<std::byte>(step.in[1]);
  const std::byte* const desired = program.At<std::byte>(step.in[2]);
  std::byte* const out = program.At<std::byte>(step.out[0]);
  if (!CheckAccess(step, program, "atomic", pointers, nullptr, step.count, data.bytes,
                   BestKernels())) {
    return false;
  }
  const Bits bits(data);
  if (program.check != nullptr) {
    // Whether each will find what it expects; a launch that checks has one thread.
    std::vector<uint8_t> writes;
    for (int64_t i = 0; i < step.count; ++i) {
      const auto* const at = reinterpret_cast<const std::byte*>(pointers[i] & kAddressMask);
      writes.push_back(LoadBits(at, data.bytes) == bits.Get(expected, i) ? 1 : 0);
    }
    CheckModified(step, program, /*mask=*/nullptr, writes.data());
  }
  for (int64_t i = 0; i < step.count; ++i) {
    std::byte* const at = reinterpret_cast<std::byte*>(pointers[i] & kAddressMask);
    bits.Set(out, i, SwapOf(data, at, bits.Get(expected, i), bits.Get(desired, i)));
  }
  Observe(step, program, nullptr, data.bytes);
  return true;
}

}  // namespace tritonrl::ttir
