// The operations that the executor's form knows: one enum, and one table with the name, the printed
// syntax and the typing rule of each.
#ifndef TRITONRL_EXEC_TTIR_OPCODES_H_
#define TRITONRL_EXEC_TTIR_OPCODES_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tritonrl::ttir {

// The typing rules, in four groups: elementwise, memory, tensors, control (verify_*.cc).
enum class Rule : uint8_t {
  kIntSame,     // integers, all operands and results of one type
  kFloatSame,   // floats likewise
  kIndexLike,   // integers to integers, shapes equal
  kCompareInt,  // two integers of one type to i1 of their shape
  kCompareFloat,
  kFloatTest,      // one float to i1
  kFloatIntPower,  // float, integer -> float
  kSelect,
  kConstant,
  kWiden,  // integer to a wider integer
  kNarrow,
  kWidenFloat,
  kNarrowFloat,
  kIntToFloat,
  kFloatToInt,
  kBitcast,         // numbers of the same width
  kFloatCast,       // tt.fp_to_fp
  kPointerBitcast,  // tt.bitcast: numbers of the same width, or pointers
  kIntToPointer,
  kPointerToInt,
  kMakeBlockPointer,
  kMakeDescriptor,
  kDescriptorLoad,
  kDescriptorStore,
  kDescriptorGather,
  kDescriptorScatter,
  kAddPointer,
  kAdvance,
  kLoad,
  kStore,
  kAtomic,
  kCompareAndSwap,
  kHistogram,
  kGather,
  kSplat,
  kUnsplat,
  kExpandDims,
  kReshape,
  kBroadcast,
  kConcatenate,
  kJoin,
  kSplit,
  kTranspose,
  kProgram,  // tt.get_program_id, tt.get_num_programs
  kRange,
  kDot,
  kScaledDot,
  kReduce,
  kScan,
  kMap,
  kExtern,
  kInlineAsm,
  kPrint,
  kAssert,
  kAssume,
  kCall,
  kReturn,
  kFor,
  kIf,
  kWhile,
  kYield,  // the parent operation checks the types
  kCondition,
  kBranch,
  kConditionalBranch,
  kAnything,  // no operands or no demands on them
};

// OPERATION(enumerator, name, syntax, results, regions, rule). `results`: their number, -1 if it
// varies. opcodes.cc holds the words of the syntax; "" is for an operation with a function of its
// own in structured_parser.cc, or only a generic form.
#define TRITONRL_TTIR_INT_OPERATIONS(X, S)                    \
  X(AddI, "arith.addi", S, 1, 0, kIntSame)                    \
  X(SubI, "arith.subi", S, 1, 0, kIntSame)                    \
  X(MulI, "arith.muli", S, 1, 0, kIntSame)                    \
  X(DivSI, "arith.divsi", S, 1, 0, kIntSame)                  \
  X(DivUI, "arith.divui", S, 1, 0, kIntSame)                  \
  X(RemSI, "arith.remsi", S, 1, 0, kIntSame)                  \
  X(RemUI, "arith.remui", S, 1, 0, kIntSame)                  \
  X(CeilDivSI, "arith.ceildivsi", S, 1, 0, kIntSame)          \
  X(CeilDivUI, "arith.ceildivui", S, 1, 0, kIntSame)          \
  X(FloorDivSI, "arith.floordivsi", S, 1, 0, kIntSame)        \
  X(AndI, "arith.andi", S, 1, 0, kIntSame)                    \
  X(OrI, "arith.ori", S, 1, 0, kIntSame)                      \
  X(XorI, "arith.xori", S, 1, 0, kIntSame)                    \
  X(ShlI, "arith.shli", S, 1, 0, kIntSame)                    \
  X(ShrSI, "arith.shrsi", S, 1, 0, kIntSame)                  \
  X(ShrUI, "arith.shrui", S, 1, 0, kIntSame)                  \
  X(MaxSI, "arith.maxsi", S, 1, 0, kIntSame)                  \
  X(MaxUI, "arith.maxui", S, 1, 0, kIntSame)                  \
  X(MinSI, "arith.minsi", S, 1, 0, kIntSame)                  \
  X(MinUI, "arith.minui", S, 1, 0, kIntSame)                  \
  X(MulSIExtended, "arith.mulsi_extended", S, 2, 0, kIntSame) \
  X(MulUIExtended, "arith.mului_extended", S, 2, 0, kIntSame) \
  X(MulHiUI, "tt.mulhiui", S, 1, 0, kIntSame)                 \
  X(IPowI, "math.ipowi", S, 1, 0, kIntSame)

