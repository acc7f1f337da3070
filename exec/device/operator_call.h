// A call of one of torch's operators: arguments matched with the operator's schema, and run by
// torch's dispatcher on the device of its tensors.
#ifndef TRITONRL_EXEC_DEVICE_OPERATOR_CALL_H_
#define TRITONRL_EXEC_DEVICE_OPERATOR_CALL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/device/generators.h"
#include "exec/device/value.h"

namespace tritonrl::device {

// As the candidate's process asks for it.
struct OperatorCall {
  std::string name;      // "add"
  std::string overload;  // "Tensor"
  Value args;            // kList
  Value kwargs;          // kDict of texts
  int line = 0;          // of the candidate's source
};

// The call's values by the arguments of the operator's schema. It refers to the call.
struct BoundCall {
  const OperatorCall* call;
  c10::OperatorHandle handle;
  std::vector<const Value*> values;       // null: the default
  std::vector<const TensorRef*> tensors;  // on the device, in order of occurrence
  std::vector<const at::Tensor*> hosts;   // the others

  // The value of an argument; null if it is missing, null or None.
  const Value* Find(const char* argument) const;
  int64_t most_elements() const;  // of the largest tensor
  bool in_place() const;          // all that it returns are arguments that it wrote
  bool has_out() const;           // some of them are its out= arguments
};

// What one return value of an operator is.
struct Returned {
  int argument = -1;  // the i-th of `tensors`, or -1
  at::Tensor tensor;  // a new tensor, or new contents of the argument if it is defined
  Value other;        // neither: a number or null
};
struct ReturnedList {
  bool is_list = false;  // Tensor[]
  std::vector<Returned> items;
};

// InvalidArgument: there is no such operator, or the values do not fit its schema.
absl::StatusOr<BoundCall> Bind(const OperatorCall& call);

// How values become arguments.
struct ArgumentRules {
  std::function<at::Tensor(const Value&)> tensor;  // of kTensor and kHost
  at::Device device = at::kCPU;                    // of all device arguments
  const Generators* generators = nullptr;          // null: generator arguments are None
  bool writes_out = false;                         // see Run
};

// Runs the operator. Arguments named out are replaced by empty tensors, whose contents are then in
// Returned::tensor; with writes_out they are written themselves. LibTorch's exceptions become
// InvalidArgument, or ResourceExhausted without memory; messages are one line.
absl::StatusOr<std::vector<ReturnedList>> Run(const BoundCall& bound, const ArgumentRules& rules);

// Bytes of the tensors that the call would return, found without computing; nullopt where torch
// cannot tell. Errors as those of Run.
absl::StatusOr<std::optional<int64_t>> ReturnedBytes(const BoundCall& bound);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_OPERATOR_CALL_H_
