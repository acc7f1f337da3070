// The typing rules of operations.
#ifndef TRITONRL_EXEC_TTIR_VERIFY_RULES_H_
#define TRITONRL_EXEC_TTIR_VERIFY_RULES_H_

#include <string>

#include "exec/ttir/operation.h"

namespace tritonrl::ttir {

// What is wrong with operands, results and attributes of the operation, or "". The operands and
// results are values of the function. Of regions it checks only arguments and terminators. It does
// not check successors.
std::string FindViolation(const Module& module, const Function& function,
                          const Operation& operation);

// The parts of FindViolation, by subject.
class RuleChecker {
 public:
  RuleChecker(const Module& module, const Function& function, const Operation& operation)
      : module_(module), function_(function), operation_(operation) {}

  std::string Check() const;

 private:
  // verify_rules.cc: numbers of operands, and the elementwise operations.
  std::string CheckCount() const;
  std::string CheckSame(bool is_float) const;
  std::string CheckCast() const;
  std::string CheckBitcast() const;
  std::string CheckSelect() const;
  std::string CheckCompare() const;
  std::string CheckConstant() const;
  std::string CheckElementwise() const;
  std::string CheckExtern() const;

  // verify_tensors.cc: shapes, dot, reductions.
  std::string CheckShape() const;
  std::string CheckTranspose() const;
  std::string CheckSplat() const;
  std::string CheckRange() const;
  std::string CheckGather() const;
  std::string CheckDot() const;
  std::string CheckScaledDot() const;
  std::string CheckReduce() const;
  std::string CheckMap() const;

  // verify_memory.cc: pointers, loads, descriptors.
  std::string CheckMemory() const;
  std::string CheckAddPointer() const;
  std::string CheckLoad() const;
  std::string CheckStore() const;
  std::string CheckAtomic() const;
  std::string CheckBlockPointer() const;
  std::string CheckDescriptor() const;
  std::string CheckDescriptorRows() const;
  std::string CheckBoundary(const Type& pointer) const;

  // verify_control.cc: calls, loops, branches.
  std::string CheckControl() const;
  std::string CheckCall() const;
  std::string CheckReturn() const;
  std::string CheckFor() const;
  std::string CheckIf() const;
  std::string CheckWhile() const;

  size_t operands() const { return operation_.operands.size(); }
  const Type& In(size_t i) const { return function_.TypeOf(operation_.operands[i]); }
  const Type& Out(size_t i = 0) const { return function_.TypeOf(operation_.results[i]); }
  const Type& TypeOf(ValueId value) const { return function_.TypeOf(value); }
  const Attributes& attributes() const { return operation_.attributes; }
  Rule rule() const { return InfoOf(operation_.opcode).rule; }
  // A region's single block, or nullptr if it has none or several.
  const Block* BlockOf(size_t region) const;
  // Whether the region's single block takes these types, and ends with `terminator` that hands over
  // the types of `yielded`.
  std::string CheckRegion(size_t region, const std::vector<Type>& arguments, Opcode terminator,
                          const std::vector<Type>& yielded) const;
  std::vector<Type> TypesOf(size_t first_operand) const;
  std::vector<Type> ResultTypes() const;

  const Module& module_;
  const Function& function_;
  const Operation& operation_;
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_VERIFY_RULES_H_