#define TRITONRL_TTIR_FLOAT_BINARY_OPERATIONS(X, S)  \
  X(AddF, "arith.addf", S, 1, 0, kFloatSame)         \
  X(SubF, "arith.subf", S, 1, 0, kFloatSame)         \
  X(MulF, "arith.mulf", S, 1, 0, kFloatSame)         \
  X(DivF, "arith.divf", S, 1, 0, kFloatSame)         \
  X(RemF, "arith.remf", S, 1, 0, kFloatSame)         \
  X(MaximumF, "arith.maximumf", S, 1, 0, kFloatSame) \
  X(MinimumF, "arith.minimumf", S, 1, 0, kFloatSame) \
  X(MaxNumF, "arith.maxnumf", S, 1, 0, kFloatSame)   \
  X(MinNumF, "arith.minnumf", S, 1, 0, kFloatSame)   \
  X(Atan2, "math.atan2", S, 1, 0, kFloatSame)        \
  X(CopySign, "math.copysign", S, 1, 0, kFloatSame)  \
  X(PowF, "math.powf", S, 1, 0, kFloatSame)          \
  X(PreciseDivF, "tt.precise_divf", S, 1, 0, kFloatSame)

#define TRITONRL_TTIR_FLOAT_UNARY_OPERATIONS(X, S)    \
  X(NegF, "arith.negf", S, 1, 0, kFloatSame)          \
  X(AbsF, "math.absf", S, 1, 0, kFloatSame)           \
  X(Acos, "math.acos", S, 1, 0, kFloatSame)           \
  X(Acosh, "math.acosh", S, 1, 0, kFloatSame)         \
  X(Asin, "math.asin", S, 1, 0, kFloatSame)           \
  X(Asinh, "math.asinh", S, 1, 0, kFloatSame)         \
  X(Atan, "math.atan", S, 1, 0, kFloatSame)           \
  X(Atanh, "math.atanh", S, 1, 0, kFloatSame)         \
  X(Cbrt, "math.cbrt", S, 1, 0, kFloatSame)           \
  X(Ceil, "math.ceil", S, 1, 0, kFloatSame)           \
  X(Cos, "math.cos", S, 1, 0, kFloatSame)             \
  X(Cosh, "math.cosh", S, 1, 0, kFloatSame)           \
  X(Erf, "math.erf", S, 1, 0, kFloatSame)             \
  X(Erfc, "math.erfc", S, 1, 0, kFloatSame)           \
  X(Exp, "math.exp", S, 1, 0, kFloatSame)             \
  X(Exp2, "math.exp2", S, 1, 0, kFloatSame)           \
  X(ExpM1, "math.expm1", S, 1, 0, kFloatSame)         \
  X(Floor, "math.floor", S, 1, 0, kFloatSame)         \
  X(Log, "math.log", S, 1, 0, kFloatSame)             \
  X(Log10, "math.log10", S, 1, 0, kFloatSame)         \
  X(Log1P, "math.log1p", S, 1, 0, kFloatSame)         \
  X(Log2, "math.log2", S, 1, 0, kFloatSame)           \
  X(Round, "math.round", S, 1, 0, kFloatSame)         \
  X(RoundEven, "math.roundeven", S, 1, 0, kFloatSame) \
  X(Rsqrt, "math.rsqrt", S, 1, 0, kFloatSame)         \
  X(Sin, "math.sin", S, 1, 0, kFloatSame)             \
  X(Sinh, "math.sinh", S, 1, 0, kFloatSame)           \
  X(Sqrt, "math.sqrt", S, 1, 0, kFloatSame)           \
  X(Tan, "math.tan", S, 1, 0, kFloatSame)             \
  X(Tanh, "math.tanh", S, 1, 0, kFloatSame)           \
  X(Trunc, "math.trunc", S, 1, 0, kFloatSame)         \
  X(PreciseSqrt, "tt.precise_sqrt", S, 1, 0, kFloatSame)

