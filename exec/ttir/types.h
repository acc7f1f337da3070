// Types of Triton IR values. A Type is 32 bytes without pointers: copying and comparing are cheap.
#ifndef TRITONRL_EXEC_TTIR_TYPES_H_
#define TRITONRL_EXEC_TTIR_TYPES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tritonrl::ttir {

// Element types, named as MLIR prints them ("f8E4M3FN"). Triton's fp8e4b15 is i8 in its IR.
enum class ScalarKind : uint8_t {
  kI1,
  kI8,
  kI16,
  kI32,
  kI64,
  kIndex,
  kF8E4M3FN,
  kF8E5M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF8E4M3B11FNUZ,
  kF16,
  kBF16,
  kF32,
  kF64,
};

// The name as MLIR prints it, and its inverse; nullopt for another name.
absl::string_view ScalarName(ScalarKind kind);
std::optional<ScalarKind> FindScalar(absl::string_view name);
bool IsInteger(ScalarKind kind);  // kIndex too
bool IsFloat(ScalarKind kind);
int BitWidth(ScalarKind kind);      // 64 for kIndex
int StorageBytes(ScalarKind kind);  // bytes of one element in memory: 1 for kI1

// Triton's limit of a tensor: 2^20 elements. Each dimension is a power of two.
inline constexpr int kMaxLog2Elements = 20;
inline constexpr int kMaxRank = 24;
inline constexpr int kMaxPointerLevels = 4;

class Type {
 public:
  enum class Kind : uint8_t {
    kNone,          // no value
    kScalar,        // a number or a pointer
    kTensor,        // of numbers or of pointers
    kBlockPointer,  // !tt.ptr<tensor<...>>
    kDescriptor,    // !tt.tensordesc<tensor<...>>
  };
  enum class Signedness : uint8_t { kNone, kSigned, kUnsigned };

  Type() = default;
  static Type Scalar(ScalarKind element, int pointer_levels = 0);
  // nullopt if a dimension is not a power of two, or rank or number of elements is too large.
  static std::optional<Type> Tensor(absl::Span<const int64_t> dims, const Type& element);

  // Each of these returns a copy with one part replaced.
  Type WithKind(Kind kind) const;
  Type WithElement(const Type& scalar) const;  // the scalar's element and pointer levels
  Type WithElement(ScalarKind element) const { return WithElement(Scalar(element)); }
  Type WithSignedness(Signedness signedness) const;
  Type WithShapeOf(const Type& other) const;  // its kind and shape are those of `other`
  Type WithoutAxis(int axis) const;           // a scalar if no axis remains
  Type WithAxis(int axis, int64_t size) const;
  Type ElementType() const { return Scalar(element_, pointer_levels_); }
  Type Pointee() const;  // what a pointer, tensor of pointers or block pointer points to

  Kind kind() const { return kind_; }
  bool is_scalar() const { return kind_ == Kind::kScalar; }
  bool is_tensor() const { return kind_ == Kind::kTensor; }
  bool is_block_pointer() const { return kind_ == Kind::kBlockPointer; }
  bool is_descriptor() const { return kind_ == Kind::kDescriptor; }
  // A scalar or tensor of pointers, of integers, of floats.
  bool is_pointer() const { return is_value() && pointer_levels_ > 0; }
  bool is_integer() const { return is_value() && pointer_levels_ == 0 && IsInteger(element_); }
  bool is_float() const { return is_value() && pointer_levels_ == 0 && IsFloat(element_); }
  bool is_value() const { return is_scalar() || is_tensor(); }
  bool is(ScalarKind element) const {
    return is_value() && pointer_levels_ == 0 && element_ == element;
  }

  // Of a pointer the type that its last level points to.
  ScalarKind element() const { return element_; }
  int pointer_levels() const { return pointer_levels_; }
  Signedness signedness() const { return signedness_; }
  int rank() const { return rank_; }
  int64_t dim(int axis) const { return int64_t{1} << log2_dims_[axis]; }
  int log2_dim(int axis) const { return log2_dims_[axis]; }
  int64_t elements() const { return int64_t{1} << log2_elements_; }  // 1 for a scalar
  int bit_width() const { return pointer_levels_ > 0 ? 64 : BitWidth(element_); }
  bool SameShape(const Type& other) const {
    return rank_ == other.rank_ && log2_dims_ == other.log2_dims_;
  }

  std::string ToString() const;  // as MLIR prints it

  friend bool operator==(const Type&, const Type&) = default;

 private:
  Kind kind_ = Kind::kNone;
  ScalarKind element_ = ScalarKind::kI1;
  uint8_t pointer_levels_ = 0;
  Signedness signedness_ = Signedness::kNone;
  uint8_t rank_ = 0;
  uint8_t log2_elements_ = 0;
  std::array<uint8_t, kMaxRank> log2_dims_ = {};
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_TYPES_H_
