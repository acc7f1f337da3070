#include "exec/ttir/types.h"

#include <bit>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace tritonrl::ttir {

namespace {

struct ScalarInfo {
  const char* name;
  int bits;
  bool is_float;
};

// In the order of ScalarKind.
constexpr ScalarInfo kScalars[] = {
    {"i1", 1, false},        {"i8", 8, false},           {"i16", 16, false},
    {"i32", 32, false},      {"i64", 64, false},         {"index", 64, false},
    {"f8E4M3FN", 8, true},   {"f8E5M2", 8, true},        {"f8E4M3FNUZ", 8, true},
    {"f8E5M2FNUZ", 8, true}, {"f8E4M3B11FNUZ", 8, true}, {"f16", 16, true},
    {"bf16", 16, true},      {"f32", 32, true},          {"f64", 64, true},
};

const ScalarInfo& Info(ScalarKind kind) { return kScalars[static_cast<int>(kind)]; }

}  // namespace

absl::string_view ScalarName(ScalarKind kind) { return Info(kind).name; }

std::optional<ScalarKind> FindScalar(absl::string_view name) {
  for (size_t i = 0; i < std::size(kScalars); ++i) {
    if (name == kScalars[i].name) return static_cast<ScalarKind>(i);
  }
  return std::nullopt;
}

bool IsInteger(ScalarKind kind) { return !Info(kind).is_float; }
bool IsFloat(ScalarKind kind) { return Info(kind).is_float; }
int BitWidth(ScalarKind kind) { return Info(kind).bits; }
int StorageBytes(ScalarKind kind) { return (Info(kind).bits + 7) / 8; }

Type Type::Scalar(ScalarKind element, int pointer_levels) {
  Type type;
  type.kind_ = Kind::kScalar;
  type.element_ = element;
  type.pointer_levels_ = static_cast<uint8_t>(pointer_levels);
  return type;
}

std::optional<Type> Type::Tensor(absl::Span<const int64_t> dims, const Type& element) {
  if (dims.size() > kMaxRank || !element.is_scalar()) return std::nullopt;
  Type type = element.WithKind(Kind::kTensor);
  int total = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] <= 0 || !std::has_single_bit(static_cast<uint64_t>(dims[i]))) return std::nullopt;
    const int log2 = std::countr_zero(static_cast<uint64_t>(dims[i]));
    total += log2;
    if (total > kMaxLog2Elements) return std::nullopt;
    type.log2_dims_[i] = static_cast<uint8_t>(log2);
  }
  type.rank_ = static_cast<uint8_t>(dims.size());
  type.log2_elements_ = static_cast<uint8_t>(total);
  return type;
}

Type Type::WithKind(Kind kind) const {
  Type type = *this;
  type.kind_ = kind;
  return type;
}

Type Type::WithElement(const Type& scalar) const {
  Type type = *this;
  type.element_ = scalar.element_;
  type.pointer_levels_ = scalar.pointer_levels_;
  type.signedness_ = Signedness::kNone;
  return type;
}

Type Type::WithSignedness(Signedness signedness) const {
  Type type = *this;
  type.signedness_ = signedness;
  return type;
}

Type Type::WithShapeOf(const Type& other) const { return other.WithElement(ElementType()); }

Type Type::WithoutAxis(int axis) const {
  Type type = *this;
  type.log2_elements_ -= log2_dims_[axis];
  for (int i = axis; i + 1 < rank_; ++i) type.log2_dims_[i] = log2_dims_[i + 1];
  --type.rank_;
  type.log2_dims_[type.rank_] = 0;
  if (type.rank_ == 0) type.kind_ = Kind::kScalar;
  return type;
}

Type Type::WithAxis(int axis, int64_t size) const {
  Type type = *this;
  type.kind_ = Kind::kTensor;
  for (int i = rank_; i > axis; --i) type.log2_dims_[i] = log2_dims_[i - 1];
  const int log2 = std::countr_zero(static_cast<uint64_t>(size));
  type.log2_dims_[axis] = static_cast<uint8_t>(log2);
  type.log2_elements_ = static_cast<uint8_t>(type.log2_elements_ + log2);
  ++type.rank_;
  return type;
}

Type Type::Pointee() const {
  if (is_block_pointer()) return WithKind(Kind::kTensor);
  Type type = *this;
  if (type.pointer_levels_ > 0) --type.pointer_levels_;
  return type;
}

std::string Type::ToString() const {
  if (kind_ == Kind::kNone) return "none";
  std::string element = std::string(ScalarName(element_));
  if (signedness_ == Signedness::kSigned) element = "s" + element;
  if (signedness_ == Signedness::kUnsigned) element = "u" + element;
  for (int i = 0; i < pointer_levels_; ++i) element = absl::StrCat("!tt.ptr<", element, ">");
  if (kind_ == Kind::kScalar) return element;
  std::string tensor = "tensor<";
  for (int i = 0; i < rank_; ++i) absl::StrAppend(&tensor, dim(i), "x");
  absl::StrAppend(&tensor, element, ">");
  if (kind_ == Kind::kBlockPointer) return absl::StrCat("!tt.ptr<", tensor, ">");
  if (kind_ == Kind::kDescriptor) return absl::StrCat("!tt.tensordesc<", tensor, ">");
  return tensor;
}

}  // namespace tritonrl::ttir