#define TRITONRL_TTIR_OTHER_ARITHMETIC(X)                                               \
  X(AbsI, "math.absi", "% A : Ta", 1, 0, kIntSame)                                      \
  X(CountLeadingZeros, "math.ctlz", "% A : Ta", 1, 0, kIntSame)                         \
  X(CountTrailingZeros, "math.cttz", "% A : Ta", 1, 0, kIntSame)                        \
  X(PopulationCount, "math.ctpop", "% A : Ta", 1, 0, kIntSame)                          \
  X(Fma, "math.fma", "% , % , % F A : Ta", 1, 0, kFloatSame)                            \
  X(ClampF, "tt.clampf", "% , % , % , =propagateNan A : Ta", 1, 0, kFloatSame)          \
  X(FPowI, "math.fpowi", "% , % F A : T0r , T1", 1, 0, kFloatIntPower)                  \
  X(IsFinite, "math.isfinite", "% F A : Tc", 1, 0, kFloatTest)                          \
  X(IsInf, "math.isinf", "% F A : Tc", 1, 0, kFloatTest)                                \
  X(IsNan, "math.isnan", "% F A : Tc", 1, 0, kFloatTest)                                \
  X(IsNormal, "math.isnormal", "% F A : Tc", 1, 0, kFloatTest)                          \
  X(CmpI, "arith.cmpi", "/predicate:I , % , % A : Tc", 1, 0, kCompareInt)               \
  X(CmpF, "arith.cmpf", "/predicate:F , % , % F A : Tc", 1, 0, kCompareFloat)           \
  X(Select, "arith.select", "% , % , % A : Tsel", 1, 0, kSelect)                        \
  X(Constant, "arith.constant", "", 1, 0, kConstant)                                    \
  X(Poison, "ub.poison", "A : Tr", 1, 0, kAnything)                                     \
  X(ExtSI, "arith.extsi", "% A : T0 to Tr", 1, 0, kWiden)                               \
  X(ExtUI, "arith.extui", "% N A : T0 to Tr", 1, 0, kWiden)                             \
  X(TruncI, "arith.trunci", "% O A : T0 to Tr", 1, 0, kNarrow)                          \
  X(ExtF, "arith.extf", "% F A : T0 to Tr", 1, 0, kWidenFloat)                          \
  X(TruncF, "arith.truncf", "% R F A : T0 to Tr", 1, 0, kNarrowFloat)                   \
  X(SIToFP, "arith.sitofp", "% A : T0 to Tr", 1, 0, kIntToFloat)                        \
  X(UIToFP, "arith.uitofp", "% N A : T0 to Tr", 1, 0, kIntToFloat)                      \
  X(FPToSI, "arith.fptosi", "% A : T0 to Tr", 1, 0, kFloatToInt)                        \
  X(FPToUI, "arith.fptoui", "% A : T0 to Tr", 1, 0, kFloatToInt)                        \
  X(IndexCast, "arith.index_cast", "% A : T0 to Tr", 1, 0, kIndexLike)                  \
  X(IndexCastUI, "arith.index_castui", "% N A : T0 to Tr", 1, 0, kIndexLike)            \
  X(Bitcast, "arith.bitcast", "% A : T0 to Tr", 1, 0, kBitcast)                         \
  X(FpToFp, "tt.fp_to_fp", "% A ?,rounding : T0 -> Tr", 1, 0, kFloatCast)               \
  X(TtBitcast, "tt.bitcast", "% A : T0 -> Tr", 1, 0, kPointerBitcast)                   \
  X(IntToPtr, "tt.int_to_ptr", "% A : T0 -> Tr", 1, 0, kIntToPointer)                   \
  X(PtrToInt, "tt.ptr_to_int", "% A : T0 -> Tr", 1, 0, kPointerToInt)                   \
  X(ExternElementwise, "tt.extern_elementwise", "%* A : Tf", 1, 0, kExtern)             \
  X(InlineAsm, "tt.elementwise_inline_asm", "\"text A %* :Tl -> Ts", -1, 0, kInlineAsm) \
  X(MapElementwise, "tt.map_elementwise", "", -1, 1, kMap)

