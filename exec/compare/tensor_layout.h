// Layout of nested Python values whose tensors are in shared memory, parsed from a job's untrusted
// description, and access to the elements.
#ifndef TRITONRL_EXEC_COMPARE_TENSOR_LAYOUT_H_
#define TRITONRL_EXEC_COMPARE_TENSOR_LAYOUT_H_

#include <string.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// Element types that can be compared. Their names are torch's without the prefix "torch.".
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

// Returns nullopt for a type that cannot be compared.
std::optional<DType> ParseDType(absl::string_view name);
int64_t SizeOf(DType type);  // bytes of one element

// One leaf of a nested value.
struct Leaf {
  enum class Kind { kTensor, kNumber, kOther };
  Kind kind = Kind::kOther;

  // kTensor. The elements are stored densely in row-major order from `offset` on, whatever the
  // original tensor's strides.
  std::string dtype;
  DType type = DType::kFloat32;
  std::vector<int64_t> shape;
  int64_t elements = 0;
  int64_t distinct_elements = 0;   // fewer than `elements` if a stride is 0 (an expanded tensor)
  std::string device = "cpu";      // device of the original tensor
  std::string layout = "strided";  // any other layout has no bytes
  std::optional<uint64_t> offset;  // bytes from the start of the memory; unset: not handed over

  // Address of the original tensor in the memory of its process, if the process reported it.
  std::optional<uint64_t> address;
  bool dense = true;  // the original tensor was row-major without gaps

  double number = 0;  // kNumber: int, float or bool

  bool bare = false;  // this leaf is the whole value, not inside a list, tuple or dict

  std::string type_name;  // Python's: "tensor", "number", "str", "NoneType", ...
  std::string text;       // kOther: the value as JSON

  int64_t bytes() const { return elements * SizeOf(type); }
};

// Returns the leaves of a layout (format in docs/protocol.md) in depth-first order. The layout is
// untrusted: every number is checked, and every tensor that was handed over is inside the first
// `memory_bytes` bytes. InvalidArgument names the field that is wrong.
absl::StatusOr<std::vector<Leaf>> ParseLayout(const nlohmann::json& layout, uint64_t memory_bytes);

// Copies one element out of memory before it is used, as a running job may change the memory and
// offsets need not be aligned.
template <typename T>
T LoadElement(const char* at) {
  T value;
  memcpy(&value, at, sizeof(T));
  return value;
}

// Decodes a float with `exponent_bits` and `mantissa_bits` in the style of IEEE 754. `finite_only`
// is for types without infinities (fn): all ones are NaN, and the rest of the top binade is finite.
inline double SmallFloat(uint32_t bits, int exponent_bits, int mantissa_bits, bool finite_only) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const uint32_t top = (1u << exponent_bits) - 1;
  const uint32_t exponent = bits >> mantissa_bits & top;
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1.0 : 1.0;
  const int bias = static_cast<int>(top >> 1);
  if (exponent == top) {
    if (!finite_only) {
      return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
    }
    if (mantissa == (1u << mantissa_bits) - 1) return std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1u << mantissa_bits) + mantissa,
                           static_cast<int>(exponent) - bias - mantissa_bits);
}

struct HalfElement {
  using Wide = double;
  static constexpr int kBytes = 2;
  static Wide Get(const char* at) { return SmallFloat(LoadElement<uint16_t>(at), 5, 10, false); }
};
struct BFloatElement {
  using Wide = double;
  static constexpr int kBytes = 2;
  static Wide Get(const char* at) {
    const uint32_t bits = static_cast<uint32_t>(LoadElement<uint16_t>(at)) << 16;
    return LoadElement<float>(reinterpret_cast<const char*>(&bits));
  }
};
struct E4M3Element {
  using Wide = double;
  static constexpr int kBytes = 1;
  static Wide Get(const char* at) { return SmallFloat(LoadElement<uint8_t>(at), 4, 3, true); }
};
struct E5M2Element {
  using Wide = double;
  static constexpr int kBytes = 1;
  static Wide Get(const char* at) { return SmallFloat(LoadElement<uint8_t>(at), 5, 2, false); }
};
template <typename T>
struct PlainElement {
  using Wide = double;
  static constexpr int kBytes = sizeof(T);
  static Wide Get(const char* at) { return static_cast<double>(LoadElement<T>(at)); }
};
struct BoolElement {
  using Wide = double;
  static constexpr int kBytes = 1;
  static Wide Get(const char* at) { return LoadElement<uint8_t>(at) != 0 ? 1.0 : 0.0; }
};
template <typename T>
struct ComplexElement {
  using Wide = std::complex<double>;
  static constexpr int kBytes = 2 * sizeof(T);
  static Wide Get(const char* at) { return {LoadElement<T>(at), LoadElement<T>(at + sizeof(T))}; }
};

// Returns f(reader) with the reader of the element type: one of the structs above.
template <typename F>
auto WithElementReader(DType type, const F& f) {
  switch (type) {
    case DType::kBool:
      return f(BoolElement());
    case DType::kUint8:
      return f(PlainElement<uint8_t>());
    case DType::kUint16:
      return f(PlainElement<uint16_t>());
    case DType::kUint32:
      return f(PlainElement<uint32_t>());
    case DType::kUint64:
      return f(PlainElement<uint64_t>());
    case DType::kInt8:
      return f(PlainElement<int8_t>());
    case DType::kInt16:
      return f(PlainElement<int16_t>());
    case DType::kInt32:
      return f(PlainElement<int32_t>());
    case DType::kInt64:
      return f(PlainElement<int64_t>());
    case DType::kFloat8E4M3Fn:
      return f(E4M3Element());
    case DType::kFloat8E5M2:
      return f(E5M2Element());
    case DType::kFloat16:
      return f(HalfElement());
    case DType::kBFloat16:
      return f(BFloatElement());
    case DType::kFloat32:
      return f(PlainElement<float>());
    case DType::kFloat64:
      return f(PlainElement<double>());
    case DType::kComplex64:
      return f(ComplexElement<float>());
    case DType::kComplex128:
      return f(ComplexElement<double>());
  }
  return f(PlainElement<uint8_t>());  // unreachable for a valid DType
}

// Returns a sentence if two outputs, or an output and an input, share memory, else "". They share
// it if they have the same address or are dense and overlap; interleaved views without a common
// element do not count. The addresses are the process's own claims, and a false one can harm only
// that process.
std::string FindSharedOutputs(const std::vector<Leaf>& outputs, const std::vector<Leaf>& inputs);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_TENSOR_LAYOUT_H_
