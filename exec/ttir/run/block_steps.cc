#include "exec/ttir/run/block_steps.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/marks.h"

namespace tritonrl::ttir {

namespace {

// Numbers of a text may be any: their sums and products wrap around.
int64_t Add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t Multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// The elements of one axis of a block, and those among them that are inside of the tensor.
struct Axis {
  const int32_t* rows = nullptr;
  int64_t start = 0;
  int64_t shape = 0;
  int64_t stride = 0;  // in bytes
  bool checked = false;

  int64_t At(int64_t i) const { return rows != nullptr ? rows[i] : Add(start, i); }
  bool Holds(int64_t i) const {
    const int64_t at = At(i);
    return !checked || (at >= 0 && at < shape);
  }
};

class Addresses {
 public:
  Addresses(const Step& step, const Program& program)
      : data_(static_cast<const BlockAddressData&>(*step.data)),
        pointers_(program.At<int64_t>(step.out[0])),
        mask_(program.At<uint8_t>(step.out[1])) {
    const int64_t* const record = program.At<int64_t>(step.in[0]);
    const size_t rank = data_.dims.size();
    base_ = record[0];
    for (size_t d = 0; d < rank; ++d) {
      Axis axis;
      axis.start = record[1 + 2 * rank + d];
      if (step.in.size() > 1 && d == 0 && data_.has_rows) {
        axis.rows = program.At<int32_t>(step.in[1]);
      } else if (step.in.size() > 1) {
        axis.start = *program.At<int32_t>(step.in[1 + d]);
      }
      axis.shape = record[1 + d];
      axis.stride = Multiply(record[1 + rank + d], data_.bytes);
      axis.checked = data_.checked[d];
      axes_.push_back(axis);
    }
  }

  void Write() { WriteAxis(0, base_, true); }

