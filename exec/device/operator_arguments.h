// The arguments of one call of torch's dispatcher, made of the values of a message.
#ifndef TRITONRL_EXEC_DEVICE_OPERATOR_ARGUMENTS_H_
#define TRITONRL_EXEC_DEVICE_OPERATOR_ARGUMENTS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <ATen/core/stack.h>

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/device/operator_call.h"

namespace tritonrl::device {

class ArgumentBuilder {
 public:
  // Both must outlive this.
  ArgumentBuilder(const BoundCall& bound, const ArgumentRules& rules)
      : bound_(bound), rules_(rules) {}

  // The arguments in the order of the schema; to be called once. InvalidArgument: a value that does
  // not fit its argument. Throws as LibTorch does.
  absl::StatusOr<torch::jit::Stack> Build();

  // Which of the device tensors, in order, an argument's implementation is; -1: none.
  int PositionOf(const at::Tensor& tensor) const;
  // Whether it took the place of an argument named out.
  bool IsOut(const at::Tensor& tensor) const;

 private:
  absl::StatusOr<c10::IValue> ArgumentValue(const c10::Argument& argument, const Value* value);
  absl::StatusOr<c10::IValue> GeneratorValue(const c10::Argument& argument, const Value* value);
  absl::StatusOr<c10::IValue> OfType(const c10::Argument& argument, const c10::Type& type,
                                     const Value& value);
  absl::StatusOr<c10::IValue> TensorValue(const c10::Argument& argument, const Value& value);
  absl::StatusOr<c10::IValue> TensorList(const c10::Argument& argument, const Value& value);
  absl::StatusOr<c10::IValue> OptionalTensorList(const c10::Argument& argument, const Value& value);
  template <typename T>
  absl::StatusOr<c10::IValue> NumberList(const c10::Argument& argument, const Value& value,
                                         const c10::Type& element);
  absl::StatusOr<c10::IValue> ListValue(const c10::Argument& argument, const c10::Type& element,
                                        const Value& value);

  const BoundCall& bound_;
  const ArgumentRules& rules_;
  std::vector<std::pair<at::Tensor, int>> made_;  // arguments, with their place among the tensors
  std::vector<at::Tensor> outs_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_OPERATOR_ARGUMENTS_H_
