// Floats have 64 bits in between, at least twice as many as f32 and two more, so that a sum,
// product, quotient or root is rounded once.
#include "exec/ttir/run/ptx/functions.h"

#include <algorithm>
#include <cmath>

namespace tritonrl::ttir::ptx {

namespace {

int64_t First(Self self, In in) { return Integer(self.type, in[0]); }
int64_t Second(Self self, In in) { return Integer(self.type, in[1]); }

}  // namespace

double Largest(double a, double b) {
  if (a != a || b != b) return a != a ? b : a;
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}

uint64_t Float(Self self, In in) {
  return ForEach(self, in, [&](In x) {
    double values[3] = {};
    bool has_nan = false;
    for (int i = 0; i < self.inputs; ++i) {
      values[i] = Decode(self.type, x[i]);
      has_nan = has_nan || values[i] != values[i];
      if (self.flushes) values[i] = Flush(values[i]);
    }
    double result = self.number(values[0], values[1], values[2]);
    if (self.keeps_nan && has_nan) result = NAN;
    const uint64_t bits = Encode(self.type, result, Rounding::kNearest);
    return self.flushes ? Encode(self.type, Flush(Decode(self.type, bits)), Rounding::kNearest)
                        : bits;
  });
}

FloatFunction MultiplyAddOf(const Type& type) {
  if (type.bits == 16) return OddMultiplyAdd;
  if (type.bits == 64) return [](double a, double b, double c) { return std::fma(a, b, c); };
  return [](double a, double b, double c) -> double {
    return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
  };
}

bool IsLess(Self self, In in) {
  return IsSigned(self) ? First(self, in) < Second(self, in) : in[0] < in[1];
}

uint64_t HighProduct(Self self, In in) {
  const __int128 a = First(self, in);
  const __int128 b = Second(self, in);
  if (IsSigned(self)) return static_cast<uint64_t>(a * b >> self.type.bits);
  return static_cast<uint64_t>(static_cast<unsigned __int128>(in[0]) * in[1] >> self.type.bits);
}

uint64_t WideProduct(Self self, In in) {
  return static_cast<uint64_t>(First(self, in)) * static_cast<uint64_t>(Second(self, in));
}

uint64_t ShiftLeft(Self self, In in) {
  return in[1] < static_cast<uint64_t>(self.type.bits) ? in[0] << in[1] : 0;
}

uint64_t ShiftRight(Self self, In in) {
  const uint64_t shift = std::min<uint64_t>(in[1], 63);
  const int64_t shifted = First(self, in) >> shift;
  const bool is_out = in[1] >= static_cast<uint64_t>(self.type.bits);
  return is_out && !IsSigned(self) ? 0
         : IsSigned(self)          ? static_cast<uint64_t>(shifted)
                                   : in[0] >> shift;
}

// The bits of the last operand: which combinations of bits of the others give 1.
uint64_t Lookup(Self /*self*/, In in) {
  uint64_t result = 0;
  for (int i = 0; i < 8; ++i) {
    if ((in[3] >> i & 1) == 0) continue;
    result |= ((i & 4) != 0 ? in[0] : ~in[0]) & ((i & 2) != 0 ? in[1] : ~in[1]) &
              ((i & 1) != 0 ? in[2] : ~in[2]);
  }
  return result;
}

uint64_t PermuteBytes(Self /*self*/, In in) {
  const uint64_t both = in[0] | in[1] << 32;
  uint64_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t selector = in[2] >> (4 * i);
    uint64_t byte = both >> (8 * (selector & 7)) & 0xFF;
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// Bits [in[1], in[1] + in[2]), below copies of the sign: the last of them, or the number's.
uint64_t ExtractField(Self self, In in) {
  const auto first = static_cast<int>(in[1] & 0xFF);
  const auto count = static_cast<int>(in[2] & 0xFF);
  if (count == 0) return 0;
  const uint64_t field = (first < 64 ? in[0] >> first : 0) & MaskOf(count);
  if (!IsSigned(self)) return field;
  const int last = std::min(first + count - 1, self.type.bits - 1);
  const bool is_negative = (in[0] >> last & 1) != 0;
  const int kept = std::clamp(self.type.bits - first, 0, count);
  return is_negative ? field | ~MaskOf(kept) : field;
}

uint64_t InsertField(Self /*self*/, In in) {
  const uint64_t first = in[2] & 0xFF;
  if (first >= 64) return in[1];
  const uint64_t field = MaskOf(static_cast<int>(in[3] & 0xFF)) << first;
  return (in[1] & ~field) | (in[0] << first & field);
}

uint64_t FunnelLeft(Self self, In in) {
  const uint64_t shift = self.saturates ? std::min<uint64_t>(in[2], 32) : in[2] & 31;
  return (in[1] << 32 | in[0]) << shift >> 32;
}
uint64_t FunnelRight(Self self, In in) {
  const uint64_t shift = self.saturates ? std::min<uint64_t>(in[2], 32) : in[2] & 31;
  return (in[1] << 32 | in[0]) >> shift;
}

uint64_t Compare(Self self, In in) {
  int relation = IsLess(self, in) ? kLess : in[0] == in[1] ? kEqual : kGreater;
  if (self.type.is_float()) {
    const double a = self.flushes ? Flush(Decode(self.type, in[0])) : Decode(self.type, in[0]);
    const double b = self.flushes ? Flush(Decode(self.type, in[1])) : Decode(self.type, in[1]);
    relation = a < b ? kLess : a == b ? kEqual : a > b ? kGreater : kUnordered;
  }
  return (self.number_of_bits & relation) != 0 ? 1 : 0;
}

}  // namespace tritonrl::ttir::ptx
