// What the linter knows about names of Python, torch and other libraries.
#ifndef TRITONRL_VERIFY_LINTER_NAMES_H_
#define TRITONRL_VERIFY_LINTER_NAMES_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tritonrl::lint {

enum NameTrait : uint32_t {
  kForbiddenModule = 1 << 0,    // by its first word: other kernel languages, processes, network
  kForbiddenBuiltin = 1 << 1,   // runs text: exec, eval
  kForbiddenFunction = 1 << 2,  // of permitted modules, full names: os.system
  kLookUp = 1 << 3,             // finds or replaces things by means that the source does not show
  kOwnsCall = 1 << 4,  // with it, a call of a module or function of torch may run other code
  // Functions of torch and torch.nn.functional, and methods of tensors.
  kWork = 1 << 5,         // products, convolutions, pools, norms, attention, losses
  kElementwise = 1 << 6,  // activations, exp, softmax: honest on a handful of elements
  // torch.nn classes whose call is kWork or kElementwise.
  kWorkModule = 1 << 7,
  kElementwiseModule = 1 << 8,
  kSameSize = 1 << 9,  // methods of tensors whose result has as many elements
};
// All traits of a name, as bits.
uint32_t TraitsOf(absl::string_view name);
bool Is(NameTrait trait, absl::string_view name);

bool IsForbiddenModule(absl::string_view module);
bool IsForbiddenFunction(absl::string_view name);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_NAMES_H_
