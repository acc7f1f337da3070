// Types of PTX, their numbers, and cvt.
#include <algorithm>
#include <bit>
#include <cmath>

#include "exec/ttir/run/kernels/number_formats.h"
#include "exec/ttir/run/ptx/instructions.h"

namespace tritonrl::ttir::ptx {

namespace {

struct NamedType {
  absl::string_view name;
  Type type;
};

constexpr NamedType kTypes[] = {
    {"pred", {Kind::kPred, 1, false}},     {"f16", {Kind::kFloat, 16, false}},
    {"f32", {Kind::kFloat, 32, false}},    {"f64", {Kind::kFloat, 64, false}},
    {"bf16", {Kind::kBFloat, 16, false}},  {"f16x2", {Kind::kFloat, 16, true}},
    {"bf16x2", {Kind::kBFloat, 16, true}}, {"e4m3x2", {Kind::kE4M3, 8, true}},
    {"e5m2x2", {Kind::kE5M2, 8, true}},    {"tf32", {Kind::kTf32, 32, false}},
    {"b8", {Kind::kBits, 8, false}},       {"b16", {Kind::kBits, 16, false}},
    {"b32", {Kind::kBits, 32, false}},     {"b64", {Kind::kBits, 64, false}},
    {"u8", {Kind::kUnsigned, 8, false}},   {"u16", {Kind::kUnsigned, 16, false}},
    {"u32", {Kind::kUnsigned, 32, false}}, {"u64", {Kind::kUnsigned, 64, false}},
    {"s8", {Kind::kSigned, 8, false}},     {"s16", {Kind::kSigned, 16, false}},
    {"s32", {Kind::kSigned, 32, false}},   {"s64", {Kind::kSigned, 64, false}},
};

SmallFormat FormatOf(const Type& type) {
  if (type.kind == Kind::kE4M3) return SmallFormatOf(ScalarKind::kF8E4M3FN);
  return SmallFormatOf(type.kind == Kind::kE5M2 ? ScalarKind::kF8E5M2 : ScalarKind::kF16);
}

// Rounded to odd.
float OddFloat(double x) {
  const auto nearest = static_cast<float>(x);
  if (nearest == x || x != x) return nearest;
  const auto bits = std::bit_cast<uint32_t>(nearest);
  return std::bit_cast<float>((std::fabs(nearest) > std::fabs(x) ? bits - 1 : bits) | 1);
}

double Integral(double x, Rounding rounding) {
  if (rounding == Rounding::kToZero) return std::trunc(x);
  if (rounding == Rounding::kDown) return std::floor(x);
  return rounding == Rounding::kUp ? std::ceil(x) : std::nearbyint(x);
}

// Numbers out of range become the least and the largest ones.
uint64_t ToInteger(const Instruction& self, double x) {
  const Type& type = self.type;
  const bool is_signed = type.kind == Kind::kSigned;
  const uint64_t least = is_signed ? uint64_t{1} << (type.bits - 1) : 0;
  if (x != x) return self.from.bits == 64 || type.bits == 64 ? uint64_t{1} << (type.bits - 1) : 0;
  const double whole = Integral(x, self.rounding);
  const double end = std::ldexp(1.0, is_signed ? type.bits - 1 : type.bits);
  if (whole >= end) return MaskOf(is_signed ? type.bits - 1 : type.bits);
  if (whole < (is_signed ? -end : 0)) return least;
  return whole < 0 ? static_cast<uint64_t>(static_cast<int64_t>(whole))
                   : static_cast<uint64_t>(whole);
}

// From integers; `is_big`: it has no sign, and 64 bits.
uint64_t FromInteger(const Instruction& self, int64_t whole, bool is_big) {
  const Type& to = self.type;
  const auto bits = static_cast<uint64_t>(whole);
  if (to.is_float()) {
    if (to.bits == 64) {
      return std::bit_cast<uint64_t>(is_big ? static_cast<double>(bits)
                                            : static_cast<double>(whole));
    }
    if (to.bits == 32) {
      return std::bit_cast<uint32_t>(is_big ? static_cast<float>(bits) : static_cast<float>(whole));
    }
    return Encode(to, is_big ? 0x1p63 : static_cast<double>(whole), self.rounding);
  }
  if (!self.saturates) return bits;
  const bool is_signed = to.kind == Kind::kSigned;
  const uint64_t most = MaskOf(is_signed ? to.bits - 1 : to.bits);
  if (is_big || whole >= 0) return std::min(bits, most);
  return is_signed ? static_cast<uint64_t>(std::max(whole, -static_cast<int64_t>(most) - 1)) : 0;
}

uint64_t ConvertOne(const Instruction& self, uint64_t bits) {
  const Type& to = self.type;
  if (!self.from.is_float()) {
    const int64_t whole = Integer(self.from, bits);
    return FromInteger(self, whole, whole < 0 && self.from.kind != Kind::kSigned);
  }
  double value = Decode(self.from, bits);
  if (self.flushes) value = Flush(value);
  if (!to.is_float()) return ToInteger(self, value);
  if (self.integral) value = Integral(value, self.rounding);
  if (self.relu && value < 0) value = 0;
  const uint64_t result = Encode(to, value, self.integral ? Rounding::kNearest : self.rounding);
  if (!self.flushes || to.bits != 32) return result;
  return Encode(to, Flush(Decode(to, result)), Rounding::kNearest);
}

}  // namespace

std::optional<Type> ParseType(absl::string_view name) {
  for (const NamedType& named : kTypes) {
    if (named.name == name) return named.type;
  }
  return std::nullopt;
}

int64_t Integer(const Type& type, uint64_t bits) {
  const int above = 64 - type.bits;
  const uint64_t shifted = bits << above;
  return type.kind == Kind::kSigned ? static_cast<int64_t>(shifted) >> above
                                    : static_cast<int64_t>(shifted >> above);
}

double Flush(double x) { return std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; }

double OddMultiplyAdd(double a, double b, double c) {
  const double product = a * b;
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (c - part);
  if (error == 0) return sum;
  const auto bits = std::bit_cast<uint64_t>(sum);
  const bool is_less = std::signbit(error) == std::signbit(sum);
  return std::bit_cast<double>((is_less ? bits : bits - 1) | 1);
}

double Decode(const Type& type, uint64_t bits) {
  if (type.bits == 64) return std::bit_cast<double>(bits);
  const auto word = static_cast<uint32_t>(bits & MaskOf(type.bits));
  if (type.kind == Kind::kBFloat) return std::bit_cast<float>(word << 16);
  return type.bits == 32 ? std::bit_cast<float>(word) : DecodeSmallFloat(word, FormatOf(type));
}

uint64_t Encode(const Type& type, double value, Rounding rounding) {
  if (type.bits == 64) return std::bit_cast<uint64_t>(value);
  if (value != value) return MaskOf(type.bits - 1);
  const bool to_zero = rounding == Rounding::kToZero;
  const float odd = OddFloat(value);
  const auto bits = std::bit_cast<uint32_t>(odd);
  if (type.kind == Kind::kTf32) {
    if (std::isinf(odd)) return bits;
    const bool is_away = rounding == Rounding::kNearestAway;
    return (bits + (is_away ? 0x1000 : 0xFFF + (bits >> 13 & 1))) & ~0x1FFFu;
  }
  if (type.bits == 32) {
    const auto nearest = static_cast<float>(value);
    const bool is_over = to_zero && std::fabs(nearest) > std::fabs(value);
    return std::bit_cast<uint32_t>(nearest) - (is_over ? 1 : 0);
  }
  if (type.kind != Kind::kBFloat) return EncodeSmallFloat(odd, FormatOf(type), to_zero);
  return std::bit_cast<uint32_t>(to_zero ? TruncateToBfloat(odd) : RoundToBfloat(odd)) >> 16;
}

bool IsConversion(const Instruction& cvt, bool rounds) {
  const Type& to = cvt.type;
  const Type& from = cvt.from;
  const auto is_number = [](const Type& t) {
    return t.kind != Kind::kBits && t.kind != Kind::kPred;
  };
  if (!is_number(to) || !is_number(from) || from.kind == Kind::kTf32) return false;
  const bool nearest = rounds && !cvt.integral && cvt.rounding == Rounding::kNearest;
  if (to.kind == Kind::kTf32) {
    const bool is_away = rounds && cvt.rounding == Rounding::kNearestAway;
    return from.kind == Kind::kFloat && from.bits == 32 && (nearest || is_away) && !cvt.saturates;
  }
  if (cvt.rounding == Rounding::kNearestAway) return false;
  if (!from.is_float() && !to.is_float()) return !rounds && !cvt.relu && !cvt.flushes;
  if (!from.is_float() || !to.is_float()) {
    if ((from.is_float() ? from : to).kind != Kind::kFloat || from.is_pair || to.is_pair)
      return false;
    return from.is_float() ? cvt.integral && !cvt.relu : nearest && !cvt.saturates && !cvt.relu;
  }
  if (to.bits == 8)
    return nearest && cvt.saturates && from.kind == Kind::kFloat &&
           (from.is_pair || from.bits == 32);
  if (from.bits == 8)
    return nearest && !cvt.saturates && to.kind == Kind::kFloat && to.bits == 16 && to.is_pair;
  if (from.is_pair || cvt.saturates || (cvt.relu && to.bits != 16)) return false;
  if (to.is_pair) return from.bits == 32 && rounds && !cvt.integral;
  if (cvt.integral) return to.bits == from.bits && to.kind == from.kind;
  return to.bits < from.bits ? rounds : to.bits > from.bits && !rounds;
}

// A pair is made of a pair, or of two numbers, the first of which becomes its high half.
uint64_t Convert(const Instruction& self, const uint64_t* in) {
  if (!self.type.is_pair) return ConvertOne(self, in[0]);
  const uint64_t high = self.from.is_pair ? in[0] >> self.from.bits : in[0];
  const uint64_t low = self.from.is_pair ? in[0] : in[1];
  return ConvertOne(self, high) << self.type.bits |
         (ConvertOne(self, low) & MaskOf(self.type.bits));
}

}  // namespace tritonrl::ttir::ptx
