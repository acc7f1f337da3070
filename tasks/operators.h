// Tables of operators: each as a PyTorch expression, as Triton code, and as wrong Triton code.
#ifndef TRITONRL_TASKS_OPERATORS_H_
#define TRITONRL_TASKS_OPERATORS_H_

#include <string>
#include <vector>

namespace tritonrl {

// An elementwise operator. In all texts x is the running value, y the second input, and $1, $2
// stand for constants.
struct Elementwise {
  std::string name;       // in plans and composition keys
  std::string reference;  // PyTorch expression
  std::string kernel;     // Triton expression
  // Plausible wrong Triton expressions: they compile, and their values differ visibly. Two for a
  // hard operator (at a high mistake rate each is likelier than the right one), one for any other.
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
  // Kernel lines. Reductions and normalizations turn the row x of length N (masked elements hold
  // `fill`) into the result x; losses turn x and y into each element's loss. Empty for matmul.
  std::string kernel;
  std::string wrong;  // the same lines with a mistake; for matmul empty
  std::string fill;   // value of masked elements that does not change the result
  std::vector<std::vector<std::string>> constants;
  // Factor from the value on a row of 64 elements to that on one of 512, for range checks.
  double growth = 1;
  // Reductions: the row's result. Losses: one element's loss from x[0] and x[1].
  double (*evaluate)(const std::vector<double>& x, double c1) = nullptr;
  // Normalizations: the row's new values.
  void (*transform)(std::vector<double>* x) = nullptr;
  // Losses: sum over all elements instead of the mean.
  bool sum = false;
};

// Scales softmax-like results to about 1, where a tolerance detects mistakes. Used only after such
// a normalization, and not part of ElementwiseOperators().
const Elementwise& ScaleOperator();

const std::vector<Elementwise>& ElementwiseOperators();
const std::vector<Core>& CoreOperators();

// `text` with $1 and $2 replaced.
std::string WithConstants(const std::string& text, const std::vector<std::string>& constants);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_OPERATORS_H_
