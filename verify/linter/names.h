// What the linter knows about names of Python, torch and other libraries with a yes or no.
#ifndef TRITONRL_VERIFY_LINTER_NAMES_H_
#define TRITONRL_VERIFY_LINTER_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tritonrl::lint {

enum NameTrait : uint32_t {
  kForbiddenModule = 1 << 0,     // top-level modules that must not be used
  kForbiddenBuiltin = 1 << 1,    // Python's functions whose mention is refused: exec, eval, open
  kForbiddenAttribute = 1 << 2,  // attributes refused wherever they stand: __globals__
  kForbiddenMethod = 1 << 3,     // methods that a candidate must not define: __torch_function__
  kForbiddenFunction = 1 << 4,   // functions of permitted modules: types.CodeType
  kPermittedFunction = 1 << 5,   // what is left of os, sys, importlib and threading
  kPythonBuiltin = 1 << 6,
  kTensorProperty = 1 << 7,    // attributes of tensors that are read without a call: x.T, x.shape
  kParameterName = 1 << 8,     // tensors that torch.nn modules hold: weight, running_mean
  kNeutralModule = 1 << 9,     // torch.nn classes whose call only reshapes or passes on
  kContainerModule = 1 << 10,  // torch.nn classes whose call runs their children, or never called
  kJit = 1 << 11,              // triton.jit under one of its names
  kStreamFunction = 1 << 12,   // makes or picks a stream
  kModuleMethod = 1 << 13,     // methods of torch.nn.Module that torch and the checker call
  kReexported = 1 << 14,       // modules that other modules hold as attributes: np, os
  kModuleSetting = 1 << 15,    // numbers and flags of torch.nn modules: eps, stride, affine
  kProcessSetting = 1 << 16,   // functions that seed generators or set what holds for the process
};
bool Is(NameTrait trait, absl::string_view name);

// Modules that must not be used: they give ways around the checks. Full names.
bool IsForbiddenModule(absl::string_view module);
// Functions of permitted modules that are refused: os.system, sys.settrace, torch.cuda.Stream.
inline constexpr absl::string_view kImportModule = "importlib.import_module";
bool IsForbiddenFunction(absl::string_view name);
// Names in letters that Python folds into others (NFKC), so that other spellings of eval mean eval.
bool FoldsIntoAnother(absl::string_view name);
// The module that `module`.`name` is when a library holds another one as an attribute, as
// triton.runtime.interpreter.np does; empty when it is not known to be one.
std::string ReexportedModule(absl::string_view module, absl::string_view name);
// What is wrong with a function that IsForbiddenFunction names, as the end of a sentence.
std::string WhyForbidden(absl::string_view name);
// Library settings that honest programs assign: torch.backends.*.
// True for functions that tell the time or wait.
bool IsClock(absl::string_view name);
// True for functions that seed generators or set what holds for the whole process.
bool ChangesProcess(absl::string_view name);
// True for Python's and numpy's random numbers.
bool IsChance(absl::string_view name);
// True for what replaces the driver that launches kernels.
bool IsDriverChange(absl::string_view name);
bool IsPermittedSetting(absl::string_view name);
// Environment variables that honest programs set.
bool IsPermittedVariable(absl::string_view name);
// Names of tensors that torch.nn modules hold, with weight_ih_l0 and the like.
bool IsParameterName(absl::string_view name);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_NAMES_H_
