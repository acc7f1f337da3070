// tt.gather and tt.histogram.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/marks.h"

namespace tritonrl::ttir {

namespace {

// Triton's code for NVIDIA counts in at least as many bins as a warp has threads, and looks at no
// more bits of a value than these bins have. So a value without a bin wraps around.
constexpr int64_t kLeastBins = 32;

struct Outside {
  int64_t elements = 0;
  int64_t first = -1;
  int64_t value = 0;  // of the first
};

// `counts` has max(bins, kLeastBins) elements. Returns what has no bin.
template <typename T>
Outside Count(const T* values, const uint8_t* mask, int64_t count, int64_t bins, int64_t* counts) {
  const auto bits = static_cast<uint64_t>(std::max(bins, kLeastBins) - 1);
  Outside outside;
  for (int64_t i = 0; i < count; ++i) {
    if (mask != nullptr && mask[i] == 0) continue;
    const int64_t value = values[i];
    ++counts[static_cast<uint64_t>(value) & bits];
    if (value >= 0 && value < bins) continue;
    if (outside.elements++ == 0) {
      outside.first = i;
      outside.value = value;
    }
  }
  return outside;
}

struct HistogramData : StepData {
  Lane from = Lane::kI32;
  int64_t bins = 0;
  Unary narrow = nullptr;  // int64 to the result; nullptr: it is that
  int result_bytes = 0;
};

// All counts are bad if an element that counts is.
void MarkHistogram(const Step& step, const Program& program) {
  const auto& data = static_cast<const HistogramData&>(*step.data);
  const uint8_t* const mask = step.in[1] >= 0 ? program.At<uint8_t>(step.in[1]) : nullptr;
  const MarkedElements values(program, step.in[0], LaneBytes(data.from));
  const MarkedElements masks(program, step.in[1], 1);
  const MarkedElements out(program, step.out[0], data.result_bytes);
  Marks& marks = program.check->marks();
  Mark all = 0;
  for (int64_t i = 0; i < step.count; ++i) {
    all = marks.Join(all, masks[i]);
    if (mask == nullptr || mask[i] != 0) all = marks.Join(all, values[i]);
  }
  for (int64_t i = 0; i < data.bins; ++i) out.Set(i, all);
}

// in: values, mask or none; out: result, counts.
bool RunHistogram(const Step& step, Program& program) {
  const auto& data = static_cast<const HistogramData&>(*step.data);
  const uint8_t* mask = step.in[1] >= 0 ? program.At<uint8_t>(step.in[1]) : nullptr;
  int64_t* const counts = program.At<int64_t>(step.out[1]);
  if (program.marks != nullptr) MarkHistogram(step, program);
  std::memset(counts, 0, static_cast<size_t>(std::max(data.bins, kLeastBins)) * sizeof(int64_t));
  Outside outside;
  const int32_t in = step.in[0];
  switch (data.from) {
    case Lane::kBool:
      outside = Count(program.At<uint8_t>(in), mask, step.count, data.bins, counts);
      break;
    case Lane::kI8:
      outside = Count(program.At<int8_t>(in), mask, step.count, data.bins, counts);
      break;
    case Lane::kI16:
      outside = Count(program.At<int16_t>(in), mask, step.count, data.bins, counts);
      break;
    case Lane::kI32:
      outside = Count(program.At<int32_t>(in), mask, step.count, data.bins, counts);
      break;
    default:
      outside = Count(program.At<int64_t>(in), mask, step.count, data.bins, counts);
  }
  if (outside.elements > 0 && program.check != nullptr) {
    program.check->ReportHistogram(
        step, outside.first,
        absl::StrCat("[0, ", data.bins, "): ", outside.elements,
                     outside.elements == 1 ? " element" : " elements", ", first element ",
                     outside.first, ", which is ", outside.value));
  }
  std::byte* const out = program.At<std::byte>(step.out[0]);
  if (data.narrow != nullptr) {
    data.narrow(out, counts, data.bins);
  } else {
    std::memcpy(out, counts, static_cast<size_t>(data.bins) * sizeof(int64_t));
  }
  return true;
}

struct GatherData : StepData {
  int bytes = 0;
  Lane index = Lane::kI32;
  int64_t axis_size = 0;    // of the source
  int64_t axis_stride = 0;  // of the source
  // The result's dimensions but the axis, innermost first: element i is number
  // (i >> shift) & mask in the dimension.
  struct Dimension {
    int shift = 0;
    int64_t mask = 0;
    int64_t stride = 0;  // of the source
  };
  std::vector<Dimension> others;
};

template <typename T>
int64_t IndexAt(const Program& program, int32_t offset, int64_t i) {
  return program.At<T>(offset)[i];
}

int64_t IndexOf(const GatherData& data, const Program& program, int32_t offset, int64_t i) {
  switch (data.index) {
    case Lane::kBool:
      return IndexAt<uint8_t>(program, offset, i);
    case Lane::kI8:
      return IndexAt<int8_t>(program, offset, i);
    case Lane::kI16:
      return IndexAt<int16_t>(program, offset, i);
    case Lane::kI32:
      return IndexAt<int32_t>(program, offset, i);
    default:
      return IndexAt<int64_t>(program, offset, i);
  }
}

bool RunGather(const Step& step, Program& program) {
  const auto& data = static_cast<const GatherData&>(*step.data);
  const std::byte* const source = program.At<std::byte>(step.in[0]);
  const MarkedElements source_marks(program, step.in[0], data.bytes);
  const MarkedElements index_marks(program, step.in[1], LaneBytes(data.index));
  const MarkedElements out_marks(program, step.out[0], data.bytes);
  std::byte* const out = program.At<std::byte>(step.out[0]);
  const auto bytes = static_cast<size_t>(data.bytes);
  for (int64_t i = 0; i < step.count; ++i) {
    const int64_t index = IndexOf(data, program, step.in[1], i);
    if (index < 0 || index >= data.axis_size) {
      return Fail(program, absl::OutOfRangeError(
                               absl::StrCat("gather of kernel ", program.launch->kernel->name,
                                            ": index ", index, " of element ", i, " is not in [0, ",
                                            data.axis_size, "), ", PlaceOf(step, program))));
    }
    int64_t from = index * data.axis_stride;
    for (const GatherData::Dimension& dimension : data.others) {
      from += ((i >> dimension.shift) & dimension.mask) * dimension.stride;
    }
    std::memcpy(out + static_cast<size_t>(i) * bytes, source + static_cast<size_t>(from) * bytes,
                bytes);
    if (program.marks == nullptr) continue;
    out_marks.Set(i, program.check->marks().Join(index_marks[i], source_marks[from]));
  }
  return true;
}

}  // namespace

absl::Status Builder::BuildGather(const Operation& operation) {
  const Type& source = TypeOf(operation.operands[0]);
  const Type& indices = TypeOf(operation.operands[1]);
  const int axis = operation.attributes.axis;
  std::vector<int64_t> strides(static_cast<size_t>(source.rank()));
  int64_t stride = 1;
  for (int d = source.rank() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= source.dim(d);
  }
  auto data = std::make_shared<GatherData>();
  data->bytes = LaneBytes(LaneOf(source));
  data->index = LaneOf(indices);
  data->axis_size = source.dim(axis);
  data->axis_stride = strides[static_cast<size_t>(axis)];
  int shift = 0;
  for (int d = indices.rank() - 1; d >= 0; --d) {
    if (d != axis) {
      data->others.push_back({shift, indices.dim(d) - 1, strides[static_cast<size_t>(d)]});
    }
    shift += indices.log2_dim(d);
  }
  const Type& target = TypeOf(operation.results[0]);
  Step step;
  step.run = RunGather;
  step.marking.crosses_threads = true;
  step.count = target.elements();
  step.place = PlaceOf(operation);
  step.in = {SpreadValue(operation.operands[0]).buffer, SpreadValue(operation.operands[1]).buffer};
  step.out = {NewBuffer(target)};
  step.data = std::move(data);
  const int32_t result = step.out[0];
  Emit(std::move(step));
  Bind(operation.results[0], {result, false, false});
  return absl::OkStatus();
}

absl::Status Builder::BuildHistogram(const Operation& operation) {
  const Type& source = TypeOf(operation.operands[0]);
  const Type& target = TypeOf(operation.results[0]);
  auto data = std::make_shared<HistogramData>();
  data->from = LaneOf(source);
  data->bins = target.elements();
  data->result_bytes = LaneBytes(LaneOf(target));
  if (LaneOf(target) != Lane::kI64) {
    data->narrow = kernels_.widen(Lane::kI64, LaneOf(target), true);
    if (data->narrow == nullptr) return NotExecutable(operation);
  }
  Step step;
  step.run = RunHistogram;
  step.place = PlaceOf(operation);
  step.marking.crosses_threads = true;
  step.count = source.elements();
  step.in = {SpreadValue(operation.operands[0]).buffer, kNoBuffer};
  if (operation.operands.size() > 1) step.in[1] = SpreadValue(operation.operands[1]).buffer;
  step.out = {NewBuffer(target), NewBuffer(std::max(data->bins, kLeastBins) * 8, CurrentDepth())};
  step.data = std::move(data);
  const int32_t result = step.out[0];
  Emit(std::move(step));
  Bind(operation.results[0], {result, false, false});
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
