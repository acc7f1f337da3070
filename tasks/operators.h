// Tables of operators, each with its PyTorch expression, Triton code and wrong Triton code.
#ifndef TRITONRL_TASKS_OPERATORS_H_
#define TRITONRL_TASKS_OPERATORS_H_

#include <string>
#include <vector>

namespace tritonrl {

// An elementwise operator. In all texts x is the current value, y the second input, and $1 and $2
// are placeholders of constants.
struct Elementwise {
  std::string name;       // in plans and composition keys
  std::string reference;  // PyTorch expression
  std::string kernel;     // Triton expression
  // Plausible wrong Triton expressions, which compile and give clearly different values. A hard
  // operator has two, so that at a high mistake rate each is more likely than the right one; any
  // other operator has one.
  std::vector<std::string> wrong;
  // Possible values of ($1, $2); empty for an operator without constants.
  std::vector<std::vector<std::string>> constants;
  double (*evaluate)(double x, double y, double c1, double c2);  // the right value

  bool hard() const { return wrong.size() > 1; }
  bool uses_y() const { return kernel.find('y') != std::string::npos; }
};

enum class CoreKind {
  kReduction,      // [M, N] -> [M]
  kNormalization,  // [M, N] -> [M, N], coupling the values of a row
  kMatmul,         // [M, K] and [K, N] (or transposed) -> [M, N]
  kLoss,           // [M, N] and [M, N] -> []
};

// An operator on whole rows, matrices or tensors.
struct Core {
  std::string name;
  CoreKind kind;
  std::string reference;  // PyTorch expression
  // Kernel lines. Reductions and normalizations replace the row x of length N, whose masked
  // elements are `fill`, by the result x; losses replace x by each element's loss of x and y. Empty
  // for matmul.
  std::string kernel;
  std::string wrong;  // the same lines with a mistake; empty for matmul
  std::string fill;   // value of masked elements that does not change the result
  std::vector<std::vector<std::string>> constants;
  // Ratio of the result on a row of 512 elements to that on a row of 64, for range checks.
  double growth = 1;
  // Reductions: the row's result. Losses: one element's loss from x[0] and x[1].
  double (*evaluate)(const std::vector<double>& x, double c1) = nullptr;
  // Normalizations: the row's new values.
  void (*transform)(std::vector<double>* x) = nullptr;
  // Losses: true for the sum over all elements, false for the mean.
  bool sum = false;
};

// Scales the small values of softmax and normalize to about 1, so that the tolerance detects
// mistakes. Used only after these normalizations; not part of ElementwiseOperators().
const Elementwise& ScaleOperator();

const std::vector<Elementwise>& ElementwiseOperators();
const std::vector<Core>& CoreOperators();

// Returns `text` with $1 and $2 replaced by the constants.
std::string WithConstants(const std::string& text, const std::vector<std::string>& constants);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_OPERATORS_H_
