#include "exec/device/neutral_operators.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/compute_operators.h"
#include "exec/device/init_operators.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kMaxMarkedBytes = 1 << 30;

using Treatments = absl::flat_hash_map<std::string, Treatment>;

const Treatments& NeutralOperators() {
  static const Treatments* const table = [] {
    auto* const made = new Treatments;
    const auto add = [&](Treatment treatment, std::initializer_list<const char*> names) {
      for (const char* const name : names) made->emplace(name, treatment);
    };
    add(Treatment::kAllocate, {"empty", "empty_like", "empty_strided", "empty_permuted",
                               "new_empty", "new_empty_strided"});
    add(Treatment::kFill,
        {"fill_", "zero_", "zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones",
         "full", "full_like", "new_full", "scalar_tensor", "arange", "range", "linspace",
         "logspace", "eye", "tril_indices", "triu_indices"});
    add(Treatment::kCopy, {"copy_"});
    add(Treatment::kJoin, {"cat", "stack"});
    add(Treatment::kRandom, {"rand", "rand_like", "randn", "randn_like", "randint", "randint_like",
                             "randperm", "random_", "uniform_", "normal_", "exponential_",
                             "geometric_", "cauchy_", "log_normal_", "bernoulli_"});
    return made;
  }();
  return *table;
}

enum class TypeClass { kFloat, kInteger, kComplex };

TypeClass ClassOf(at::ScalarType type) {
  if (at::isComplexType(type)) return TypeClass::kComplex;
  return at::isFloatingType(type) ? TypeClass::kFloat : TypeClass::kInteger;
}

absl::Status Computes(const BoundCall& bound) {
  return absl::PermissionDeniedError(absl::StrCat("aten::", bound.call->name, " computes on ",
                                                  bound.most_elements(), " elements"));
}

// A copy that computes is for few elements, all together.
absl::Status CountSmallCast(at::ScalarType from, at::ScalarType made_as, at::ScalarType to,
                            int64_t elements, const SessionLimits& limits, CallBudget& budget) {
  SessionLimits none = limits;
  none.max_small_elements = 0;
  const absl::Status computes = CheckCast(from, made_as, to, elements, none);
  if (computes.ok()) return absl::OkStatus();
  budget.small_elements += elements;
  const bool few = elements <= limits.max_small_elements &&
                   budget.small_elements <= limits.max_small_elements_of_call;
  return few ? absl::OkStatus() : computes;
}

// Whether a cast between types may change a number: to fewer bits it wraps around, which is a
// modulo, and to bool it compares with zero.
bool MayWrap(at::ScalarType from, at::ScalarType to) {
  if (from == to || at::isComplexType(from)) return false;
  if (to == at::kBool) return true;
  return ClassOf(from) == TypeClass::kInteger && ClassOf(to) == TypeClass::kInteger &&
         BytesOf(to) < BytesOf(from);
}

absl::Status CheckWrap(const TensorRef& from, at::ScalarType to, StorageTable& memory) {
  if (!MayWrap(from.dtype, to)) return absl::OkStatus();
  bool same = false;
  RETURN_IF_ERROR(CatchTorch([&] {
    at::Tensor held = memory.View(from).contiguous();
    at::Tensor again = held.to(to).to(from.dtype);
    if (ClassOf(from.dtype) == TypeClass::kInteger) {  // torch compares few unsigned types
      held = held.view(TagType(BytesOf(from.dtype)));
      again = again.view(TagType(BytesOf(from.dtype)));
    }
    same = at::equal(held, again);
  }));
  if (same) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("a cast from ", NameOf(from.dtype), " to ", NameOf(to), " changes values"));
}

absl::Status CheckCopy(const BoundCall& bound, StorageTable& memory, const SessionLimits& limits,
                       CallBudget& budget) {
  const Value* const target = bound.Find("self");
  const Value* const source = bound.Find("src");
  if (target == nullptr || target->kind != Value::Kind::kTensor || source == nullptr) {
    return absl::InvalidArgumentError("aten::copy_ needs two tensors");
  }
  const int64_t elements = target->tensor.elements();
  if (source->kind != Value::Kind::kTensor) {
    if (source->kind != Value::Kind::kHost) return absl::OkStatus();  // one number
    const at::ScalarType type = source->host.scalar_type();
    if (source->host.numel() <= 1) return absl::OkStatus();  // one number of the program
    return CountSmallCast(type, type, target->tensor.dtype, elements, limits, budget);
  }
  const TensorRef& from = source->tensor;
  if (from.negative != target->tensor.negative || from.conjugate != target->tensor.conjugate) {
    budget.small_elements += elements;
    if (elements > limits.max_small_elements ||
        budget.small_elements > limits.max_small_elements_of_call) {
      return absl::PermissionDeniedError("a copy of a negative or conjugate view computes");
    }
  }
  RETURN_IF_ERROR(CheckOverlap(target->tensor, from, memory));
  const at::ScalarType made_as = memory.Find(from.storage)->made_as;
  RETURN_IF_ERROR(
      CountSmallCast(from.dtype, made_as, target->tensor.dtype, elements, limits, budget));
  if (elements <= limits.max_small_elements) return absl::OkStatus();
  return CheckWrap(from, target->tensor.dtype, memory);
}

