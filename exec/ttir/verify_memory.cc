// The rules of pointers, loads, stores, atomics and descriptors.
#include <string>

#include "absl/strings/str_cat.h"
#include "exec/ttir/verify_rules.h"

namespace tritonrl::ttir {

namespace {

bool IsScalar(const Type& type, ScalarKind kind) { return type == Type::Scalar(kind); }

}  // namespace

std::string RuleChecker::CheckMemory() const {
  switch (rule()) {
    case Rule::kAddPointer:
      return CheckAddPointer();
    case Rule::kAdvance:
    case Rule::kMakeBlockPointer:
      return CheckBlockPointer();
    case Rule::kLoad:
      return CheckLoad();
    case Rule::kStore:
      return CheckStore();
    case Rule::kAtomic:
    case Rule::kCompareAndSwap:
      return CheckAtomic();
    case Rule::kDescriptorGather:
    case Rule::kDescriptorScatter:
      return CheckDescriptorRows();
    default:
      return CheckDescriptor();
  }
}

std::string RuleChecker::CheckAddPointer() const {
  if (!In(0).is_pointer() || !In(1).is_integer() || In(0).kind() != In(1).kind() ||
      !In(0).SameShape(In(1)) || Out() != In(0)) {
    return absl::StrCat("it cannot add ", In(1).ToString(), " to ", In(0).ToString());
  }
  return "";
}

// Boundary checks name axes of a block pointer.
std::string RuleChecker::CheckBoundary(const Type& pointer) const {
  for (const int32_t axis : attributes().boundary_check) {
    if (!pointer.is_block_pointer()) return "only a block pointer has boundary checks";
    if (axis < 0 || axis >= pointer.rank()) return "a boundary check has no such axis";
  }
  return "";
}

std::string RuleChecker::CheckLoad() const {
  const Type& pointer = In(0);
  if (!pointer.is_pointer() && !pointer.is_block_pointer()) {
    return absl::StrCat("it cannot load from ", pointer.ToString());
  }
  const Type value = pointer.Pointee();
  if (Out() != value) return "its result is not what the pointer points to";
  if (operands() > 1 && pointer.is_block_pointer()) return "a block pointer has no mask";
  if (operands() > 1 && In(1) != value.WithElement(ScalarKind::kI1)) {
    return absl::StrCat("its mask is ", In(1).ToString());
  }
  if (operands() > 2 && In(2) != value) {
    return absl::StrCat("its default is ", In(2).ToString(), " and not ", value.ToString());
  }
  return CheckBoundary(pointer);
}

std::string RuleChecker::CheckStore() const {
  const Type& pointer = In(0);
  if (!pointer.is_pointer() && !pointer.is_block_pointer()) {
    return absl::StrCat("it cannot store to ", pointer.ToString());
  }
  const Type value = pointer.Pointee();
  if (In(1) != value) {
    return absl::StrCat("it stores ", In(1).ToString(), " to ", pointer.ToString());
  }
  if (operands() > 2 && pointer.is_block_pointer()) return "a block pointer has no mask";
  if (operands() > 2 && In(2) != value.WithElement(ScalarKind::kI1)) {
    return absl::StrCat("its mask is ", In(2).ToString());
  }
  return CheckBoundary(pointer);
}

std::string RuleChecker::CheckAtomic() const {
  const Type& pointer = In(0);
  if (!pointer.is_pointer()) return absl::StrCat("it has no pointer but ", pointer.ToString());
  const Type value = pointer.Pointee();
  if (!value.is_integer() && !value.is_float()) return "it changes neither integers nor floats";
  if (In(1) != value || Out() != value) return "its value is not what the pointer points to";
  if (rule() == Rule::kCompareAndSwap) {
    return In(2) == value ? "" : "its value is not what the pointer points to";
  }
  if (operands() > 2 && In(2) != value.WithElement(ScalarKind::kI1)) {
    return absl::StrCat("its mask is ", In(2).ToString());
  }
  const AtomicKind kind = attributes().atomic;
  if (kind == AtomicKind::kExchange) return "";
  if ((kind == AtomicKind::kFadd) != value.is_float()) {
    return absl::StrCat("its kind does not fit ", value.ToString());
  }
  return "";
}

// make_tensor_ptr (base, shape, strides, offsets) and advance (pointer, offsets).
std::string RuleChecker::CheckBlockPointer() const {
  const Type& pointer = Out();
  if (!pointer.is_block_pointer()) return "its result is no block pointer";
  const auto rank = static_cast<size_t>(pointer.rank());
  const bool advance = rule() == Rule::kAdvance;
  if (operands() != 1 + (advance ? rank : 3 * rank)) return "it has not as many numbers as axes";
  if (advance && In(0) != pointer) return "it changes the pointer's type";
  if (!advance &&
      (!In(0).is_scalar() || !In(0).is_pointer() || In(0).Pointee() != pointer.ElementType())) {
    return absl::StrCat("its base is ", In(0).ToString());
  }
  for (size_t i = 1; i < operands(); ++i) {
    const bool offset = advance || i > 2 * rank;
    if (!IsScalar(In(i), offset ? ScalarKind::kI32 : ScalarKind::kI64)) {
      return absl::StrCat("its operand ", i, " is ", In(i).ToString());
    }
  }
  if (advance) return "";
  uint32_t seen = 0;
  for (const int32_t axis : attributes().order) {
    if (axis >= 0 && axis < pointer.rank()) seen |= 1u << axis;
  }
  if (attributes().order.size() != rank || seen != (1u << rank) - 1) {
    return "its order is no permutation of the axes";
  }
  return "";
}

// make_tensor_descriptor (base, shape, strides), descriptor_load (descriptor, indices) and
// descriptor_store or descriptor_reduce (descriptor, value, indices).
std::string RuleChecker::CheckDescriptor() const {
  const bool make = rule() == Rule::kMakeDescriptor;
  const bool load = rule() == Rule::kDescriptorLoad;
  const Type& descriptor = make ? Out() : In(0);
  if (!descriptor.is_descriptor()) return absl::StrCat(descriptor.ToString(), " is no descriptor");
  const auto rank = static_cast<size_t>(descriptor.rank());
  const size_t first = make || load ? 1 : 2;
  if (operands() != first + (make ? 2 * rank : rank)) return "it has not as many numbers as axes";
  for (size_t i = first; i < operands(); ++i) {
    const bool stride = make && i > rank;
    if (!IsScalar(In(i), stride ? ScalarKind::kI64 : ScalarKind::kI32)) {
      return absl::StrCat("its operand ", i, " is ", In(i).ToString());
    }
  }
  if (make) {
    const bool fits =
        In(0).is_scalar() && In(0).is_pointer() && In(0).Pointee() == descriptor.ElementType();
    return fits ? "" : absl::StrCat("its base is ", In(0).ToString());
  }
  // A block of one row may be loaded without the axis of rows.
  const Type& value = load ? Out() : In(1);
  if (!value.is_tensor() || value.ElementType() != descriptor.ElementType() ||
      value.elements() != descriptor.elements()) {
    return absl::StrCat(value.ToString(), " is not the block of ", descriptor.ToString());
  }
  return "";
}

// descriptor_gather (descriptor, rows, column) and descriptor_scatter (descriptor, rows, column,
// value).
std::string RuleChecker::CheckDescriptorRows() const {
  const Type& descriptor = In(0);
  const Type& rows = In(1);
  const Type& value = rule() == Rule::kDescriptorGather ? Out() : In(3);
  if (!descriptor.is_descriptor() || descriptor.rank() != 2 || descriptor.dim(0) != 1) {
    return absl::StrCat(descriptor.ToString(), " is no descriptor of one row");
  }
  if (!rows.is_tensor() || !rows.is(ScalarKind::kI32) || rows.rank() != 1) {
    return absl::StrCat("its rows are ", rows.ToString());
  }
  if (!IsScalar(In(2), ScalarKind::kI32)) return "its column is not i32";
  if (!value.is_tensor() || value.rank() != 2 || value.dim(0) != rows.dim(0) ||
      value.dim(1) != descriptor.dim(1) || value.ElementType() != descriptor.ElementType()) {
    return absl::StrCat(value.ToString(), " does not fit rows and descriptor");
  }
  return "";
}

}  // namespace tritonrl::ttir
