#include "exec/device/init_operators.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "exec/device/neutral_operators.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

// A name stands for its in-place form too.
constexpr absl::string_view kNames =
    // Arithmetic on elements.
    "add sub rsub mul div floor_divide remainder fmod neg reciprocal pow square sqrt rsqrt exp "
    "exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh "
    "atanh sigmoid logit erf erfc erfinv lgamma digamma abs sgn sign floor ceil round trunc frac "
    "clamp clamp_min clamp_max maximum minimum fmax fmin lerp addcmul addcdiv hypot nan_to_num "
    "sinc relu gelu silu softplus elu leaky_relu hardtanh hardsigmoid hardswish complex polar "
    "angle _conj_physical conj_physical real imag "
    // Comparisons, bits and masks.
    "eq ne lt le gt ge isnan isinf isfinite isposinf isneginf logical_and logical_or logical_xor "
    "logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift "
    "bitwise_right_shift __lshift__ __rshift__ where masked_fill masked_scatter masked_select "
    "nonzero isin "
    // Reductions and scans.
    "sum mean prod amax amin aminmax max min argmax argmin any all var var_mean std std_mean "
    "linalg_vector_norm norm logsumexp cumsum cumprod logcumsumexp _softmax _log_softmax "
    // Places of elements.
    "sort topk tril triu diag flip roll index index_select index_put index_fill "
    "index_copy index_add gather scatter scatter_add searchsorted bucketize unique_dim cat stack "
    "clone _to_copy diag_embed diagonal_copy constant_pad_nd repeat pixel_shuffle embedding "
    // Linear algebra of initialisers.
    "mm bmm addmm addmv addr baddbmm mv dot outer linalg_qr _weight_norm_interface "
    // Further draws.
    "normal bernoulli multinomial poisson native_dropout";

const absl::flat_hash_set<std::string>& Names() {
  static const auto* const names =
      new absl::flat_hash_set<std::string>(absl::StrSplit(kNames, ' ', absl::SkipEmpty()));
  return *names;
}

// Whether the value has an integer element of 0 or -1.
absl::StatusOr<bool> IsDangerousDivisor(const Value& value, StorageTable& memory) {
  const auto dangerous = [](int64_t divisor) { return divisor == 0 || divisor == -1; };
  if (value.kind == Value::Kind::kInteger) return dangerous(value.integer);
  if (value.kind == Value::Kind::kBool) return value.integer == 0;
  bool found = false;
  if (value.kind != Value::Kind::kTensor && value.kind != Value::Kind::kHost) return found;
  RETURN_IF_ERROR(CatchTorch([&] {
    const at::Tensor divisor =
        value.kind == Value::Kind::kHost ? value.host : memory.View(value.tensor);
    if (!at::isIntegralType(divisor.scalar_type(), /*includeBool=*/true)) return;
    const at::Tensor wide = divisor.to(at::kLong);
    found = wide.eq(0).logical_or(wide.eq(-1)).any().item<bool>();
  }));
  return found;
}

bool IsDivision(absl::string_view name) {
  return name == "div" || name == "floor_divide" || name == "remainder" || name == "fmod";
}

// Whether the result of a factory may have an integer type.
bool MayBeInteger(const BoundCall& bound) {
  if (const Value* const out = bound.Find("out")) {
    return out->kind != Value::Kind::kTensor || at::isIntegralType(out->tensor.dtype, true);
  }
  const Value* const dtype = bound.Find("dtype");
  if (dtype != nullptr && dtype->kind == Value::Kind::kDType) {
    return at::isIntegralType(static_cast<at::ScalarType>(dtype->integer), true);
  }
  return std::none_of(bound.values.begin(), bound.values.end(), [](const Value* value) {
    return value != nullptr && value->kind == Value::Kind::kFloat;
  });
}

absl::string_view WithoutUnderscore(absl::string_view name) {
  if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') name.remove_suffix(1);
  return name;
}

absl::Status CheckDivision(const BoundCall& bound, StorageTable& memory) {
  if (!IsDivision(WithoutUnderscore(bound.call->name))) return absl::OkStatus();
  for (const TensorRef* tensor : bound.tensors) {
    if (!at::isIntegralType(tensor->dtype, true)) return absl::OkStatus();
  }
  const Value* const other = bound.Find("other");
  if (other == nullptr) return absl::OkStatus();
  if (WithoutUnderscore(bound.call->name) == "div" && bound.Find("rounding_mode") == nullptr) {
    return absl::OkStatus();  // in floats
  }
  ASSIGN_OR_RETURN(const bool dangerous, IsDangerousDivisor(*other, memory));
  if (!dangerous) return absl::OkStatus();
  return absl::InvalidArgumentError("ZeroDivisionError: an integer division by 0 or -1");
}

