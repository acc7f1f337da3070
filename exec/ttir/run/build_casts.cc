// Constants, conversions and bit casts.
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/copy_steps.h"
#include "exec/ttir/run/kernels/number_formats.h"

namespace tritonrl::ttir {

namespace {

struct ConstantData : StepData {
  std::vector<std::byte> bytes;
};

bool RunConstant(const Step& step, Program& program) {
  const std::vector<std::byte>& bytes = static_cast<const ConstantData&>(*step.data).bytes;
  std::memcpy(program.At<std::byte>(step.out[0]), bytes.data(), bytes.size());
  return true;
}

bool IsSmallFloat(ScalarKind kind) {
  return IsFloat(kind) && kind != ScalarKind::kF32 && kind != ScalarKind::kF64;
}

// The bits of the lane that holds a number whose bits in memory are `bits`.
uint64_t LaneBits(uint64_t bits, ScalarKind kind) {
  if (!IsSmallFloat(kind)) return bits;
  if (kind == ScalarKind::kBF16) return bits << 16;
  return std::bit_cast<uint32_t>(
      DecodeSmallFloat(static_cast<uint32_t>(bits), SmallFormatOf(kind)));
}

// Whether all numbers of the first format are numbers of the second.
bool Contains(ScalarKind to, ScalarKind from) {
  const bool byte = BitWidth(from) == 8;
  return to == from || to == ScalarKind::kF32 || (byte && to == ScalarKind::kBF16) ||
         (byte && to == ScalarKind::kF16);
}

}  // namespace

absl::Status Builder::BuildConstant(const Operation& operation) {
  const Type& type = TypeOf(operation.results[0]);
  if (!type.is_value()) return NotExecutable(operation);
  const int bytes = LaneBytes(LaneOf(type));
  // A poison value is 0, as nothing depends on it.
  std::vector<uint64_t> bits = {0};
  if (operation.opcode == Opcode::kConstant) {
    bits = module_.constants[operation.attributes.constant].bits;
  }
  auto data = std::make_shared<ConstantData>();
  data->bytes.resize(bits.size() * static_cast<size_t>(bytes));
  for (size_t i = 0; i < bits.size(); ++i) {
    const uint64_t lane = LaneBits(bits[i], type.element());
    std::memcpy(&data->bytes[i * static_cast<size_t>(bytes)], &lane, static_cast<size_t>(bytes));
  }
  const auto size = static_cast<int64_t>(data->bytes.size());
  const bool uniform = bits.size() == 1;
  Step step;
  step.run = RunConstant;
  step.count = static_cast<int64_t>(bits.size());
  step.marking.rule = MarkRule::kClear;
  step.marking.out_bytes = static_cast<uint8_t>(bytes);
  step.data = std::move(data);
  Bind(operation.results[0], {EmitPure(std::move(step), {}, size), uniform, false});
  if (uniform && type.is_integer()) integer_constants_[At(operation.results[0]).buffer] = bits[0];
  return absl::OkStatus();
}

absl::Status Builder::BuildCast(const Operation& operation) {
  switch (InfoOf(operation.opcode).rule) {
    case Rule::kIndexLike:
    case Rule::kWiden:
    case Rule::kNarrow:
    case Rule::kIntToFloat:
    case Rule::kFloatToInt:
      return BuildIntegerCast(operation);
    case Rule::kWidenFloat:
    case Rule::kNarrowFloat:
    case Rule::kFloatCast:
      return BuildFloatCast(operation);
    case Rule::kBitcast:
    case Rule::kPointerBitcast:
      return BuildBitcast(operation);
    default:
      return BuildUnary(operation, StripArgument, nullptr);  // pointers and integers
  }
}

absl::Status Builder::BuildIntegerCast(const Operation& operation) {
  const Type& source = TypeOf(operation.operands[0]);
  const Type& target = TypeOf(operation.results[0]);
  const Lane from = LaneOf(source);
  const Lane to = LaneOf(target);
  const bool is_signed = operation.opcode != Opcode::kExtUI &&
                         operation.opcode != Opcode::kIndexCastUI &&
                         operation.opcode != Opcode::kUIToFP && operation.opcode != Opcode::kFPToUI;
  switch (InfoOf(operation.opcode).rule) {
    case Rule::kFloatToInt:
      return BuildUnary(operation, kernels_.to_integer(from, to, is_signed), nullptr);
    case Rule::kIntToFloat:
      if (IsSmallFloat(target.element())) {
        return BuildUnary(operation, kernels_.to_odd_float(from, is_signed), RoundingOf(target));
      }
      return BuildUnary(operation, kernels_.to_float(from, to, is_signed), nullptr);
    default:
      break;
  }
  if (from == to) {
    Bind(operation.results[0], At(operation.operands[0]));
    return absl::OkStatus();
  }
  return BuildUnary(operation, kernels_.widen(from, to, is_signed), nullptr);
}

absl::Status Builder::BuildFloatCast(const Operation& operation) {
  const ScalarKind from = TypeOf(operation.operands[0]).element();
  const ScalarKind to = TypeOf(operation.results[0]).element();
  const bool toward_zero = operation.attributes.rounding == Rounding::kTowardZero;
  if (from == to || (from != ScalarKind::kF64 && Contains(to, from))) {
    Bind(operation.results[0], At(operation.operands[0]));
    return absl::OkStatus();
  }
  if (to == ScalarKind::kF64) {
    return BuildUnary(operation, kernels_.to_float(Lane::kF32, Lane::kF64, true), nullptr);
  }
  if (from == ScalarKind::kF64) {
    if (to != ScalarKind::kF32) {
      return BuildUnary(operation, kernels_.to_odd_float(Lane::kF64, true),
                        kernels_.round(to, toward_zero));
    }
    if (toward_zero) return BuildUnary(operation, kernels_.narrow_toward_zero, nullptr);
    return BuildUnary(operation, kernels_.to_float(Lane::kF64, Lane::kF32, true), nullptr);
  }
  return BuildUnary(operation, kernels_.round(to, toward_zero), nullptr);
}

absl::Status Builder::BuildBitcast(const Operation& operation) {
  const Type& source = TypeOf(operation.operands[0]);
  const Type& target = TypeOf(operation.results[0]);
  const bool pointer = source.is_pointer();
  const Unary encode =
      pointer || !IsSmallFloat(source.element()) ? nullptr : kernels_.encode(source.element());
  const Unary decode =
      pointer || !IsSmallFloat(target.element()) ? nullptr : kernels_.decode(target.element());
  // Lanes of the same bytes are the same buffer.
  if ((encode == nullptr && decode == nullptr) || source.element() == target.element()) {
    Bind(operation.results[0], At(operation.operands[0]));
    return absl::OkStatus();
  }
  if (encode == nullptr) return BuildUnary(operation, decode, nullptr);
  if (decode == nullptr) return BuildUnary(operation, encode, nullptr);
  const ScalarKind bits = source.bit_width() == 8 ? ScalarKind::kI8 : ScalarKind::kI16;
  const Bound encoded =
      EmitUnary(encode, nullptr, At(operation.operands[0]), source.WithElement(bits));
  Bind(operation.results[0], EmitUnary(decode, nullptr, encoded, target));
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
