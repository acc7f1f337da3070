// The typed form of a Triton IR module. It is plain data for an executor of whole-tensor
// operations: values are numbers within their function, so that a frame is one array.
#ifndef TRITONRL_EXEC_TTIR_OPERATION_H_
#define TRITONRL_EXEC_TTIR_OPERATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "exec/ttir/enums.h"
#include "exec/ttir/location.h"
#include "exec/ttir/opcodes.h"
#include "exec/ttir/types.h"

namespace tritonrl::ttir {

using ValueId = int32_t;  // index into Function::values
using BlockId = int32_t;  // index into Region::blocks

// The value of an arith.constant: the bits of each element, in row-major order, zero-extended from
// the element's width; one element if all are equal.
struct Constant {
  Type type;
  std::vector<uint64_t> bits;
  bool is_splat() const { return bits.size() == 1; }
};

// What the producer promises about an argument or a result: one number for each dimension.
struct Hints {
  std::vector<int64_t> divisibility;
  std::vector<int64_t> contiguity;
  std::vector<int64_t> constancy;
};

// Flags of attributes and of the printed form.
enum AttributeFlag : uint32_t {
  kNoSignedWrap = 1u << 0,
  kNoUnsignedWrap = 1u << 1,
  kNonNegative = 1u << 2,      // arith.extui, arith.uitofp
  kVolatile = 1u << 3,         // tt.load
  kReverse = 1u << 4,          // tt.scan
  kAllowReorder = 1u << 5,     // tt.reshape
  kPure = 1u << 6,             // tt.extern_elementwise, tt.elementwise_inline_asm
  kHex = 1u << 7,              // tt.print
  kUnsignedCompare = 1u << 8,  // scf.for
  kLeftScale = 1u << 9,        // tt.dot_scaled has the operand a_scale
  kRightScale = 1u << 10,      // tt.dot_scaled has the operand b_scale
  kFastMath = 1u << 11,        // any fastmath flag; tt.dot_scaled
  kLeftKPack = 1u << 12,       // tt.dot_scaled: a is packed along K
  kRightKPack = 1u << 13,      // tt.dot_scaled: b is packed along K
};

// The attributes of all operations in one record; each operation uses the fields it has.
struct Attributes {
  uint32_t flags = kPure | kLeftKPack | kRightKPack;
  int32_t axis = 0;   // expand_dims, reduce, scan, gather, get_program_id (0 is x)
  int32_t start = 0;  // make_range
  int32_t end = 0;
  int32_t constant = -1;          // index into Module::constants
  int32_t callee = -1;            // index into Module::functions
  int32_t packed_elements = 1;    // elementwise_inline_asm, map_elementwise
  int32_t max_imprecise_acc = 0;  // dot
  uint8_t predicate = 0;          // IntPredicate of cmpi, FloatPredicate of cmpf
  AtomicKind atomic = AtomicKind::kAdd;
  ReduceKind reduce = ReduceKind::kAdd;
  MemorySemantic semantic = MemorySemantic::kRelaxed;
  MemoryScope scope = MemoryScope::kGpu;
  CacheModifier cache = CacheModifier::kNone;
  EvictionPolicy eviction = EvictionPolicy::kNormal;
  Padding padding = Padding::kNone;
  Rounding rounding = Rounding::kUnset;
  PropagateNan propagate_nan = PropagateNan::kNone;
  InputPrecision precision = InputPrecision::kIeee;
  ScaledElement left_element = ScaledElement::kE4M3;  // dot_scaled
  ScaledElement right_element = ScaledElement::kE4M3;
  absl::InlinedVector<int32_t, 4> order;  // trans, make_tensor_ptr
  absl::InlinedVector<int32_t, 4> boundary_check;
  absl::InlinedVector<int32_t, 4> is_signed;  // print: one for each argument
  std::string text;                           // assembly, the assert's message, the print's prefix
  std::string constraints;                    // of the assembly
  std::string symbol;                         // function of extern_elementwise or call
  std::string library;                        // extern_elementwise
  int32_t hints = -1;                         // index into Module::hints

  bool has(AttributeFlag flag) const { return (flags & flag) != 0; }
};

// Where a branch goes. Its arguments are operands [first, first + count) of the operation.
struct Successor {
  BlockId block = 0;
  int32_t first = 0;
  int32_t count = 0;
};

struct Region;

struct Operation {
  Opcode opcode = Opcode::kPoison;
  LocationId location = kUnknownLocation;
  int32_t text_line = 0;    // in the parsed text, from 1
  int32_t text_column = 0;  // from 1
  // In the order of Triton's definition: load (pointer, mask, other), store (pointer, value, mask),
  // atomic_rmw (pointer, value, mask), for (lower, upper, step, initial values), make_tensor_ptr
  // (base, shape, strides, offsets), make_tensor_descriptor (base, shape, strides),
  // descriptor_store (descriptor, value, indices), dot_scaled (a, b, c, scale of a, scale of b).
  absl::InlinedVector<ValueId, 4> operands;
  absl::InlinedVector<ValueId, 1> results;
  absl::InlinedVector<Successor, 2> successors;
  std::vector<Region> regions;
  Attributes attributes;
};

struct Block {
  std::vector<ValueId> arguments;
  // The last is a terminator; the parser adds the scf.yield that MLIR does not print.
  std::vector<Operation> operations;
};

// A region sees the values of the regions around it in the same function.
struct Region {
  std::vector<Block> blocks;  // may be empty: an scf.if without else
};

struct Value {
  Type type;
  std::string name;  // as printed, without '%'; "0#1" is the second result of %0
};

struct Argument {
  ValueId value = 0;
  int32_t hints = -1;  // index into Module::hints
  LocationId location = kUnknownLocation;
};

struct Function {
  std::string name;
  bool is_public = true;  // a kernel
  bool is_noinline = false;
  std::vector<Argument> arguments;
  std::vector<Type> results;
  std::vector<Value> values;
  Region body;
  LocationId location = kUnknownLocation;
  int32_t text_line = 0;

  const Type& TypeOf(ValueId value) const { return values[value].type; }
};

struct Module {
  std::vector<Function> functions;
  std::vector<Constant> constants;
  std::vector<Hints> hints;
  LocationTable locations;

  // "line 12 of kernel.py" of the operation.
  std::string PlaceOf(const Operation& operation) const {
    return locations.PositionOf(operation.location).ToString();
  }
};

// The module as text for tests and error messages; not MLIR's form.
std::string ToString(const Module& module);
std::string ToString(const Function& function, const Operation& operation);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_OPERATION_H_
