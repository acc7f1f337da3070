#include "exec/ttir/run/copy_steps.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace tritonrl::ttir {

namespace {

template <int kBytes>
bool Fill(const Step& step, Program& program) {
  static const CopyRows copy = BestKernels().copy_rows(kBytes);
  copy(program.At<std::byte>(step.out[0]), program.At<std::byte>(step.in[0]),
       {1, 0, step.CountFor(program), 0});
  return true;
}

bool Copy(const Step& step, Program& program) {
  const auto bytes = static_cast<size_t>(step.CountFor(program) * step.number);
  std::memmove(program.At<std::byte>(step.out[0]), program.At<std::byte>(step.in[0]), bytes);
  return true;
}

// The innermost dimension.
template <typename T>
void CopyRow(T* out, const T* in, int64_t count, int64_t stride) {
  if (stride == 1) {
    std::memcpy(out, in, static_cast<size_t>(count) * sizeof(T));
  } else if (stride == 0) {
    std::fill_n(out, count, *in);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = in[i * stride];
  }
}

// The dimensions from `dim` on; the last two are the kernel's.
std::byte* CopyDims(const StridedCopy& copy, size_t dim, std::byte* out, const std::byte* in) {
  const size_t rest = copy.dims.size() - dim;
  const int64_t count = copy.dims[dim];
  const int64_t stride = copy.strides[dim];
  if (rest <= 2) {
    const RowsShape shape =
        rest == 2 ? RowsShape{count, stride, copy.dims[dim + 1], copy.strides[dim + 1]}
                  : RowsShape{1, 0, count, stride};
    copy.rows(out, in, shape);
    return out + shape.rows * shape.count * copy.bytes;
  }
  for (int64_t i = 0; i < count; ++i) {
    out = CopyDims(copy, dim + 1, out, in + i * stride * copy.bytes);
  }
  return out;
}

template <typename T>
void Interleave(T* out, const Step& step, const Program& program) {
  const auto turns = static_cast<int64_t>(step.in.size());
  for (int64_t t = 0; t < turns; ++t) {
    const T* const in = program.At<T>(step.in[static_cast<size_t>(t)]);
    for (int64_t i = 0; i < step.count; ++i) out[i * turns + t] = in[i];
  }
}

template <typename T>
void Move(Strided out, Strided in, int64_t count) {
  T* const to = reinterpret_cast<T*>(out.at);
  const T* const from = reinterpret_cast<const T*>(in.at);
  if (out.stride == 1) return CopyRow(to, from, count, in.stride);
  for (int64_t i = 0; i < count; ++i) to[i * out.stride] = from[i * in.stride];
}

}  // namespace

Step::Run FillStep(int bytes) {
  switch (bytes) {
    case 1:
      return Fill<1>;
    case 2:
      return Fill<2>;
    case 4:
      return Fill<4>;
    default:
      return Fill<8>;
  }
}

Step::Run CopyStep() { return Copy; }

void StridedCopy::Run(void* out, const void* in) const {
  CopyDims(*this, 0, static_cast<std::byte*>(out),
           static_cast<const std::byte*>(in) + offset * bytes);
}

std::shared_ptr<const StridedCopy> MakeStridedCopy(int bytes, int64_t offset,
                                                   const std::vector<int64_t>& dims,
                                                   const std::vector<int64_t>& strides) {
  auto copy = std::make_shared<StridedCopy>();
  copy->bytes = bytes;
  copy->rows = BestKernels().copy_rows(bytes);
  copy->offset = offset;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!copy->dims.empty() && copy->strides.back() == strides[i] * dims[i]) {
      copy->dims.back() *= dims[i];
      copy->strides.back() = strides[i];
      continue;
    }
    copy->dims.push_back(dims[i]);
    copy->strides.push_back(strides[i]);
  }
  if (copy->dims.empty()) {
    copy->dims = {1};
    copy->strides = {1};
  }
  return copy;
}

bool RunStridedCopy(const Step& step, Program& program) {
  static_cast<const StridedCopy&>(*step.data)
      .Run(program.At<std::byte>(step.out[0]), program.At<std::byte>(step.in[0]));
  return true;
}

void MoveElements(int bytes, Strided out, Strided in, int64_t count) {
  switch (bytes) {
    case 1:
      return Move<uint8_t>(out, in, count);
    case 2:
      return Move<uint16_t>(out, in, count);
    case 4:
      return Move<uint32_t>(out, in, count);
    default:
      return Move<uint64_t>(out, in, count);
  }
}

void StripArgument(void* out, const void* a, int64_t count) {
  int64_t* const r = static_cast<int64_t*>(out);
  const int64_t* const x = static_cast<const int64_t*>(a);
  for (int64_t i = 0; i < count; ++i) r[i] = x[i] & kAddressMask;
}

bool RunInterleave(const Step& step, Program& program) {
  switch (step.number) {
    case 1:
      Interleave(program.At<uint8_t>(step.out[0]), step, program);
      break;
    case 2:
      Interleave(program.At<uint16_t>(step.out[0]), step, program);
      break;
    case 4:
      Interleave(program.At<uint32_t>(step.out[0]), step, program);
      break;
    default:
      Interleave(program.At<uint64_t>(step.out[0]), step, program);
  }
  return true;
}

bool RunConcatenate(const Step& step, Program& program) {
  const auto bytes = static_cast<size_t>(step.count * step.number);
  std::byte* out = program.At<std::byte>(step.out[0]);
  for (const int32_t in : step.in) {
    std::memcpy(out, program.At<std::byte>(in), bytes);
    out += bytes;
  }
  return true;
}

}  // namespace tritonrl::ttir
