#include "exec/device/geometry.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "exec/device/limits.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kMost = int64_t{1} << 62;

struct TypeName {
  absl::string_view name;
  at::ScalarType type;
  int bytes;
};

constexpr TypeName kTypes[] = {
    {"bool", at::kBool, 1},
    {"uint8", at::kByte, 1},
    {"int8", at::kChar, 1},
    {"int16", at::kShort, 2},
    {"uint16", at::kUInt16, 2},
    {"int32", at::kInt, 4},
    {"uint32", at::kUInt32, 4},
    {"int64", at::kLong, 8},
    {"uint64", at::kUInt64, 8},
    {"float16", at::kHalf, 2},
    {"bfloat16", at::kBFloat16, 2},
    {"float32", at::kFloat, 4},
    {"float64", at::kDouble, 8},
    {"complex64", at::kComplexFloat, 8},
    {"complex128", at::kComplexDouble, 16},
    {"float8_e4m3fn", at::kFloat8_e4m3fn, 1},
    {"float8_e5m2", at::kFloat8_e5m2, 1},
    {"float8_e4m3fnuz", at::kFloat8_e4m3fnuz, 1},
    {"float8_e5m2fnuz", at::kFloat8_e5m2fnuz, 1},
};

}  // namespace

std::optional<at::ScalarType> ParseScalarType(absl::string_view name) {
  for (const TypeName& entry : kTypes) {
    if (entry.name == name) return entry.type;
  }
  return std::nullopt;
}

absl::string_view NameOf(at::ScalarType type) {
  for (const TypeName& entry : kTypes) {
    if (entry.type == type) return entry.name;
  }
  return "";
}

int64_t BytesOf(at::ScalarType type) {
  for (const TypeName& entry : kTypes) {
    if (entry.type == type) return entry.bytes;
  }
  return 0;
}

int64_t TensorRef::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

absl::StatusOr<int64_t> SpanOf(const TensorRef& tensor) {
  const auto wrong = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor ", what));
  };
  if (tensor.shape.size() != tensor.stride.size() || tensor.shape.size() > kMaxRank) {
    return wrong("of a wrong rank");
  }
  if (tensor.offset < 0) return wrong("with a negative offset");
  int64_t count = 1;
  int64_t last = tensor.offset;
  bool empty = false;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const int64_t size = tensor.shape[i];
    if (size < 0 || tensor.stride[i] < 0) return wrong("with a negative size or stride");
    empty = empty || size == 0;
    // Sizes beside a zero are bounded too, as LibTorch multiplies them in any order.
    int64_t step = 0;
    if (__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) ||
        __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), tensor.stride[i], &step) ||
        __builtin_add_overflow(last, step, &last) || count > kMost / 16 || last >= kMost / 16) {
      return wrong("that is too large");
    }
  }
  return empty ? 0 : last + 1;
}

bool HasDistinctElements(const TensorRef& tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] > 1) dims.emplace_back(tensor.stride[i], tensor.shape[i]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;  // of the dimensions with smaller strides
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

at::Tensor ViewOf(char* storage, const TensorRef& tensor, at::ScalarType as, at::Device device) {
  return at::for_blob(storage + tensor.offset * BytesOf(tensor.dtype), tensor.shape)
      .strides(tensor.stride)
      .options(at::TensorOptions().dtype(as).device(device))
      .target_device(device)
      .make_tensor();
}

}  // namespace tritonrl::device
