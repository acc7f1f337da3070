// Reads a Triton kernel's body: a small data-flow analysis from its parameters to its stores, for
// the constants of one launch.
#ifndef TRITONRL_VERIFY_LINTER_KERNEL_ANALYSIS_H_
#define TRITONRL_VERIFY_LINTER_KERNEL_ANALYSIS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "verify/linter/ast.h"
#include "verify/linter/kernel_info.h"
#include "verify/linter/kernel_taint.h"

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
  // What is certain about arguments of the launch, by parameter: numbers, strings, None, or only
  // that a number is not negative.
  using Constants = std::map<int, Taint>;

  // `budget` counts down with every node looked at; at 0 the analysis gives up.
  KernelAnalysis(Resolver resolver, int* budget) : resolve_(std::move(resolver)), budget_(budget) {}

  // `function` is a kFunctionDef node.
  KernelInfo Analyse(const Node* function, const Constants& constants);

 private:
  // One call of the kernel or of a device function.
  struct Frame {
    const Node* function = nullptr;
    std::map<int, Taint> variables;
    std::map<int, std::string> texts;  // variables with one definition: its canonical text
    Taint returned;
    bool returns = false;
    Taint control;   // conditions around the current statement
    int nested = 0;  // branches and loops around it: assignments may or may not happen
  };
  // A condition (null for else) and the block that it guards.
  using Clause = std::pair<const Node*, const Node*>;

  static constexpr int kMaxLoopRounds = 4;  // until what flows around a loop comes to rest

  bool Spend();  // false when the budget is used up
  const Callee& Resolve(const Node* name, const Frame& frame);

  // --- statements; true when control does not go on behind it ---
  bool Statements(const Node* block, Frame* frame);
  bool Statement(const Node* node, Frame* frame);
  bool Choose(const std::vector<Clause>& clauses, size_t index, Frame* frame);
  void Loop(const Node* node, Frame* frame);
  void Nested(const Node* node, Frame* frame);
  void Assignment(const Node* node, Frame* frame);
  void Assign(const Node* target, const Taint& taint, Frame* frame);
  bool IsEmptyRange(const Node* iterable, Frame* frame);

  // --- expressions ---
  Taint Eval(const Node* node, Frame* frame);
  Taint Union(const Node* node, Frame* frame);
  Taint Identifier(const Node* node, Frame* frame);
  Taint Binary(const Node* node, Frame* frame);
  Taint Compare(const Node* node, Frame* frame);
  Taint Boolean(const Node* node, Frame* frame);
  Taint Unary(const Node* node, Frame* frame);
  // A canonical text of an expression: definitions in place of variables, no layout.
  std::string Render(const Node* node, const Frame& frame);
  std::string AddressText(const Node* arguments, const Node* base, const Frame& frame);

  // --- calls ---
  Taint Call(const Node* node, Frame* frame);
  Taint CallLibrary(const std::string& name, const Node* arguments, Frame* frame);
  // Functions that do not touch memory.
  Taint CallMath(absl::string_view name, const Node* arguments, const Node* first_node,
                 const Taint& first, Frame* frame);
  Taint CallMethod(const Taint& object, absl::string_view name, const Node* arguments,
                   Frame* frame);
  Taint CallDevice(const Node* function, const Node* arguments, Frame* frame);
  // True where a store or an atomic operation certainly writes nothing.
  bool IsMaskedOut(const Node* mask, Frame* frame);
  Taint Where(const Taint& condition, const Node* arguments, Frame* frame);
  Taint Load(const Taint& pointer, const Taint& others);
  void Store(const Taint& pointer, const Taint& value, const Taint& others, bool atomic,
             Frame* frame);
  // Positional argument `index` or keyword `name`; null when absent.
  static const Node* Argument(const Node* arguments, int index, absl::string_view name);
  Taint OtherArguments(const Node* arguments, const Node* a, const Node* b, Frame* frame);

  Resolver resolve_;
  int* budget_;
  std::unordered_map<const Node*, Callee> resolved_;
  KernelInfo info_;
  bool changed_ = false;  // some variable did, in this round of the innermost loop
  int loads_ = 0;
  int depth_ = 0;
};

// Names of a function's parameters in order; stars and type annotations left out.
std::vector<const Node*> ParameterNames(const Node* function);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_KERNEL_ANALYSIS_H_
