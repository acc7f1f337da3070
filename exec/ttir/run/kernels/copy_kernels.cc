// Copies of rows whose elements have a distance in the source.
#include <cstdint>
#include <cstring>

#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

template <typename T>
void Rows(void* out, const void* in, const RowsShape& shape) {
  T* to = static_cast<T*>(out);
  const T* from = static_cast<const T*>(in);
  for (int64_t r = 0; r < shape.rows; ++r, to += shape.count, from += shape.row_stride) {
    if (shape.stride == 1) {
      std::memcpy(to, from, static_cast<size_t>(shape.count) * sizeof(T));
    } else if (shape.stride == 0) {
      const T value = *from;
      for (int64_t i = 0; i < shape.count; ++i) to[i] = value;
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < shape.count; ++i) to[i] = from[i * shape.stride];
    }
  }
}

}  // namespace

CopyRows FindCopyRows(int bytes) {
  switch (bytes) {
    case 1:
      return Rows<uint8_t>;
    case 2:
      return Rows<uint16_t>;
    case 4:
      return Rows<uint32_t>;
    default:
      return Rows<uint64_t>;
  }
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
