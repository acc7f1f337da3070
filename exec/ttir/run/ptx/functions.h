// What instructions compute of the bits of their operands, as Instruction::run.
#ifndef TRITONRL_EXEC_TTIR_RUN_PTX_FUNCTIONS_H_
#define TRITONRL_EXEC_TTIR_RUN_PTX_FUNCTIONS_H_

#include <cstdint>

#include "exec/ttir/run/ptx/instructions.h"

namespace tritonrl::ttir::ptx {

using Self = const Instruction&;
using In = const uint64_t*;

// -0 is less than 0. Of a number and NaN the number is taken.
double Largest(double a, double b);

// One number, or each of two.
template <typename Body>
inline uint64_t ForEach(Self self, In in, Body body) {
  const Type& type = self.type;
  if (!type.is_pair) return body(in);
  uint64_t result = 0;
  for (int shift = 0; shift < type.width(); shift += type.bits) {
    uint64_t values[3];
    for (int i = 0; i < self.inputs; ++i) values[i] = in[i] >> shift & MaskOf(type.bits);
    result |= (body(values) & MaskOf(type.bits)) << shift;
  }
  return result;
}

inline uint64_t SignOf(Self self) { return uint64_t{1} << (self.type.bits - 1); }
inline bool IsSigned(Self self) { return self.type.kind == Kind::kSigned; }
bool IsLess(Self self, In in);  // of integers

uint64_t Float(Self self, In in);  // Instruction::number
FloatFunction MultiplyAddOf(const Type& type);
uint64_t HighProduct(Self self, In in);
uint64_t WideProduct(Self self, In in);
uint64_t ShiftLeft(Self self, In in);
uint64_t ShiftRight(Self self, In in);
uint64_t Lookup(Self self, In in);        // lop3
uint64_t PermuteBytes(Self self, In in);  // prmt
uint64_t ExtractField(Self self, In in);
uint64_t InsertField(Self self, In in);
uint64_t FunnelLeft(Self self, In in);
uint64_t FunnelRight(Self self, In in);

// Of Instruction::number_of_bits, for which the comparison holds.
enum Relation { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

uint64_t Compare(Self self, In in);

}  // namespace tritonrl::ttir::ptx

#endif  // TRITONRL_EXEC_TTIR_RUN_PTX_FUNCTIONS_H_