// Whether all tensors have the same type, so that the operator moves elements unchanged.
bool HaveOneType(const BoundCall& bound) {
  std::set<std::pair<at::ScalarType, int>> types;
  for (const TensorRef* tensor : bound.tensors) {
    types.emplace(tensor->dtype, tensor->negative + 2 * tensor->conjugate);
  }
  for (const at::Tensor* host : bound.hosts) types.emplace(host->scalar_type(), 0);
  return types.size() <= 1;
}

// Joining tensors moves them as they are. Joining parts of one tensor in another order is what a
// task may ask a kernel for (torch.roll).
absl::Status CheckJoin(const BoundCall& bound, const SessionLimits& limits) {
  for (size_t i = 0; i < bound.tensors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const TensorRef& a = *bound.tensors[i];
      const TensorRef& b = *bound.tensors[j];
      if (a.storage != b.storage || a.elements() + b.elements() <= limits.max_small_elements) {
        continue;
      }
      return absl::PermissionDeniedError(
          absl::StrCat("aten::", bound.call->name, " puts parts of one tensor in another order"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSmall(const BoundCall& bound, StorageTable& memory, const SessionLimits& limits,
                        CallBudget& budget) {
  RETURN_IF_ERROR(CheckNeverRun(bound));
  RETURN_IF_ERROR(CheckTraps(bound, memory));
  int64_t elements = 0;
  for (const TensorRef* tensor : bound.tensors) {
    elements = std::min(elements + tensor->elements(), int64_t{1} << 40);
  }
  for (const at::Tensor* host : bound.hosts) elements += host->numel();
  const bool small = bound.most_elements() <= limits.max_small_elements &&
                     budget.small_elements + elements <= limits.max_small_elements_of_call;
  if (!small || !IsInitOperator(bound.call->name)) return Computes(bound);
  if (!CheckSize(bound, limits.max_small_elements * 16).ok()) return Computes(bound);
  budget.small_elements += elements;
  return absl::OkStatus();
}

// A mask is made of constants and random numbers; what is done to data with it is a kernel's work.
absl::Status CheckMask(const BoundCall& bound, StorageTable& memory) {
  for (const TensorRef* tensor : bound.tensors) {
    const TagCounts counts = memory.Count(*tensor);
    int64_t of_masks = 0;
    for (const Tag tag : {Tag::kConstant, Tag::kRandom}) {
      of_masks += counts.bytes[static_cast<size_t>(tag)];
    }
    if (of_masks != counts.total) return Computes(bound);
  }
  return absl::OkStatus();
}

absl::Status CountUploads(const BoundCall& bound, const SessionLimits& limits, CallBudget& budget) {
  for (const at::Tensor* host : bound.hosts) {
    if (host->dim() > 0) budget.upload_bytes += static_cast<int64_t>(host->nbytes());
  }
  if (budget.upload_bytes <= limits.max_upload_bytes_of_call) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("forward sends ", budget.upload_bytes, " bytes from the host"));
}

}  // namespace

Treatment TreatmentOf(const OperatorCall& call) {
  // Probabilities in a tensor are data.
  if (call.name == "bernoulli_" && call.overload != "float") return Treatment::kOther;
  // Ends in tensors: the points between are means, those of logspace are powers.
  if ((call.name == "linspace" || call.name == "logspace") &&
      absl::StrContains(call.overload, "Tensor")) {
    return Treatment::kOther;
  }
  const auto found = NeutralOperators().find(call.name);
  return found == NeutralOperators().end() ? Treatment::kOther : found->second;
}

absl::Status CheckCast(at::ScalarType from, at::ScalarType made_as, at::ScalarType to,
                       int64_t elements, const SessionLimits& limits) {
  if (from == to || elements <= limits.max_small_elements) return absl::OkStatus();
  const TypeClass source = ClassOf(from);
  if (source == TypeClass::kFloat && ClassOf(to) == TypeClass::kInteger && to != at::kBool) {
    return absl::PermissionDeniedError(
        absl::StrCat("a cast from ", NameOf(from), " to ", NameOf(to), " rounds"));
  }
  if (source == TypeClass::kComplex && ClassOf(to) != TypeClass::kComplex) {
    return absl::PermissionDeniedError(
        absl::StrCat("a cast from ", NameOf(from), " to ", NameOf(to), " drops a part"));
  }
  const bool same_integers = source == TypeClass::kInteger &&
                             ClassOf(made_as) == TypeClass::kInteger &&
                             BytesOf(from) == BytesOf(made_as);
  if (from == made_as || same_integers) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("a cast from ", NameOf(from), ", bits of ", NameOf(made_as), ", computes"));
}

absl::Status CheckOverlap(const TensorRef& target, const TensorRef& source, StorageTable& memory) {
  if (!HasDistinctElements(target)) {
    return absl::PermissionDeniedError("a copy into memory that overlaps itself");
  }
  if (target.storage != source.storage || target.elements() == 0 || source.elements() == 0) {
    return absl::OkStatus();
  }
  const auto begin = [](const TensorRef& t) { return t.offset * BytesOf(t.dtype); };
  ASSIGN_OR_RETURN(const int64_t target_span, SpanOf(target));
  ASSIGN_OR_RETURN(const int64_t source_span, SpanOf(source));
  if (begin(target) >= source_span * BytesOf(source.dtype) ||
      begin(source) >= target_span * BytesOf(target.dtype)) {
    return absl::OkStatus();
  }
  const bool same = target.dtype == source.dtype && target.shape == source.shape &&
                    target.stride == source.stride && target.offset == source.offset;
  if (same) return absl::OkStatus();
  const int64_t bytes = memory.Find(target.storage)->bytes;
  if (bytes > kMaxMarkedBytes) return absl::PermissionDeniedError("a copy within a large tensor");
  // Interleaved tensors have no element in common: mark one's bytes, and look at the other's.
  bool common = false;
  RETURN_IF_ERROR(CatchTorch([&] {
    const at::Tensor marks = at::zeros({bytes}, at::kByte);
    const auto bytes_of = [&](const TensorRef& tensor, int64_t byte) {
      const int64_t size = BytesOf(tensor.dtype);
      std::vector<int64_t> stride = tensor.stride;
      for (int64_t& step : stride) step *= size;
      return marks.as_strided(tensor.shape, stride, tensor.offset * size + byte);
    };
    for (int64_t b = 0; b < BytesOf(target.dtype); ++b) bytes_of(target, b).fill_(1);
    for (int64_t b = 0; b < BytesOf(source.dtype); ++b) {
      common = common || bytes_of(source, b).any().item<bool>();
    }
  }));
  if (!common) return absl::OkStatus();
  return absl::PermissionDeniedError("a copy between tensors that overlap");
}

absl::Status CheckForward(const BoundCall& bound, StorageTable& memory, const ForwardRules& rules,
                          CallBudget& budget) {
  const int64_t bytes_left = rules.limits.max_memory_bytes - memory.live_bytes();
  if (rules.may_compute) return CheckCompute(bound, memory, bytes_left);
  RETURN_IF_ERROR(CountUploads(bound, rules.limits, budget));
  if (TreatmentOf(*bound.call) == Treatment::kOther &&
      rules.also_allowed.count(bound.call->name) > 0 && CheckMask(bound, memory).ok()) {
    return CheckInit(bound, memory, bytes_left);
  }
  switch (TreatmentOf(*bound.call)) {
    case Treatment::kAllocate:
      return absl::OkStatus();
    case Treatment::kFill:
    case Treatment::kRandom:
      RETURN_IF_ERROR(CheckTraps(bound, memory));
      return CheckSize(bound, bytes_left);
    case Treatment::kCopy:
      return CheckCopy(bound, memory, rules.limits, budget);
    case Treatment::kJoin:
      if (!HaveOneType(bound)) break;
      RETURN_IF_ERROR(CheckJoin(bound, rules.limits));
      return CheckSize(bound, bytes_left);
    case Treatment::kOther:
      break;
  }
  return CheckSmall(bound, memory, rules.limits, budget);
}

}  // namespace tritonrl::device
