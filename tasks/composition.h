// Random tasks: a composition of operators and a shape. The grammar has one rule per family:
//   chain of elementwise operators
//   chain, row reduction, at most one elementwise operator
//   chain, softmax or another normalization of rows, chain
//   GEMM, chain
//   chain, loss
#ifndef TRITONRL_TASKS_COMPOSITION_H_
#define TRITONRL_TASKS_COMPOSITION_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "tasks/operators.h"

namespace tritonrl {

enum class Family { kElementwise, kReduction, kNormalization, kMatmul, kLoss };

// One operator with its constants. Exactly one of the pointers is set; it points into a table of
// tasks/operators.h.
struct OperatorUse {
  const Elementwise* elementwise = nullptr;
  const Core* core = nullptr;
  std::vector<std::string> constants;

  const std::string& name() const { return elementwise ? elementwise->name : core->name; }
};

struct Composition {
  Family family = Family::kElementwise;
  std::vector<OperatorUse> uses;  // in the order in which they are applied

  // 1: a single operator; 2: several operators, which can be fused.
  int level() const { return uses.size() == 1 ? 1 : 2; }
  // Index of the operator that is not elementwise; -1 if there is none.
  int core_index() const;
  bool uses_y() const;  // forward has a second input y
  // Family, operators and constants, e.g. "reduction:mul(2) tanh sum". Compositions with equal keys
  // differ in their shapes at most.
  std::string Key() const;
};

// GEMM: x is [rows, inner] and y is [inner, cols], or one of them transposed. Other families: all
// inputs are [rows, cols].
struct TaskShape {
  int rows = 0;
  int cols = 0;
  int inner = 0;
};

// True for one composition in ten, by a hash of its key. Held-out tasks have only such
// compositions; the corpus and the training tasks have none of them.
bool IsHeldOut(const Composition& composition);

// Draws a family with the weights 3:3:3:2:1 (in the order of the enum).
Family DrawFamily(Philox* random);

// Draws a composition of a family with one operator (level 1) or several (level 2). At level 2, on
// normal inputs, every value stays in the range where float32 keeps five digits, and each
// elementwise operator changes its input enough that the tolerance detects a mistake in it.
Composition DrawComposition(Family family, int level, Philox* random);

// Draws 8 to 32 rows and 33 to 512 columns; for GEMM, sides from 32 to 128, multiples of 16.
TaskShape DrawShape(Family family, Philox* random);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_COMPOSITION_H_