#define TRITONRL_TTIR_SHAPE_OPERATIONS(X)                                                     \
  X(Splat, "tt.splat", "% A : T0 -> Tr", 1, 0, kSplat)                                        \
  X(Unsplat, "tt.unsplat", "% A : Tu", 1, 0, kUnsplat)                                        \
  X(ExpandDims, "tt.expand_dims", "% A : T0 -> Tr", 1, 0, kExpandDims)                        \
  X(Reshape, "tt.reshape", "% !allow_reorder !efficient_layout A : T0 -> Tr", 1, 0, kReshape) \
  X(Broadcast, "tt.broadcast", "% A : T0 -> Tr", 1, 0, kBroadcast)                            \
  X(Cat, "tt.cat", "% , % A : To -> Tr", 1, 0, kConcatenate)                                  \
  X(Join, "tt.join", "% , % A : To -> Tr", 1, 0, kJoin)                                       \
  X(Split, "tt.split", "% A : T0 -> Tr", 2, 0, kSplit)                                        \
  X(Trans, "tt.trans", "% A : T0 -> Tr", 1, 0, kTranspose)                                    \
  X(MakeRange, "tt.make_range", "A : Tr", 1, 0, kRange)                                       \
  X(Histogram, "tt.histogram", "% ?,% A : T0 -> Tr", 1, 0, kHistogram)                        \
  X(Gather, "tt.gather", "% [ % ] A : Tf", 1, 0, kGather)                                     \
  X(Dot, "tt.dot", "% , % , % ?,inputPrecision A : T0 * T1 -> T2r", 1, 0, kDot)               \
  X(DotScaled, "tt.dot_scaled", "", 1, 0, kScaledDot)                                         \
  X(Reduce, "tt.reduce", "", -1, 1, kReduce)                                                  \
  X(Scan, "tt.scan", "", -1, 1, kScan)

#define TRITONRL_TTIR_MEMORY_OPERATIONS(X)                                                       \
  X(AddPtr, "tt.addptr", "% , % A : T0r , T1", 1, 0, kAddPointer)                                \
  X(Load, "tt.load", "% ?,% ?,% o A : Tp", 1, 0, kLoad)                                          \
  X(Store, "tt.store", "% , % ?,% o A : T0", 0, 0, kStore)                                       \
  X(AtomicRmw, "tt.atomic_rmw", "/atomic_rmw_op , /sem , /scope , % , % ?,% A : Tf", 1, 0,       \
    kAtomic)                                                                                     \
  X(AtomicCas, "tt.atomic_cas", "/sem , /scope , % , % , % A : Tf", 1, 0, kCompareAndSwap)       \
  X(MakeTensorPtr, "tt.make_tensor_ptr", "% , [ %* ] , [ %* ] , [ %* ] A : Tr", 1, 0,            \
    kMakeBlockPointer)                                                                           \
  X(Advance, "tt.advance", "% , [ %* ] A : T0r", 1, 0, kAdvance)                                 \
  X(MakeTensorDescriptor, "tt.make_tensor_descriptor", "% , [ %* ] , [ %* ] A : T0 , Td", 1, 0,  \
    kMakeDescriptor)                                                                             \
  X(DescriptorLoad, "tt.descriptor_load", "% [ %* ] o A : T0 -> Tr", 1, 0, kDescriptorLoad)      \
  X(DescriptorStore, "tt.descriptor_store", "% [ %* ] , %1 A : T0 , T1", 0, 0, kDescriptorStore) \
  X(DescriptorReduce, "tt.descriptor_reduce", "/reduce_kind , % [ %* ] , %1 A : T0 , T1", 0, 0,  \
    kDescriptorStore)                                                                            \
  X(DescriptorGather, "tt.descriptor_gather", "% [ % , % ] A : Tf", 1, 0, kDescriptorGather)     \
  X(DescriptorScatter, "tt.descriptor_scatter", "% [ % , % ] , % A : Tl", 0, 0, kDescriptorScatter)

