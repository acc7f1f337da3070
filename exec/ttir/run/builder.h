// Compiles a function into steps: one Builder for each kernel. The methods of one subject are in a
// file of their own (build_*.cc).
#ifndef TRITONRL_EXEC_TTIR_RUN_BUILDER_H_
#define TRITONRL_EXEC_TTIR_RUN_BUILDER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "exec/ttir/operation.h"
#include "exec/ttir/run/launch_state.h"
#include "exec/ttir/run/plan.h"
#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

struct ReductionData;

// Where a value is. A tensor whose elements are all equal, as tt.splat makes it, is `uniform`: its
// buffer holds one element, and elementwise operations on such tensors compute one element.
struct Bound {
  int32_t buffer = kNoBuffer;
  bool uniform = true;
  bool lanes = false;  // in the region of a reduction: one element for each pair
};

// More arguments do not fit the high bits of a pointer.
inline constexpr size_t kMaxArguments = 4096;
// Calls are compiled in line. The verifier excludes recursion; these bound what comes out.
inline constexpr int64_t kMaxInlinedOperations = 200'000;
inline constexpr size_t kMaxNesting = 160;  // of regions, those of callers too
// Steps that depend on arguments alone move to the prologue as long as their results are small
// enough to stay in a core's cache beside the rest.
inline constexpr int64_t kMaxPrologueBytes = 4 << 20;

class Builder {
 public:
  explicit Builder(const Module& module);

  absl::StatusOr<std::unique_ptr<CompiledKernel>> Build(const Function& kernel);

 private:
  // A list of steps under construction. Steps without effects move out of loops.
  struct Container {
    Code* code;
    bool is_loop;
  };

  // builder.cc: buffers, steps and values.
  // An argument of a launch, whose CompiledKernel::Argument::offset is its buffer until the end.
  Bound AddArgument(const std::string& name, const Type& type);
  absl::Status NotExecutable(const Operation& operation, absl::string_view why = "") const;
  const Type& TypeOf(ValueId value) const { return function_->TypeOf(value); }
  const Bound& At(ValueId value) const { return values_[value]; }
  void Bind(ValueId value, const Bound& bound) { values_[value] = bound; }
  int32_t NewBuffer(int64_t bytes, int32_t depth);
  int32_t NewBuffer(const Type& type);  // for all elements, in the innermost container
  int32_t CurrentDepth() const { return static_cast<int32_t>(containers_.size()) - 1; }
  int32_t PlaceOf(const Operation& operation);
  // Adds a step with effects where it stands.
  void Emit(Step step) { EmitAt(std::move(step), CurrentDepth()); }
  void EmitAt(Step step, int32_t depth);
  // Adds a step without effects, whose operands become Step::in, as far out as they allow. Its
  // result, of `bytes` bytes, is a new buffer.
  int32_t EmitPure(Step step, absl::Span<const Bound> operands, int64_t bytes);
  // A buffer with all elements of a uniform value; `lanes`: one for each pair of a region.
  Bound Spread(const Bound& bound, const Type& type, bool lanes = false);
  Bound SpreadValue(ValueId value) { return Spread(At(value), TypeOf(value)); }
  // Copies all elements of a value of the type into a buffer, where it stands.
  void EmitCopy(const Bound& from, int32_t to, const Type& type);
  absl::Status BuildBlock(const Block& block, size_t operations);
  absl::Status BuildOperation(const Operation& operation);
  // Floating point operations of an operation without those in its regions (build_work.cc).
  Work WorkOf(const Operation& operation) const;
  template <typename Body>
  absl::Status InContainer(Code* code, bool is_loop, Body body) {
    containers_.push_back({code, is_loop});
    const absl::Status status = body();
    containers_.pop_back();
    return status;
  }

  absl::Status BuildAssembly(const Operation& operation);  // build_assembly.cc

  // build_elementwise.cc, build_casts.cc, build_extern.cc
  absl::Status BuildElementwise(const Operation& operation);
  Bound EmitUnary(Unary kernel, Unary finish, const Bound& operand, const Type& type);
  absl::Status BuildUnary(const Operation& operation, Unary kernel, Unary finish);
  // `opcode` is what to compute, which for a library's function is not the operation's own.
  absl::Status BuildBinary(const Operation& operation, Opcode opcode);
  absl::Status BuildLibraryBinary(const Operation& operation, LibraryFunction function);
  absl::Status BuildTernary(const Operation& operation, Opcode opcode);
  absl::Status BuildArithmetic(const Operation& operation, Opcode opcode);
  absl::Status BuildExtendedProduct(const Operation& operation);
  absl::Status BuildPower(const Operation& operation);
  absl::Status BuildCast(const Operation& operation);
  absl::Status BuildIntegerCast(const Operation& operation);
  absl::Status BuildFloatCast(const Operation& operation);
  absl::Status BuildBitcast(const Operation& operation);
  absl::Status BuildConstant(const Operation& operation);
  absl::Status BuildExtern(const Operation& operation);
  // nullopt if the name is not that of a conversion, test or bit count.
  std::optional<Bound> ExternConversion(const Operation& operation, absl::string_view name);
  // Whether all operands are uniform, or some are lanes, decides how much a step computes.
  struct Extent {
    bool uniform = true;
    bool lanes = false;
    int form = 0;  // of the kernel
  };
  Extent ExtentOf(absl::Span<const Bound> operands) const;
  // Adds an elementwise step and returns its result.
  Bound EmitElementwise(Step step, absl::Span<const Bound> operands, const Type& type);
  Unary RoundingOf(const Type& type) const;  // nullptr if the lanes are the format

