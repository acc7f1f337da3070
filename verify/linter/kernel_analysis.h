// Reads a Triton kernel's body: a small data-flow analysis from its parameters to its stores.
#ifndef TRITONRL_VERIFY_LINTER_KERNEL_ANALYSIS_H_
#define TRITONRL_VERIFY_LINTER_KERNEL_ANALYSIS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verify/linter/ast.h"
#include "verify/linter/kernel_info.h"

namespace tritonrl::lint {

class KernelAnalysis {
 public:
  // What a name or dotted name in a kernel stands for.
  struct Callee {
    std::string symbol;              // full name of a library function: "triton.language.load"
    const Node* function = nullptr;  // definition of a function of the program (a device function)
    std::optional<double> constant;  // a number from the surrounding scope
    bool undefined = false;          // no such name: the compiler will say so
  };
  // Resolves a name as seen from the function `inside`.
  using Resolver = std::function<Callee(const Node* name, const Node* inside)>;

  explicit KernelAnalysis(Resolver resolver) : resolve_(std::move(resolver)) {}

  // `function` is a kFunctionDef node.
  KernelInfo Analyse(const Node* function);

 private:
  // What a value may depend on; bit i stands for parameter i (63 for all beyond).
  struct Taint {
    uint64_t params = 0;  // computed from the parameter itself: pointers and sizes
    uint64_t loaded = 0;  // computed from memory behind the parameter
    bool arith = false;   // a computation was applied to loaded data
    std::string address;  // pointers: what was added to the parameter; loaded copies: where from
    std::optional<double> constant;
  };
  // One call of the kernel or of a device function.
  struct Frame {
    const Node* function = nullptr;
    std::map<int, Taint> variables;
    std::map<int, std::string> texts;  // variables with one definition: its canonical text
    Taint returned;
    Taint control;  // conditions around the current statement
  };

  static constexpr int kMaxSteps = 60000;  // nodes looked at in one pass
  static constexpr int kMaxText = 300;     // length to which canonical texts are cut
  static void Clip(std::string* text);

  static Taint Join(const Taint& a, const Taint& b);
  static Taint Mix(const Taint& a, const Taint& b);  // result of an operation on both
  void Run(const Node* function, Frame* frame);
  void Statements(const Node* block, Frame* frame);
  void Statement(const Node* node, Frame* frame);
  void Nested(const Node* node, const Taint& condition, Frame* frame);
  void Assign(const Node* target, const Taint& taint, Frame* frame);
  Taint Eval(const Node* node, Frame* frame);
  Taint Union(const Node* node, Frame* frame);
  Taint Identifier(const Node* node, Frame* frame);
  Taint Binary(const Node* node, Frame* frame);
  Taint Call(const Node* node, Frame* frame);
  Taint CallLibrary(const std::string& name, const Node* arguments, Frame* frame);
  Taint CallMethod(const Taint& object, absl::string_view name, const Node* arguments,
                   Frame* frame);
  Taint CallDevice(const Node* function, const Node* arguments, Frame* frame);
  Taint Load(const Taint& pointer, const Taint& others);
  void Store(const Taint& pointer, const Taint& value, const Taint& others, bool atomic,
             Frame* frame);
  // Positional argument `index` or keyword `name`; null when absent.
  const Node* Argument(const Node* arguments, int index, absl::string_view name);
  Taint OtherArguments(const Node* arguments, const Node* a, const Node* b, Frame* frame);
  // A canonical text of an expression: definitions in place of variables, no layout.
  std::string Render(const Node* node, const Frame& frame);
  std::string AddressText(const Node* arguments, const Node* base, const Frame& frame);

  Resolver resolve_;
  KernelInfo info_;
  bool recording_ = false;
  int depth_ = 0;
  int steps_ = 0;
};

// Names of a function's parameters in order; stars and type annotations left out.
std::vector<const Node*> ParameterNames(const Node* function);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_KERNEL_ANALYSIS_H_