#define TRITONRL_TTIR_CONTROL_OPERATIONS(X)                                \
  X(GetProgramId, "tt.get_program_id", "/axis A : Tr", 1, 0, kProgram)     \
  X(GetNumPrograms, "tt.get_num_programs", "/axis A : Tr", 1, 0, kProgram) \
  X(Print, "tt.print", "\"text A :%*", 0, 0, kPrint)                       \
  X(Assert, "tt.assert", "% , \"text A : T0", 0, 0, kAssert)               \
  X(Assume, "llvm.intr.assume", "% A : T0", 0, 0, kAssume)                 \
  X(Barrier, "gpu.barrier", "A", 0, 0, kAnything)                          \
  X(Call, "tt.call", "@ ( %* ) A : Tf", -1, 0, kCall)                      \
  X(Return, "tt.return", "A %* :Tl", 0, 0, kReturn)                        \
  X(ReduceReturn, "tt.reduce.return", "%* A :Tl", 0, 0, kYield)            \
  X(ScanReturn, "tt.scan.return", "%* A :Tl", 0, 0, kYield)                \
  X(MapReturn, "tt.map_elementwise.return", "%* A :Tl", 0, 0, kYield)      \
  X(For, "scf.for", "", -1, 1, kFor)                                       \
  X(If, "scf.if", "", -1, 2, kIf)                                          \
  X(While, "scf.while", "", -1, 2, kWhile)                                 \
  X(Yield, "scf.yield", "A %* :Tl", 0, 0, kYield)                          \
  X(Condition, "scf.condition", "( % ) A %* :Tv", 0, 0, kCondition)        \
  X(Branch, "cf.br", "", 0, 0, kBranch)                                    \
  X(CondBranch, "cf.cond_br", "", 0, 0, kConditionalBranch)

#define TRITONRL_TTIR_OPERATIONS(X)                          \
  TRITONRL_TTIR_INT_OPERATIONS(X, "% , % O A : Ta")          \
  TRITONRL_TTIR_FLOAT_BINARY_OPERATIONS(X, "% , % F A : Ta") \
  TRITONRL_TTIR_FLOAT_UNARY_OPERATIONS(X, "% F A : Ta")      \
  TRITONRL_TTIR_OTHER_ARITHMETIC(X)                          \
  TRITONRL_TTIR_SHAPE_OPERATIONS(X)                          \
  TRITONRL_TTIR_MEMORY_OPERATIONS(X)                         \
  TRITONRL_TTIR_CONTROL_OPERATIONS(X)

enum class Opcode : uint8_t {
#define TRITONRL_TTIR_ENUMERATOR(enumerator, name, syntax, results, regions, rule) k##enumerator,
  TRITONRL_TTIR_OPERATIONS(TRITONRL_TTIR_ENUMERATOR)
#undef TRITONRL_TTIR_ENUMERATOR
};

struct OpcodeInfo {
  Opcode opcode;
  absl::string_view name;    // "arith.addi"
  absl::string_view syntax;  // of the pretty form; see pretty_parser.cc
  int results;               // -1: any number
  int regions;
  Rule rule;
};

// The table entry of an operation, and the operation with a name; nullopt if it is unknown.
const OpcodeInfo& InfoOf(Opcode opcode);
std::optional<Opcode> FindOpcode(absl::string_view name);
inline absl::string_view OpcodeName(Opcode opcode) { return InfoOf(opcode).name; }
bool IsTerminator(Opcode opcode);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_OPCODES_H_
