// Loops over whole tensors. The same sources are compiled once per instruction set, each into a
// namespace of its own; BestKernels chooses one when the program runs.
#ifndef TRITONRL_EXEC_TTIR_RUN_KERNELS_KERNELS_H_
#define TRITONRL_EXEC_TTIR_RUN_KERNELS_KERNELS_H_

#include <cstdint>

#include "exec/ttir/enums.h"
#include "exec/ttir/opcodes.h"
#include "exec/ttir/types.h"

// The build says which one; this is for tools that see a file without its flags.
#ifndef TRITONRL_TTIR_SET
#define TRITONRL_TTIR_SET sse2_set
#endif

namespace tritonrl::ttir {

// How a buffer holds an element. f16, bf16 and fp8 are floats that hold only numbers of their
// format: a dot product and a reduction then need no conversion, one set of loops serves all
// formats, and float arithmetic with one rounding behind it is exact for + - * / sqrt, as a float
// has more than twice as many mantissa bits. Pointers are kI64.
enum class Lane : uint8_t { kBool, kI8, kI16, kI32, kI64, kF32, kF64 };

Lane LaneOf(const Type& type);
int LaneBytes(Lane lane);

// `count` elements each. The result may be the same buffer as an operand, but not overlap it.
using Unary = void (*)(void* out, const void* a, int64_t count);
using Binary = void (*)(void* out, const void* a, const void* b, int64_t count);
using Ternary = void (*)(void* out, const void* a, const void* b, const void* c, int64_t count);

// The form of a binary or ternary kernel: operands with one element for all.
enum Form : int { kFirstUniform = 1, kSecondUniform = 2, kThirdUniform = 4 };

// c[m][n] += a[m][k] * b[k][n], each row-major. The products of an element are added to c one after
// another, in the order of k.
struct DotShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};
using DotKernel = void (*)(void* c, const void* a, const void* b, const DotShape& shape);

// The part [begin, end) of k, which are multiples of 32, of a dot of fp8 numbers on sm_90.
struct Fp8DotShape {
  DotShape shape;
  int64_t begin = 0;
  int64_t end = 0;
  int least_exponents[2] = {};  // of normal numbers of a's and b's formats
};

// out[r][i] = in[r * row_stride + i * stride] for `count` elements i of each row; strides are in
// elements. The result does not overlap the source.
struct RowsShape {
  int64_t rows = 1;
  int64_t row_stride = 0;
  int64_t count = 1;
  int64_t stride = 1;
};
using CopyRows = void (*)(void* out, const void* in, const RowsShape& shape);

// Functions of CUDA's device library that are no operations.
enum class LibraryFunction : uint8_t {
  kGamma,
  kLogGamma,
  kExp10,
  kSinPi,
  kCosPi,
  kReciprocalCubeRoot,
  kNormalDistribution,
  kFindFirstSet,  // of integers
  kSignBit,       // floats to bool
  kHypotenuse,
  kPositiveDifference,
  kNextAfter,
  kNearestRemainder,
};

// What a load or a store needs to know of its addresses.
struct PointerRange {
  int64_t least = INT64_MAX;  // of the active elements
  int64_t most = INT64_MIN;
  int64_t low_bits = 0;  // all of them or-ed together, for the alignment
};

// Each function returns nullptr where nothing is defined, as for arith.divsi of i1.
struct KernelSet {
  Unary (*unary)(Opcode opcode, Lane lane);  // one type for operand and result
  Binary (*binary)(Opcode opcode, Lane lane, int form);
  Ternary (*ternary)(Opcode opcode, Lane lane, int form);  // math.fma, tt.clampf
  Ternary clamp_propagating_nan[2];                        // f32, f64; no uniform operands
  Binary (*compare_int)(IntPredicate predicate, Lane lane, int form);
  Binary (*compare_float)(FloatPredicate predicate, Lane lane, int form);
  Ternary (*select)(Lane lane, int form);     // bool, value, value
  Unary (*test)(Opcode opcode, Lane lane);    // math.isnan and the like
  Binary (*power)(Lane lane, Lane exponent);  // math.fpowi; no uniform operands
  Unary (*library_unary)(LibraryFunction function, Lane lane);
  Binary (*library_binary)(LibraryFunction function, Lane lane, int form);
  Unary (*widen)(Lane from, Lane to, bool is_signed);  // integers, narrower ones too
  Unary (*to_float)(Lane from, Lane to, bool is_signed);
  // Into a float that another rounding follows: rounded to odd, so that two roundings equal one.
  Unary (*to_odd_float)(Lane from, bool is_signed);
  void (*narrow_toward_zero)(void* out, const void* a, int64_t count);  // f64 to f32
  Unary (*to_integer)(Lane from, Lane to, bool is_signed);              // saturates; NaN gives 0
  // A float to the numbers of a narrower format; nullptr for f32 and f64.
  Unary (*round)(ScalarKind kind, bool toward_zero);
  // Between memory and lanes; nullptr if the bytes are the same.
  Unary (*decode)(ScalarKind kind);
  Unary (*encode)(ScalarKind kind);
  // out[i] = base + offsets[i] * bytes with 64 bits. No offset is uniform with several results.
  void (*add_pointer)(Lane offset, int form, int64_t* out, const int64_t* base, const void* offsets,
                      int64_t bytes, int64_t count);
  bool (*is_sequence)(const int64_t* pointers, int64_t stride, int64_t count);
  PointerRange (*pointer_range)(const int64_t* pointers, const uint8_t* mask, int64_t count);
  // Copies elements of `bytes` each; elements without mask are 0, or stay as they are in memory.
  void (*gather)(int bytes, void* out, const int64_t* pointers, const uint8_t* mask, int64_t count);
  void (*scatter)(int bytes, const int64_t* pointers, const void* values, const uint8_t* mask,
                  int64_t count);
  CopyRows (*copy_rows)(int bytes);
  DotKernel (*dot)(Lane operand, Lane accumulator);
  void (*truncate_tf32)(float* out, const float* a, int64_t count);
  void (*dot_fp8)(float* c, const float* a, const float* b, const Fp8DotShape& shape);
};

const KernelSet& BestKernels();

// The low 48 bits of a pointer are its address, the high ones one more than the number of the
// argument that it comes from, or 0 if that is not known.
inline constexpr int kAddressBits = 48;
inline constexpr int64_t kAddressMask = (int64_t{1} << kAddressBits) - 1;

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_KERNELS_KERNELS_H_
