// The rules of operations on shapes, of dot products, reductions and scans.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "exec/ttir/verify_rules.h"

namespace tritonrl::ttir {

namespace {

bool IsPermutation(const absl::InlinedVector<int32_t, 4>& order, int rank) {
  if (static_cast<int>(order.size()) != rank) return false;
  uint32_t seen = 0;
  for (const int32_t axis : order) {
    if (axis < 0 || axis >= rank) return false;
    seen |= 1u << axis;
  }
  return seen == (1u << rank) - 1;
}

bool CanBroadcast(const Type& from, const Type& to) {
  if (from.rank() != to.rank()) return false;
  for (int i = 0; i < from.rank(); ++i) {
    if (from.dim(i) != to.dim(i) && from.dim(i) != 1) return false;
  }
  return true;
}

}  // namespace

std::string RuleChecker::CheckShape() const {
  switch (rule()) {
    case Rule::kSplat:
    case Rule::kUnsplat:
      return CheckSplat();
    case Rule::kTranspose:
      return CheckTranspose();
    case Rule::kProgram:
    case Rule::kRange:
      return CheckRange();
    case Rule::kDot:
      return CheckDot();
    case Rule::kScaledDot:
      return CheckScaledDot();
    case Rule::kReduce:
    case Rule::kScan:
      return CheckReduce();
    case Rule::kMap:
      return CheckMap();
    case Rule::kExtern:
    case Rule::kInlineAsm:
      return CheckExtern();
    case Rule::kHistogram:
    case Rule::kGather:
      return CheckGather();
    default:
      break;
  }
  const Type& from = In(0);
  const Type& to = Out();
  const int axis = attributes().axis;
  bool fits = from.is_tensor() && to.is_tensor() && from.ElementType() == to.ElementType();
  if (fits && rule() == Rule::kExpandDims) {
    fits =
        axis >= 0 && axis <= from.rank() && from.rank() < kMaxRank && to == from.WithAxis(axis, 1);
  } else if (fits && rule() == Rule::kReshape) {
    fits = from.elements() == to.elements();
  } else if (fits && rule() == Rule::kBroadcast) {
    fits = CanBroadcast(from, to);
  } else if (fits && rule() == Rule::kConcatenate) {
    fits = In(1) == from && from.rank() == to.rank() && from.rank() > 0 &&
           to.elements() == 2 * from.elements() && to.dim(0) == 2 * from.dim(0) &&
           to.WithoutAxis(0) == from.WithoutAxis(0);
  } else if (fits && rule() == Rule::kJoin) {
    fits = In(1) == from && from.rank() < kMaxRank && to == from.WithAxis(from.rank(), 2);
  } else if (fits && rule() == Rule::kSplit) {
    fits = from.rank() > 1 && from.dim(from.rank() - 1) == 2 &&
           to == from.WithoutAxis(from.rank() - 1) && Out(1) == to;
  }
  if (fits) return "";
  return absl::StrCat("it cannot make ", to.ToString(), " of ", from.ToString());
}

std::string RuleChecker::CheckSplat() const {
  const bool splat = rule() == Rule::kSplat;
  const Type& scalar = splat ? In(0) : Out();
  const Type& tensor = splat ? Out() : In(0);
  if (!scalar.is_scalar() || !tensor.is_tensor() || tensor.ElementType() != scalar ||
      (!splat && tensor.elements() != 1)) {
    return absl::StrCat("it cannot make ", Out().ToString(), " of ", In(0).ToString());
  }
  return "";
}

std::string RuleChecker::CheckTranspose() const {
  const Type& from = In(0);
  const Type& to = Out();
  const auto& order = attributes().order;
  if (!from.is_tensor() || !to.is_tensor() || from.ElementType() != to.ElementType() ||
      from.rank() != to.rank()) {
    return "its types do not fit";
  }
  if (!IsPermutation(order, from.rank())) return "its order is no permutation of the axes";
  for (int i = 0; i < from.rank(); ++i) {
    if (to.dim(i) != from.dim(order[i])) return "its result does not have the permuted shape";
  }
  return "";
}

std::string RuleChecker::CheckRange() const {
  if (rule() == Rule::kProgram) {
    if (attributes().axis < 0 || attributes().axis > 2) return "its axis is not x, y or z";
    return Out() == Type::Scalar(ScalarKind::kI32) ? "" : "its result is not i32";
  }
  const int64_t size = int64_t{attributes().end} - attributes().start;
  if (!Out().is_tensor() || !Out().is(ScalarKind::kI32) || Out().rank() != 1 ||
      Out().elements() != size) {
    return "its range does not fit its result";
  }
  return "";
}

std::string RuleChecker::CheckGather() const {
  if (rule() == Rule::kHistogram) {
    const bool fits = In(0).is_tensor() && In(0).is_integer() && In(0).rank() == 1 &&
                      Out().is_tensor() && Out().is_integer() && Out().rank() == 1;
    if (!fits) return "it takes and makes one-dimensional tensors of integers";
    if (operands() > 1 && In(1) != In(0).WithElement(ScalarKind::kI1)) {
      return "its mask is not i1 of the operand's shape";
    }
    return "";
  }
  const Type& source = In(0);
  const Type& indices = In(1);
  const int axis = attributes().axis;
  if (!source.is_tensor() || !indices.is_tensor() || !indices.is_integer() ||
      source.rank() != indices.rank() || axis < 0 || axis >= source.rank()) {
    return "its source, indices or axis do not fit";
  }
  for (int i = 0; i < source.rank(); ++i) {
    if (i != axis && indices.dim(i) > source.dim(i)) return "its indices exceed the source";
  }
  return Out() == indices.WithElement(source.ElementType()) ? "" : "its result does not fit";
}

std::string RuleChecker::CheckDot() const {
  const Type& a = In(0);
  const Type& b = In(1);
  const Type& c = In(2);
  const int rank = a.rank();
  const bool tensors = a.is_tensor() && b.is_tensor() && c.is_tensor();
  if (!tensors || rank < 2 || rank > 3 || b.rank() != rank || c.rank() != rank) {
    return "its operands are not matrices";
  }
  const int m = rank - 2;
  const int n = rank - 1;
  const bool batches = rank == 2 || (a.dim(0) == b.dim(0) && a.dim(0) == c.dim(0));
  if (!batches || a.dim(n) != b.dim(m) || c.dim(m) != a.dim(m) || c.dim(n) != b.dim(n)) {
    return absl::StrCat("the shapes of ", a.ToString(), ", ", b.ToString(), " and ", c.ToString(),
                        " do not fit");
  }
  const bool floats = a.is_float() && b.is_float() && c.is_float();
  const bool integers = a.is_integer() && b.is_integer() && c.is(ScalarKind::kI32);
  if (!(floats || integers) || a.bit_width() != b.bit_width()) {
    return absl::StrCat("it does not multiply ", a.ToString(), " with ", b.ToString(), " into ",
                        c.ToString());
  }
  return Out() == c ? "" : "its result is not of the accumulator's type";
}

std::string RuleChecker::CheckScaledDot() const {
  for (size_t i = 0; i < operands(); ++i) {
    if (!In(i).is_tensor() || In(i).rank() != 2) return "its operands are not matrices";
  }
  const Type& a = In(0);
  const Type& b = In(1);
  const bool left = attributes().has(kLeftScale);
  const bool right = attributes().has(kRightScale);
  if (operands() != 3u + (left ? 1 : 0) + (right ? 1 : 0)) return "its scales are missing";
  const auto packed = [](ScaledElement element) { return element == ScaledElement::kE2M1 ? 2 : 1; };
  const int pack_a = packed(attributes().left_element);
  const int pack_b = packed(attributes().right_element);
  const bool along_a = attributes().has(kLeftKPack);
  const bool along_b = attributes().has(kRightKPack);
  const int64_t m = a.dim(0) * (along_a ? 1 : pack_a);
  const int64_t k = a.dim(1) * (along_a ? pack_a : 1);
  const int64_t n = b.dim(1) * (along_b ? 1 : pack_b);
  if (k != b.dim(0) * (along_b ? pack_b : 1) || Out() != In(2) || !Out().is_float() ||
      Out().dim(0) != m || Out().dim(1) != n) {
    return "the shapes of its operands do not fit";
  }
  for (size_t i = 3; i < operands(); ++i) {
    const int64_t rows = i == 3 && left ? m : n;
    if (In(i).dim(0) != rows || In(i).dim(1) > k) return "the shape of a scale does not fit";
  }
  return "";
}

std::string RuleChecker::CheckReduce() const {
  const int axis = attributes().axis;
  if (operation_.results.size() != operands()) return "it has not as many results as operands";
  std::vector<Type> elements;
  for (size_t i = 0; i < operands(); ++i) {
    if (!In(i).is_tensor() || !In(i).SameShape(In(0))) return "its operands have different shapes";
    if (axis < 0 || axis >= In(i).rank()) return absl::StrCat("it has no axis ", axis);
    const Type wanted = rule() == Rule::kScan ? In(i) : In(i).WithoutAxis(axis);
    if (Out(i) != wanted) {
      return absl::StrCat("its result is ", Out(i).ToString(), " and not ", wanted.ToString());
    }
    elements.push_back(In(i).ElementType());
  }
  std::vector<Type> arguments = elements;
  arguments.insert(arguments.end(), elements.begin(), elements.end());
  return CheckRegion(0, arguments,
                     rule() == Rule::kScan ? Opcode::kScanReturn : Opcode::kReduceReturn, elements);
}

std::string RuleChecker::CheckMap() const {
  const int pack = attributes().packed_elements;
  if (pack < 1 || pack > 1024) return "its number of packed elements is out of range";
  if (operation_.results.empty()) return "it has no result";
  std::vector<Type> arguments;
  std::vector<Type> yielded;
  for (size_t i = 0; i < operands() + operation_.results.size(); ++i) {
    const bool is_operand = i < operands();
    const Type& type = is_operand ? In(i) : Out(i - operands());
    if (!type.is_tensor() || !type.SameShape(In(0))) return "its tensors have different shapes";
    auto& list = is_operand ? arguments : yielded;
    list.insert(list.end(), static_cast<size_t>(pack), type.ElementType());
  }
  return CheckRegion(0, arguments, Opcode::kMapReturn, yielded);
}

}  // namespace tritonrl::ttir
