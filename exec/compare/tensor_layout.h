// What a job says lies where in a piece of shared memory: nested Python values with tensors.
#ifndef TRITONRL_EXEC_COMPARE_TENSOR_LAYOUT_H_
#define TRITONRL_EXEC_COMPARE_TENSOR_LAYOUT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// Element types that can be compared; names as torch's without "torch.".
enum class DType {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat8E4M3Fn,
  kFloat8E5M2,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};

// Nothing for a type that cannot be compared.
std::optional<DType> ParseDType(absl::string_view name);
int64_t SizeOf(DType type);  // bytes of one element

// One leaf of a nested value.
struct Leaf {
  enum class Kind { kTensor, kNumber, kOther };
  Kind kind = Kind::kOther;

  // kTensor. Elements lie densely in row-major order from `offset` on, whatever strides it had.
  std::string dtype;
  DType type = DType::kFloat32;
  std::vector<int64_t> shape;
  int64_t elements = 0;
  int64_t distinct_elements = 0;   // fewer where a stride is 0 (an expanded tensor)
  std::string device = "cpu";      // where it was, when it was handed over
  std::string layout = "strided";  // else there are no bytes
  std::optional<uint64_t> offset;  // bytes from the start of the memory; nothing: not handed over

  // Where it was in the memory of the process that handed it over, if that said so.
  std::optional<uint64_t> address;
  bool dense = true;  // it was row-major without gaps

  double number = 0;  // kNumber: int, float or bool

  bool bare = false;  // it is the whole value, in no list, tuple or dict

  std::string type_name;  // Python's: "tensor", "number", "str", "NoneType", ...
  std::string text;       // kOther: the value as JSON

  int64_t bytes() const { return elements * SizeOf(type); }
};

// The leaves of a layout (format in exec/python/README.md) in the order of a walk. Nothing in it is
// trusted: every number is checked, and a tensor that is handed over lies inside the first
// `memory_bytes` bytes. InvalidArgument says what makes no sense.
absl::StatusOr<std::vector<Leaf>> ParseLayout(const nlohmann::json& layout, uint64_t memory_bytes);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_TENSOR_LAYOUT_H_
