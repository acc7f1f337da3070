// The tables of the instruction sets, and what each of them is made of.
#ifndef TRITONRL_EXEC_TTIR_RUN_KERNELS_SETS_H_
#define TRITONRL_EXEC_TTIR_RUN_KERNELS_SETS_H_

#include "exec/ttir/run/kernels/kernels.h"

namespace tritonrl::ttir {

namespace avx512_set {
const KernelSet& Kernels();
}  // namespace avx512_set
namespace avx2_set {
const KernelSet& Kernels();
}  // namespace avx2_set
namespace sse2_set {
const KernelSet& Kernels();
}  // namespace sse2_set

// Compiler option of the kernels' libraries.
#ifdef TRITONRL_TTIR_SET

namespace TRITONRL_TTIR_SET {

// Of the set's widest registers.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

Unary FindIntegerUnary(Opcode opcode, Lane lane);
Binary FindIntegerBinary(Opcode opcode, Lane lane, int form);
Binary FindIntegerCompare(IntPredicate predicate, Lane lane, int form);
Ternary FindSelect(Lane lane, int form);

Unary FindFloatUnary(Opcode opcode, Lane lane);
Binary FindFloatBinary(Opcode opcode, Lane lane, int form);
Ternary FindFloatTernary(Opcode opcode, Lane lane, int form);
Binary FindFloatCompare(FloatPredicate predicate, Lane lane, int form);
Unary FindFloatTest(Opcode opcode, Lane lane);
Binary FindFloatPower(Lane lane, Lane exponent);
void ClampFloats(void* out, const void* x, const void* low, const void* high, int64_t count);
void ClampDoubles(void* out, const void* x, const void* low, const void* high, int64_t count);

Unary FindMath(Opcode opcode, Lane lane);
Binary FindBinaryMath(Opcode opcode, Lane lane, int form);

Unary FindLibraryUnary(LibraryFunction function, Lane lane);
Binary FindLibraryBinary(LibraryFunction function, Lane lane, int form);

Unary FindWiden(Lane from, Lane to, bool is_signed);
Unary FindToFloat(Lane from, Lane to, bool is_signed);
Unary FindToOddFloat(Lane from, bool is_signed);
void NarrowTowardZero(void* out, const void* a, int64_t count);
Unary FindToInteger(Lane from, Lane to, bool is_signed);

Unary FindRound(ScalarKind kind, bool toward_zero);
Unary FindDecode(ScalarKind kind);
Unary FindEncode(ScalarKind kind);
void TruncateTf32(float* out, const float* a, int64_t count);

void AddPointer(Lane offset, int form, int64_t* out, const int64_t* base, const void* offsets,
                int64_t bytes, int64_t count);
bool IsSequence(const int64_t* pointers, int64_t stride, int64_t count);
PointerRange RangeOf(const int64_t* pointers, const uint8_t* mask, int64_t count);
void Gather(int bytes, void* out, const int64_t* pointers, const uint8_t* mask, int64_t count);
void Scatter(int bytes, const int64_t* pointers, const void* values, const uint8_t* mask,
             int64_t count);

CopyRows FindCopyRows(int bytes);
DotKernel FindDot(Lane operand, Lane accumulator);
void DotFp8(float* c, const float* a, const float* b, const Fp8DotShape& fp8);

}  // namespace TRITONRL_TTIR_SET

#endif  // TRITONRL_TTIR_SET

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_KERNELS_SETS_H_
