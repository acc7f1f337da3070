// Random tasks: a composition of operators and a shape, drawn from the grammar
//   chain of elementwise operators
//   chain, row reduction, at most one operator
//   chain, softmax or another normalization of rows, chain
//   matrix product, chain
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
  std::vector<OperatorUse> uses;  // in the order they are applied

  // 1: a single operator; 2: several, which can be fused.
  int level() const { return uses.size() == 1 ? 1 : 2; }
  // The operator that is not elementwise; -1 if there is none.
  int core_index() const;
  bool uses_y() const;  // takes a second input
  // Family, operators and constants, e.g. "reduction:mul(2) tanh sum". Equal keys mean the same
  // computation on tensors of any shape.
  std::string Key() const;
};

// Matrix products: x is [rows, inner], y is [inner, cols] (or transposed). Others: all inputs are
// [rows, cols].
struct TaskShape {
  int rows = 0;
  int cols = 0;
  int inner = 0;
};

// True for one composition in ten, by a hash of its key. Held-out tasks consist of these alone; the
// corpus and the training tasks contain none.
bool IsHeldOut(const Composition& composition);

// Draws a family with the weights 3:3:3:2:1 (in the order of the enum), then a composition.
Family DrawFamily(Philox* random);

// A composition of a family with one operator (level 1) or several (level 2). On normal inputs
// every value stays in the range where float32 keeps five digits, and each operator changes its
// input enough that the tolerance detects a mistake in it.
Composition DrawComposition(Family family, int level, Philox* random);

// Rows 8 to 32, columns 33 to 512; sides of a matrix product multiples of 16 from 32 to 128.
TaskShape DrawShape(Family family, Philox* random);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_COMPOSITION_H_
