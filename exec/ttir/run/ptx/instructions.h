// Single PTX instructions.
#ifndef TRITONRL_EXEC_TTIR_RUN_PTX_INSTRUCTIONS_H_
#define TRITONRL_EXEC_TTIR_RUN_PTX_INSTRUCTIONS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tritonrl::ttir::ptx {

// As in the names of types: b32, u32, s32, f32, bf16, e4m3, e5m2, tf32, pred.
enum class Kind : uint8_t {
  kBits,
  kUnsigned,
  kSigned,
  kFloat,
  kBFloat,
  kE4M3,
  kE5M2,
  kTf32,
  kPred
};

struct Type {
  Kind kind = Kind::kBits;
  int bits = 32;         // of one number
  bool is_pair = false;  // f16x2 and the like

  bool is_float() const { return kind >= Kind::kFloat && kind <= Kind::kTf32; }
  int width() const { return is_pair ? 2 * bits : bits; }
};

std::optional<Type> ParseType(absl::string_view name);

enum class Rounding : uint8_t { kNearest, kToZero, kDown, kUp, kNearestAway };

struct Instruction;
// The result's bits of those of the operands; those above the type's do not matter.
using Function = uint64_t (*)(const Instruction& self, const uint64_t* in);

using FloatFunction = double (*)(double a, double b, double c);

struct Instruction {
  Function run = nullptr;
  FloatFunction number = nullptr;  // what `run` computes of floats
  Type type;                       // of the operands; cvt: of the result
  Type from;                       // cvt: of the operand
  Rounding rounding = Rounding::kNearest;
  bool integral = false;  // cvt: rounds to an integral number
  bool flushes = false;   // .ftz
  bool saturates = false;
  bool relu = false;
  bool keeps_nan = false;  // .NaN
  int number_of_bits = 0;  // setp: the relations; mov of a vector: a shift
  // Registers. Register 0 is true.
  uint64_t out_mask = 0;
  uint16_t out = 0;
  uint16_t in[4] = {};
  uint8_t inputs = 0;
  uint16_t predicate = 0;
  bool is_negated = false;
};

// What a name with its modifiers does, as of "fma.rn.f32". `shape` describes the result and the
// operands: t has the bits of the type, 2 twice as many, w 32, f those of `from`, p is a predicate.
struct Meaning {
  Instruction instruction;
  absl::string_view shape;
};
std::optional<Meaning> MeaningOf(absl::string_view name);

// conversions.cc
inline uint64_t MaskOf(int bits) {
  return bits >= 64 ? ~uint64_t{0} : bits <= 0 ? 0 : (uint64_t{1} << bits) - 1;
}
// An integer of the type, with its sign if the type has one.
int64_t Integer(const Type& type, uint64_t bits);
double Decode(const Type& type, uint64_t bits);
// The number of the type that is next to `value`. NaN has all bits set but the sign.
uint64_t Encode(const Type& type, double value, Rounding rounding);
double Flush(double x);  // a subnormal number of f32 to 0
// a * b + c, of which a * b is exact, rounded to odd: another rounding gives what one alone would.
double OddMultiplyAdd(double a, double b, double c);
// Whether there is such a conversion on sm_90; `rounds`: a modifier says how.
bool IsConversion(const Instruction& cvt, bool rounds);
uint64_t Convert(const Instruction& self, const uint64_t* in);

}  // namespace tritonrl::ttir::ptx

#endif  // TRITONRL_EXEC_TTIR_RUN_PTX_INSTRUCTIONS_H_
