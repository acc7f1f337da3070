#include "exec/device/cuda/launch_parameters.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <string.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl::device {
namespace {

using ttir::ScalarKind;
using ttir::Type;

absl::Status DoNotFit() {
  return absl::InvalidArgumentError("the arguments do not fit the kernel's parameters");
}

template <typename T>
uint64_t BitsOf(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(value));
  return bits;
}

uint64_t FloatBits(double number, ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kF16:
      return c10::Half(static_cast<float>(number)).x;
    case ScalarKind::kBF16:
      // As Triton's own launcher: the upper half of the float.
      return BitsOf(static_cast<float>(number)) >> 16;
    case ScalarKind::kF64:
      return BitsOf(number);
    default:
      return BitsOf(static_cast<float>(number));
  }
}

// Triton numbers types in another order than the driver.
CUtensorMapDataType DataType(int type) {
  if (type == 8) return static_cast<CUtensorMapDataType>(10);
  if (type == 9) return static_cast<CUtensorMapDataType>(8);
  if (type == 10) return static_cast<CUtensorMapDataType>(9);
  return static_cast<CUtensorMapDataType>(type);
}

bool IsInteger(const LaunchArgument& argument) {
  return argument.kind == LaunchArgument::Kind::kInteger;
}

}  // namespace

void LaunchParameters::AddWord(uint64_t word) { pointers_.push_back(&words_.emplace_back(word)); }

absl::Status LaunchParameters::AddScalar(const Type& type, const LaunchArgument& argument) {
  if (!type.is_scalar()) return DoNotFit();
  if (type.is_pointer()) {
    // An integer is an address: the kernel may form it anyway.
    if (argument.kind == LaunchArgument::Kind::kFloat) return DoNotFit();
    AddWord(IsInteger(argument) ? static_cast<uint64_t>(argument.integer)
                                : reinterpret_cast<uint64_t>(argument.data));
    return absl::OkStatus();
  }
  if (argument.kind == LaunchArgument::Kind::kPointer) return DoNotFit();
  if (type.is_float()) {
    const double number =
        IsInteger(argument) ? static_cast<double>(argument.integer) : argument.number;
    AddWord(FloatBits(number, type.element()));
    return absl::OkStatus();
  }
  if (!IsInteger(argument)) return DoNotFit();
  AddWord(static_cast<uint64_t>(argument.integer));
  return absl::OkStatus();
}

absl::Status LaunchParameters::AddDescriptor(const Type& type,
                                             absl::Span<const LaunchArgument> arguments,
                                             const TensorMapPlan& plan) {
  const auto rank = static_cast<size_t>(type.rank());
  if (rank < 1 || rank > 5 || plan.block.size() != rank || arguments.size() < 2 * rank + 2 ||
      arguments[0].kind != LaunchArgument::Kind::kPointer) {
    return DoNotFit();
  }
  for (size_t i = 1; i < 2 * rank + 2; ++i) {
    if (!IsInteger(arguments[i])) return DoNotFit();
  }
  // The driver counts dimensions from the innermost one.
  cuuint64_t sizes[5] = {};
  cuuint64_t strides[5] = {};  // bytes, without the innermost
  cuuint32_t block[5] = {};
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  for (size_t i = 0; i < rank; ++i) {
    sizes[rank - 1 - i] = static_cast<cuuint64_t>(arguments[1 + i].integer);
    block[rank - 1 - i] = plan.block[i];
    if (i + 1 < rank) {
      strides[rank - 2 - i] =
          static_cast<cuuint64_t>(plan.element_bytes * arguments[1 + rank + i].integer);
    }
  }
  if (arguments[2 * rank].integer != 1) return DoNotFit();  // Triton's rule
  if (plan.fp4_padded) sizes[0] *= 2;
  const bool nan = arguments[2 * rank + 1].integer != 0;
  CUtensorMap& map = maps_.emplace_back();
  const CUresult result = driver_.cuTensorMapEncodeTiled(
      &map, DataType(plan.element_type), static_cast<cuuint32_t>(rank), arguments[0].data, sizes,
      strides, block, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      static_cast<CUtensorMapSwizzle>(plan.swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat("an illegal tensor descriptor: ", driver_.ErrorText(result)));
  }
  pointers_.push_back(&map);
  return absl::OkStatus();
}

absl::Status LaunchParameters::Add(absl::Span<const Type> types,
                                   absl::Span<const LaunchArgument> arguments,
                                   absl::Span<const TensorMapPlan> plans) {
  size_t next = 0;
  size_t plan = 0;
  for (const Type& type : types) {
    if (next >= arguments.size()) return DoNotFit();
    if (type.is_descriptor()) {
      if (plan >= plans.size()) return DoNotFit();
      RETURN_IF_ERROR(AddDescriptor(type, arguments.subspan(next), plans[plan++]));
      next += static_cast<size_t>(2 * type.rank() + 2);
    } else {
      RETURN_IF_ERROR(AddScalar(type, arguments[next++]));
    }
  }
  return next == arguments.size() ? absl::OkStatus() : DoNotFit();
}

}  // namespace tritonrl::device