 private:
  void WriteAxis(size_t d, int64_t base, bool inside) {
    const Axis& axis = axes_[d];
    const int64_t count = data_.dims[d];
    if (d + 1 < axes_.size()) {
      for (int64_t i = 0; i < count; ++i) {
        WriteAxis(d + 1, Add(base, Multiply(axis.At(i), axis.stride)), inside && axis.Holds(i));
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      pointers_[i] = Add(base, Multiply(axis.At(i), axis.stride));
      mask_[i] = inside && axis.Holds(i) ? 1 : 0;
    }
    pointers_ += count;
    mask_ += count;
  }

  const BlockAddressData& data_;
  int64_t* pointers_;
  uint8_t* mask_;
  int64_t base_ = 0;
  std::vector<Axis> axes_;
};

uint64_t PaddingBits(Lane lane, bool is_nan) {
  if (!is_nan) return 0;
  if (lane == Lane::kF64) return std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
  if (lane != Lane::kF32) return 0;
  return std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN());
}

// What the descriptors of sm_90 demand of a tensor; empty if it is so. Blocks longer than 256 in an
// axis are several of the hardware's.
std::string DescriptorFault(const MakeBlockData& data, const int64_t* record) {
  constexpr int64_t kAlignment = 16;
  constexpr int kMaxRank = 5;
  const auto rank = static_cast<size_t>(data.rank);
  const int64_t* const strides = record + 1 + rank;
  if (data.rank > kMaxRank) {
    return absl::StrCat("a tensor descriptor has ", rank, " axes; the hardware has ", kMaxRank);
  }
  if ((record[0] & kAddressMask) % kAlignment != 0) {
    return absl::StrCat("the address of a tensor descriptor is no multiple of ", kAlignment,
                        " (remainder ", (record[0] & kAddressMask) % kAlignment, ")");
  }
  if (strides[rank - 1] != 1) {
    return absl::StrCat("the last stride of a tensor descriptor is ", strides[rank - 1],
                        " and not 1");
  }
  for (size_t d = 0; d + 1 < rank; ++d) {
    const int64_t bytes = Multiply(strides[d], data.element_bytes);
    if (bytes % kAlignment == 0) continue;
    return absl::StrCat("stride ", d, " of a tensor descriptor is ", bytes,
                        " bytes and no multiple of ", kAlignment);
  }
  if (data.inner_block * data.element_bytes < kAlignment) {
    return absl::StrCat("the last axis of a tensor descriptor's block has ",
                        data.inner_block * data.element_bytes, " bytes; the hardware needs ",
                        kAlignment);
  }
  return "";
}

// A record of a descriptor that the hardware refuses is bad, and all addresses of it.
void MarkBlock(const Step& step, Program& program) {
  const auto& data = static_cast<const MakeBlockData&>(*step.data);
  Mark fault = 0;
  if (data.is_descriptor) {
    std::string text = DescriptorFault(data, program.At<int64_t>(step.out[0]));
    if (!text.empty()) {
      fault = program.check->marks().Of({Finding::Kind::kDescriptor, &step, 0, std::move(text)},
                                        program);
    }
  }
  const MarkedElements record(program, step.out[0], 8);
  record.Clear(3 * data.rank + 2);
  for (size_t i = 0; i < data.is_wide.size(); ++i) {
    const Mark mark = MarkedElements(program, step.in[i], 0)[0];
    record.Set(static_cast<int64_t>(i), program.check->marks().Join(mark, i == 0 ? fault : 0));
  }
}

// All addresses of a block are bad if something in its record or its place is; of rows that are
// gathered, each by its own index.
void MarkAddresses(const Step& step, const Program& program) {
  const auto& data = static_cast<const BlockAddressData&>(*step.data);
  Marks& marks = program.check->marks();
  const MarkedElements record(program, step.in[0], 8);
  Mark all = 0;
  for (int64_t i = 0; i < 3 * static_cast<int64_t>(data.dims.size()) + 2; ++i) {
    all = marks.Join(all, record[i]);
  }
  for (size_t i = data.has_rows ? 2 : 1; i < step.in.size(); ++i) {
    all = marks.Join(all, MarkedElements(program, step.in[i], 0)[0]);
  }
  int64_t count = 1;
  for (const int64_t dim : data.dims) count *= dim;
  const int64_t row = count / data.dims[0];
  const MarkedElements pointers(program, step.out[0], 8);
  for (int64_t i = 0; i < count; ++i) {
    const Mark index = data.has_rows ? MarkedElements(program, step.in[1], 4)[i / row] : 0;
    pointers.Set(i, marks.Join(all, index));
  }
  MarkedElements(program, step.out[1], 1).Clear(count);
  MarkedElements(program, step.out[2], LaneBytes(data.lane)).Clear(1);
}

}  // namespace

bool RunMakeBlock(const Step& step, Program& program) {
  const auto& data = static_cast<const MakeBlockData&>(*step.data);
  int64_t* const record = program.At<int64_t>(step.out[0]);
  std::memset(record, 0, static_cast<size_t>(BlockBytes(data.rank)));
  for (size_t i = 0; i < data.is_wide.size(); ++i) {
    record[i] = data.is_wide[i] ? *program.At<int64_t>(step.in[i])
                                : int64_t{*program.At<int32_t>(step.in[i])};
  }
  const bool pads = data.has_padding && *program.At<uint8_t>(step.in.back()) != 0;
  record[3 * data.rank + 1] = static_cast<int64_t>(pads ? Padding::kNan : data.padding);
  if (program.check != nullptr) MarkBlock(step, program);
  return true;
}

bool RunAdvance(const Step& step, Program& program) {
  const int64_t* const from = program.At<int64_t>(step.in[0]);
  int64_t* const to = program.At<int64_t>(step.out[0]);
  const int64_t rank = step.number;
  if (program.marks != nullptr) {
    const MarkedElements from_marks(program, step.in[0], 8);
    const MarkedElements to_marks(program, step.out[0], 8);
    for (int64_t i = 0; i < 3 * rank + 2; ++i) {
      const int64_t d = i - 1 - 2 * rank;
      const bool moves = d >= 0 && d < rank;
      const Mark by =
          moves ? MarkedElements(program, step.in[static_cast<size_t>(1 + d)], 0)[0] : Mark{0};
      to_marks.Set(i, program.check->marks().Join(from_marks[i], by));
    }
  }
  std::memmove(to, from, static_cast<size_t>(BlockBytes(static_cast<int>(rank))));
  for (int64_t d = 0; d < rank; ++d) {
    const int32_t by = *program.At<int32_t>(step.in[static_cast<size_t>(1 + d)]);
    to[1 + 2 * rank + d] = Add(to[1 + 2 * rank + d], by);
  }
  return true;
}

bool RunBlockAddresses(const Step& step, Program& program) {
  const auto& data = static_cast<const BlockAddressData&>(*step.data);
  Addresses(step, program).Write();
  if (program.marks != nullptr) MarkAddresses(step, program);
  const int64_t* const record = program.At<int64_t>(step.in[0]);
  const auto nan = static_cast<int64_t>(Padding::kNan);
  const bool is_nan = data.padding == Padding::kNan || record[3 * data.dims.size() + 1] == nan;
  const uint64_t bits = PaddingBits(data.lane, is_nan);
  std::memcpy(program.At<std::byte>(step.out[2]), &bits, static_cast<size_t>(LaneBytes(data.lane)));
  return true;
}

}  // namespace tritonrl::ttir