// torch converts the ends and the step of a range to its type, and divides.
absl::Status CheckRange(const BoundCall& bound) {
  if (bound.call->name != "arange" && bound.call->name != "range") return absl::OkStatus();
  constexpr double kMost = 1LL << 52;
  for (const char* const name : {"start", "end", "step"}) {
    const Value* const value = bound.Find(name);
    if (value == nullptr) continue;
    const double number =
        value->kind == Value::Kind::kFloat ? value->number : static_cast<double>(value->integer);
    if (value->kind == Value::Kind::kComplex || value->is_unsigned || !(std::abs(number) < kMost)) {
      return absl::InvalidArgumentError("a range of numbers that are too large");
    }
    if (absl::string_view(name) == "step" && std::abs(number) < 1 && MayBeInteger(bound)) {
      return absl::InvalidArgumentError("step must be nonzero");
    }
  }
  return absl::OkStatus();
}

// The kernel trusts that g has an element for each place of the axis.
absl::Status CheckWeightNorm(const BoundCall& bound) {
  if (bound.call->name != "_weight_norm_interface") return absl::OkStatus();
  const Value* const v = bound.Find("v");
  const Value* const g = bound.Find("g");
  const Value* const dim = bound.Find("dim");
  if (v == nullptr || g == nullptr || v->kind != Value::Kind::kTensor ||
      g->kind != Value::Kind::kTensor) {
    return absl::InvalidArgumentError("a weight norm needs two tensors");
  }
  const auto rank = static_cast<int64_t>(v->tensor.shape.size());
  const int64_t axis = dim == nullptr ? 0 : dim->integer;
  if (axis < 0 || axis >= rank || g->tensor.elements() != v->tensor.shape[axis] ||
      g->tensor.dtype != v->tensor.dtype) {
    return absl::InvalidArgumentError("a weight norm of tensors that do not fit");
  }
  return absl::OkStatus();
}

// Bytes of factories whose size torch does not tell.
double FactoryBytes(const BoundCall& bound) {
  const auto number = [&](const char* name) {
    const Value* const value = bound.Find(name);
    return value != nullptr && value->kind == Value::Kind::kInteger
               ? std::abs(static_cast<double>(value->integer))
               : 0.0;
  };
  return 16 * std::max(number("n"), number("row") * number("col"));
}

}  // namespace

bool IsInitOperator(absl::string_view name) {
  return Names().contains(name) || Names().contains(WithoutUnderscore(name));
}

std::vector<std::string> InitOperators() { return absl::StrSplit(kNames, ' ', absl::SkipEmpty()); }

absl::Status CheckNeverRun(const BoundCall& bound) {
  const std::string& name = bound.call->name;
  const bool known = IsInitOperator(name) || TreatmentOf(*bound.call) != Treatment::kOther;
  const bool never = name == "from_file" || name == "set_" || name == "record_stream" ||
                     name == "resize_" || (name.rfind('_', 0) == 0 && !known);
  if (!never) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("aten::", name, " is never run"));
}

absl::Status CheckSize(const BoundCall& bound, int64_t bytes_left) {
  if (bound.in_place() && !bound.has_out()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::optional<int64_t> bytes, ReturnedBytes(bound));
  if (!bytes.has_value()) {
    // Of nonzero and the like, whose results are no larger than an index of each element.
    size_t rank = 1;
    for (const TensorRef* tensor : bound.tensors) rank = std::max(rank, tensor->shape.size());
    bytes = bound.most_elements() * 16 * static_cast<int64_t>(rank);
    if (FactoryBytes(bound) > static_cast<double>(bytes_left)) bytes = INT64_MAX;
  }
  if (*bytes <= bytes_left) return absl::OkStatus();
  return absl::ResourceExhaustedError("CUDA out of memory.");
}

absl::Status CheckTraps(const BoundCall& bound, StorageTable& memory) {
  RETURN_IF_ERROR(CheckRange(bound));
  RETURN_IF_ERROR(CheckWeightNorm(bound));
  return CheckDivision(bound, memory);
}

absl::Status CheckInit(const BoundCall& bound, StorageTable& memory, int64_t bytes_left) {
  RETURN_IF_ERROR(CheckNeverRun(bound));
  const Treatment treatment = TreatmentOf(*bound.call);
  if (treatment == Treatment::kOther && !IsInitOperator(bound.call->name)) {
    return absl::PermissionDeniedError(
        absl::StrCat("aten::", bound.call->name, " is not an operator of constructors"));
  }
  RETURN_IF_ERROR(CheckTraps(bound, memory));
  return treatment == Treatment::kAllocate ? absl::OkStatus() : CheckSize(bound, bytes_left);
}

}  // namespace tritonrl::device
