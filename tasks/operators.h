// The operator grammar's terminals: how each operator reads in a reference program and in a Triton
// kernel, right and wrong.
#ifndef TRITONRL_TASKS_OPERATORS_H_
#define TRITONRL_TASKS_OPERATORS_H_

#include <string>
#include <vector>

namespace tritonrl {

// In all texts below x is the running value, y the second input, and $1, $2 stand for constants.

// Works on each element by itself.
struct Elementwise {
  std::string name;       // in plans and composition keys
  std::string reference;  // PyTorch expression
  std::string kernel;     // Triton expression
  // Plausible wrong Triton expressions: they compile and differ visibly from the right one. Two
  // for an operator that is hard (so that, at a high mistake rate, each is likelier than the right
  // one), one for the others.
  std::vector<std::string> wrong;
  // The values $1 and $2 may take; empty for an operator without constants.
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

// Works on whole rows, matrices or tensors.
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
  // Losses: the sum over all elements is wanted instead of the mean.
  bool sum = false;
};

// Scales softmax-like results back to about 1, where a tolerance can see mistakes.
// Not part of ElementwiseOperators(): it only ever follows such a normalization.
const Elementwise& ScaleOperator();

const std::vector<Elementwise>& ElementwiseOperators();
const std::vector<Core>& CoreOperators();

// `text` with $1 and $2 replaced.
std::string WithConstants(const std::string& text, const std::vector<std::string>& constants);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_OPERATORS_H_
