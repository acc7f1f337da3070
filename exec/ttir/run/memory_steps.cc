#include "exec/ttir/run/memory_steps.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/launch_state.h"
#include "exec/ttir/run/observer.h"

namespace tritonrl::ttir {

namespace {

std::byte* AddressOf(int64_t pointer) {
  return reinterpret_cast<std::byte*>(pointer & kAddressMask);
}

// nullptr where all elements are active.
const uint8_t* MaskAt(const Program& program, int32_t offset, int64_t count) {
  if (offset < 0) return nullptr;
  const uint8_t* const mask = program.At<uint8_t>(offset);
  return std::memchr(mask, 0, static_cast<size_t>(count)) != nullptr ? mask : nullptr;
}

// The length of a prefix of active elements that no other active one follows; -1 if there is none.
int64_t ActivePrefix(const uint8_t* mask, int64_t count) {
  if (mask == nullptr) return count;
  const void* const off = std::memchr(mask, 0, static_cast<size_t>(count));
  if (off == nullptr) return count;
  const int64_t length = static_cast<const uint8_t*>(off) - mask;
  const void* const on = std::memchr(off, 1, static_cast<size_t>(count - length));
  return on == nullptr ? length : -1;
}

// The bad elements of an access, for its message.
struct BadElements {
  int64_t active = 0;
  int64_t bad = 0;
  int64_t first = -1;  // the element's number
  const MemoryRegion* region = nullptr;
};

bool FailAccess(const Step& step, Program& program, const char* name, const int64_t* pointers,
                const uint8_t* mask, int64_t count, int bytes) {
  const MemoryMap& memory = program.launch->memory;
  BadElements outside;
  BadElements misaligned;
  for (int64_t i = 0; i < count; ++i) {
    if (mask != nullptr && mask[i] == 0) continue;
    ++outside.active;
    const bool odd = (pointers[i] & (bytes - 1)) != 0;
    BadElements* const kind = !memory.Holds(pointers[i], pointers[i], bytes) ? &outside
                              : odd                                          ? &misaligned
                                                                             : nullptr;
    if (kind == nullptr || kind->bad++ > 0) continue;
    kind->first = i;
    kind->region = memory.Find(pointers[i]);
  }
  const bool is_outside = outside.bad > 0;
  const BadElements& found = is_outside ? outside : misaligned;
  if (program.marks != nullptr) {
    const int64_t element = pointers - program.At<int64_t>(step.in[0]) + found.first;
    const Mark mark = MarkedElements(program, step.in[0], 8)[element];
    program.check->ReportMark(step, mark, "an address depends on it");
  }
  std::string text = absl::StrCat(name, " of kernel ", program.launch->kernel->name, ": ",
                                  found.bad, " of ", outside.active, " elements ");
  if (found.region == nullptr || found.region->name.empty()) {
    absl::StrAppend(&text, "are in no argument, the first is element ", found.first);
  } else {
    const int64_t at = (pointers[found.first] & kAddressMask) - found.region->begin;
    absl::StrAppend(&text, is_outside ? "are out of bounds of " : "are misaligned in ",
                    found.region->name, " (", found.region->bytes, " bytes), first at byte ", at,
                    ", element ", found.first);
  }
  absl::StrAppend(&text, ", ", PlaceOf(step, program));
  return Fail(program, absl::OutOfRangeError(text));
}

// Of pointers to neighbouring elements: whether all are aligned and inside.
bool IsPlain(const Program& program, const int64_t* pointers, int64_t count, int bytes) {
  const int64_t last = pointers[count - 1];
  return (pointers[0] & (bytes - 1)) == 0 && program.launch->memory.Holds(pointers[0], last, bytes);
}

CheckedAccess AccessOf(const Step& step, const int64_t* pointers, const uint8_t* mask) {
  const auto& data = static_cast<const AccessData&>(*step.data);
  CheckedAccess access;
  access.pointers = pointers;
  access.mask = mask;
  access.count = step.count;
  access.bytes = data.bytes;
  access.shape = data.shape;
  access.repeat = data.repeat;
  return access;
}

// For launches that check: also marks what was loaded.
void CheckLoaded(const Step& step, Program& program, const int64_t* pointers, const uint8_t* mask) {
  const auto& data = static_cast<const AccessData&>(*step.data);
  CheckedAccess access = AccessOf(step, pointers, mask);
  access.pointer_marks = {program, step.in[0], 8};
  access.mask_marks = {program, step.in[1], 1};
  program.check->CheckLoad(step, access);
  const Mark mark = program.check->MarkUnwritten(step, access, program, "reads");
  if (program.marks == nullptr) return;
  const MarkedElements out(program, step.out[0], data.lane_bytes);
  const MarkedElements other(program, step.in[2], data.lane_bytes);
  const bool one_other = data.one_other;
  for (int64_t i = 0; i < step.count; ++i) {
    if (!access.IsActive(i)) {
      out.Set(i, other[one_other ? 0 : i]);
    } else {
      out.Set(i, mark != 0 && !program.check->IsWritten(access, i) ? mark : 0);
    }
  }
}

// For launches that check; false if the store is out of bounds.
bool CheckStored(const Step& step, Program& program, const int64_t* pointers,
                 const std::byte* values, const uint8_t* mask) {
  const auto& data = static_cast<const AccessData&>(*step.data);
  if (!CheckAccess(step, program, data.name, pointers, mask, step.count, data.bytes,
                   *data.kernels)) {
    return false;
  }
  std::vector<std::byte> raw(static_cast<size_t>(step.count * data.bytes));
  if (data.convert != nullptr) {
    data.convert(raw.data(), values, step.count);
  } else {
    std::memcpy(raw.data(), values, raw.size());
  }
  CheckedAccess access = AccessOf(step, pointers, mask);
  access.pointer_marks = {program, step.in[0], 8};
  access.value_marks = {program, step.in[1], data.lane_bytes};
  access.mask_marks = {program, step.in[2], 1};
  program.check->CheckStore(step, access, raw.data());
  return true;
}

}  // namespace

bool CheckAccess(const Step& step, Program& program, const char* name, const int64_t* pointers,
                 const uint8_t* mask, int64_t count, int bytes, const KernelSet& kernels) {
  const PointerRange range = kernels.pointer_range(pointers, mask, count);
  if (range.least > range.most) return true;  // no active element
  const MemoryMap& memory = program.launch->memory;
  bool good = (range.low_bits & (bytes - 1)) == 0;
  if (good && !memory.Holds(range.least, range.most, bytes)) {
    // Pointers into several arguments.
    for (int64_t i = 0; good && i < count; ++i) {
      good = (mask != nullptr && mask[i] == 0) || memory.Holds(pointers[i], pointers[i], bytes);
    }
  }
  return good || FailAccess(step, program, name, pointers, mask, count, bytes);
}

bool RunLoad(const Step& step, Program& program) {
  const auto& data = static_cast<const AccessData&>(*step.data);
  const int64_t* const pointers = program.At<int64_t>(step.in[0]);
  const uint8_t* const mask = MaskAt(program, step.in[1], step.count);
  std::byte* const out = program.At<std::byte>(step.out[0]);
  std::byte* const raw = data.convert != nullptr ? program.At<std::byte>(step.out[1]) : out;
  Observer* const counting = program.counting;
  if (counting != nullptr) counting->Begin(AccessKind::kLoad);
  bool all = true;
  for (int64_t i = 0; i < step.count; i += data.row) {
    const uint8_t* const row_mask = mask != nullptr ? mask + i : nullptr;
    const int64_t length = ActivePrefix(row_mask, data.row);
    all = all && length == data.row;
    std::byte* const row_out = out + i * data.lane_bytes;
    if (length > 0 && data.kernels->is_sequence(pointers + i, data.bytes, length) &&
        IsPlain(program, pointers + i, length, data.bytes)) {
      const std::byte* const from = AddressOf(pointers[i]);
      if (data.convert != nullptr) {
        data.convert(row_out, from, length);
      } else {
        std::memcpy(row_out, from, static_cast<size_t>(length * data.bytes));
      }
      if (counting != nullptr) counting->AddRow(pointers[i], length * data.bytes);
    } else if (length != 0) {
      if (!CheckAccess(step, program, data.name, pointers + i, row_mask, data.row, data.bytes,
                       *data.kernels)) {
        // Says it of all rows.
        return FailAccess(step, program, data.name, pointers, mask, step.count, data.bytes);
      }
      data.kernels->gather(data.bytes, raw + i * data.bytes, pointers + i, row_mask, data.row);
      if (data.convert != nullptr) data.convert(row_out, raw + i * data.bytes, data.row);
      if (counting != nullptr) {
        counting->AddElements(pointers + i, row_mask, data.row, data.bytes);
      }
      continue;
    }
    if (length == data.row) continue;
    std::memset(row_out + length * data.lane_bytes, 0,
                static_cast<size_t>((data.row - length) * data.lane_bytes));
  }
  if (counting != nullptr) counting->End(data.repeat);
  if (program.check != nullptr) CheckLoaded(step, program, pointers, mask);
  if (!all && data.select != nullptr) {
    data.select(out, mask, out, program.At<std::byte>(step.in[2]), step.count);
  }
  return true;
}

bool RunStore(const Step& step, Program& program) {
  const auto& data = static_cast<const AccessData&>(*step.data);
  const int64_t* const pointers = program.At<int64_t>(step.in[0]);
  const std::byte* const values = program.At<std::byte>(step.in[1]);
  const uint8_t* const mask = MaskAt(program, step.in[2], step.count);
  if (program.check != nullptr && !CheckStored(step, program, pointers, values, mask)) return false;
  Observer* const storing = program.storing;
  if (storing != nullptr) storing->Begin(AccessKind::kStore);
  for (int64_t i = 0; i < step.count; i += data.row) {
    const uint8_t* const row_mask = mask != nullptr ? mask + i : nullptr;
    const int64_t length = ActivePrefix(row_mask, data.row);
    if (length == 0) continue;
    const std::byte* row_values = values + i * data.lane_bytes;
    if (length > 0 && data.kernels->is_sequence(pointers + i, data.bytes, length) &&
        IsPlain(program, pointers + i, length, data.bytes)) {
      if (data.convert != nullptr) {
        data.convert(AddressOf(pointers[i]), row_values, length);
      } else {
        std::memcpy(AddressOf(pointers[i]), row_values, static_cast<size_t>(length * data.bytes));
      }
      if (storing != nullptr) storing->AddRow(pointers[i], length * data.bytes);
      continue;
    }
    if (!CheckAccess(step, program, data.name, pointers + i, row_mask, data.row, data.bytes,
                     *data.kernels)) {
      return FailAccess(step, program, data.name, pointers, mask, step.count, data.bytes);
    }
    if (data.convert != nullptr) {
      std::byte* const raw = program.At<std::byte>(step.out[0]);
      data.convert(raw, row_values, data.row);
      row_values = raw;
    }
    data.kernels->scatter(data.bytes, pointers + i, row_values, row_mask, data.row);
    if (storing != nullptr) storing->AddElements(pointers + i, row_mask, data.row, data.bytes);
  }
  if (storing != nullptr) storing->End(data.repeat);
  return true;
}

}  // namespace tritonrl::ttir
