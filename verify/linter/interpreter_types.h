// What the abstract interpreter keeps of calls, tensors and launches.
#ifndef TRITONRL_VERIFY_LINTER_INTERPRETER_TYPES_H_
#define TRITONRL_VERIFY_LINTER_INTERPRETER_TYPES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "verify/linter/ast.h"
#include "verify/linter/kernel_info.h"
#include "verify/linter/values.h"

namespace tritonrl::lint {

// The arguments of a call.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
  Value rest = nullptr;  // what further arguments may be (from *x of unknown length or **x)
  int line = 0;

  Value Get(int index, absl::string_view name) const;  // null when absent
  std::vector<Value> All() const;
};

using Variables = std::vector<std::pair<int, Value>>;

// A function that is being run.
struct Frame {
  const FunctionObject* function = nullptr;
  Scope* scope = nullptr;
  Value self = nullptr;      // first argument, for super()
  Value returned = nullptr;  // join of what return statements gave
  Value yielded = nullptr;
  bool counted = false;         // went on only by how often forward was called
  bool is_forward = false;      // the outermost frame of phase kForward
  uint64_t callables = 0;       // a number for the functions among its arguments
  size_t early_return = 0;      // objects that there were where a path may have returned
  int tries = 0;                // enclosing blocks that may end anywhere
  Variables tried;              // what was bound in them
  std::vector<Variables> left;  // variables where a path may have left the running loop
};

// The memory of a tensor.
struct Storage {
  StorageSet sources;         // its elements may come from these
  std::vector<int> launches;  // launches that wrote it
  bool constant = false;      // filled with what stands in the program
  StorageSet addresses;       // it holds the addresses of these storages
  bool input = false;         // an argument of forward or a parameter of the model
  bool argument = false;      // an argument of forward
};

struct Launch {
  const KernelInfo* info = nullptr;
  int line = 0;
  StorageSet arguments;
};

// A value that a return statement of forward gives.
struct Returned {
  Value value;
  int line;
  bool guarded_empty;  // under a test for an empty input
};

// Code that runs later, without a call of it in sight.
struct Hidden {
  Value value = nullptr;  // something callable, or an object whose methods may be called
  int line = 0;
  const Node* comprehension = nullptr;  // or a generator that is used up later,
  Scope* scope = nullptr;               // in this scope
  std::vector<Value> iterables = {};    // or a function that gets elements of these
};

// Passes of loops of unknown length, by number over the whole interpretation.
struct LoopPasses {
  int all = 0;      // that were begun
  int current = 0;  // the innermost one that runs, 0 outside of loops
  int first = 0;    // the first one of its loop
  // A sum over what went into objects that their own pass made: a loop is at rest only when it is
  // the same for two passes.
  uint64_t made = 0;
};

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_INTERPRETER_TYPES_H_
