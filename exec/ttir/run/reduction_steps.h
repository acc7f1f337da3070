// Reductions, scans and maps over the axis of a tensor.
//
// Order of a reduction: element i is combined with element i + n/2 for the first half of the n
// elements, and so on with the results until one is left. That is how a GPU's threads exchange
// their parts, and each round is one operation over whole tensors. A scan with one commutative
// operation goes along the axis from element to element; with any other region it combines all
// elements with those 1, 2, 4, ... places before them.
#ifndef TRITONRL_EXEC_TTIR_RUN_REDUCTION_STEPS_H_
#define TRITONRL_EXEC_TTIR_RUN_REDUCTION_STEPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/ttir/run/copy_steps.h"
#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

// A tensor as [outer][axis][inner].
struct AxisShape {
  int64_t outer = 1;
  int64_t axis = 1;
  int64_t inner = 1;
};

struct ReductionData : StepData {
  AxisShape shape;
  bool is_scan = false;
  bool is_reverse = false;
  // The region can compute many pairs at once; else it runs once for each pair.
  bool is_vector = true;
  std::vector<int> bytes;           // of an element of each operand
  std::vector<bool> uniform_yield;  // of each operand
  // To [axis][outer][inner], turned around for a reverse scan, and back.
  std::vector<std::shared_ptr<const StridedCopy>> to_major;
  std::vector<std::shared_ptr<const StridedCopy>> from_major;
};

// Step::binary and Step::finish combine; in: tensor; out: result, two buffers of half the tensor.
bool RunFastReduce(const Step& step, Program& program);
bool RunFastScan(const Step& step, Program& program);

// codes[0] is the region. With k operands in: k tensors, k yielded values; out: k results, k whole
// tensors, k left and k right arguments of the region.
bool RunReduction(const Step& step, Program& program);

// tt.map_elementwise: the region's arguments are `pack` neighbours of each operand. in: operands,
// yielded values; out: results, arguments.
struct MapData : StepData {
  int64_t pack = 1;
  int64_t groups = 1;  // of neighbours
  bool is_vector = true;
  std::vector<int> operand_bytes;
  std::vector<int> result_bytes;
  std::vector<bool> uniform_yield;
};
bool RunMap(const Step& step, Program& program);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_REDUCTION_STEPS_H_
