// What the functions of torch and the methods of tensors do. Whatever is not listed as harmless and
// touches a tensor counts as computation.
#ifndef TRITONRL_VERIFY_LINTER_TABLES_H_
#define TRITONRL_VERIFY_LINTER_TABLES_H_

#include "absl/strings/string_view.h"

namespace tritonrl::lint {

// What an attribute or method of a tensor does, "x.name" or "x.name(...)".
enum class TensorUse {
  kView,      // the same elements: view, transpose, contiguous, casts and device moves too
  kCopy,      // the same elements in new storage: clone, repeat
  kAllocate,  // new storage that holds nothing or constants: new_empty
  kHost,      // sizes, strides, dtype: no elements
  kAddress,   // data_ptr
  kFill,      // writes constants or another tensor's elements into it, returns it: copy_, zero_
  kItem,      // one element as a Python number
  kToPython,  // all elements to Python or NumPy
  kHook,      // registers code to run later
  kCompute,   // anything else
};
TensorUse TensorUseOf(absl::string_view name);

// What a function of torch does; `name` is the full name, "torch.empty_like".
enum class TorchUse {
  kAllocate,
  kConstant,  // allocates and fills with what is written in the program: ones, full, tensor, arange
  kRandom,
  kView,          // first argument's elements
  kCopy,          // cat, stack, clone
  kHost,          // no elements: finfo, manual_seed
  kCheck,         // the same, and harmless when given tensors: numel, is_tensor
  kWrapper,       // a decorator or context that runs its function as it is: no_grad, inference_mode
  kModuleClass,   // torch.nn.Linear: a call makes a module
  kParameter,     // torch.nn.Parameter(t)
  kInit,          // torch.nn.init.*
  kTensorMethod,  // torch.Tensor.name(t, ...)
  kCustomOp,      // torch.library.custom_op and triton_op: wrap a function
  kWrapKernel,    // torch.library.wrap_triton(kernel)
  kForbidden,     // torch.compile, torch.jit, torch.utils.cpp_extension, CUDA graphs
  kCompute,
};
TorchUse TorchUseOf(absl::string_view name);

// True for a function of torch or NumPy that computes on what it is given; `name` is the full name.
// False for their classes, types and constants.
bool IsComputingFunction(absl::string_view name);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_TABLES_H_