  // build_checks.cc
  // How the result of an operation of two operands, computed as `opcode`, is marked.
  void MarkOperands(const Operation& operation, Opcode opcode, Step* step);
  void AddDivisibility(const Argument& argument, CompiledKernel::Argument* compiled) const;

  // build_shapes.cc
  absl::Status BuildShape(const Operation& operation);
  void BuildRange(const Operation& operation);
  void BuildProgramNumber(const Operation& operation);
  void BuildStrided(const Operation& operation, size_t result, absl::Span<const int64_t> strides,
                    int64_t offset);
  void BuildBroadcast(const Operation& operation);
  void BuildTranspose(const Operation& operation);
  void BuildJoin(const Operation& operation);
  absl::Status BuildGather(const Operation& operation);
  absl::Status BuildHistogram(const Operation& operation);
  absl::Status BuildDot(const Operation& operation);
  absl::Status BuildFp8Dot(const Operation& operation);
  absl::Status BuildScaledDot(const Operation& operation);

  // build_memory.cc
  absl::Status BuildMemory(const Operation& operation);
  absl::Status BuildAddPointer(const Operation& operation);
  absl::Status BuildLoad(const Operation& operation);
  absl::Status BuildStore(const Operation& operation);
  absl::Status BuildAtomic(const Operation& operation);
  absl::Status BuildReport(const Operation& operation);  // tt.assert, tt.print
  struct Access {
    Bound pointers;
    Bound mask;   // without a buffer: all elements
    Bound other;  // without a buffer: 0
  };
  absl::Status BuildAccess(const Operation& operation, const Type& value, Access* access);
  void SpreadAccess(const Type& value, Access* access);
  int ShapeNumberOf(const Type& type);  // AccessData::shape

  // build_blocks.cc: block pointers and tensor descriptors.
  absl::Status BuildMakeBlock(const Operation& operation);
  // A descriptor that the host made, of several arguments of a launch: its base, shape, strides,
  // and whether it pads with NaN.
  Bound BuildDescriptorArgument(const Argument& argument, const std::string& name,
                                const Type& type);
  void BuildAdvance(const Operation& operation);
  absl::Status BuildBlockAccess(const Operation& operation, const Type& value, Access* access);
  absl::Status BuildBlockReduce(const Operation& operation);

  // build_reductions.cc
  absl::Status BuildReduction(const Operation& operation);
  absl::Status BuildMap(const Operation& operation);
  absl::Status BuildRegionReduction(const Operation& operation, std::shared_ptr<ReductionData> data,
                                    Step step);
  // Compiles the region with these arguments into the step's code, for up to `lanes` pairs at a
  // time. The values that it hands over go to the end of Step::in.
  absl::Status BuildRegionCode(const Operation& operation, absl::Span<const Bound> arguments,
                               int64_t lanes, Step* step, std::vector<bool>* uniform_yield);

  // build_control.cc
  absl::Status BuildControl(const Operation& operation);
  absl::Status BuildFor(const Operation& operation);
  absl::Status BuildWhile(const Operation& operation);
  absl::Status BuildIf(const Operation& operation);
  absl::Status BuildCall(const Operation& operation);
  // Compiles a function with its arguments bound, and binds its results.
  absl::Status BuildFunction(const Function& function, absl::Span<const Bound> arguments,
                             std::vector<Bound>* results);
  absl::Status BuildGraph(const Function& function, std::vector<Bound>* results);
  void BuildEdge(const Block& target, const Operation& branch, const Successor& successor,
                 Code* code);
  std::vector<int32_t> StartCarried(const Operation& operation, size_t first);
  // Copies what an iteration hands over into the carried buffers, or has its last step write there.
  void EmitCarried(absl::Span<const ValueId> yielded, absl::Span<const int32_t> carried,
                   Code* body);
  bool WriteInPlace(int32_t yielded, int32_t carried, absl::Span<const Bound> all, Code* body);

  const Module& module_;
  const KernelSet& kernels_;
  std::unique_ptr<CompiledKernel> compiled_;
  std::vector<Buffer> buffers_;
  std::vector<Container> containers_;
  const Function* function_ = nullptr;
  std::vector<Bound> values_;  // of function_
  int64_t operations_ = 0;
  int64_t prologue_bytes_ = 0;
  int64_t max_lanes_ = 1;                                     // of the region that is compiled
  absl::flat_hash_map<int32_t, uint64_t> integer_constants_;  // uniform ones, by buffer
  absl::flat_hash_map<std::vector<int64_t>, int> shape_numbers_;
  bool counts_work_ = true;  // false in the region of a reduction
};

// Bytes of a buffer that holds a value of the type, all of its elements.
int64_t BufferBytes(const Type& type);

// Whether the operation computes each element from the operands' elements at its place.
bool IsElementwise(Opcode opcode);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_BUILDER_H_
