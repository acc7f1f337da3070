// Loops, branches and graphs of blocks.
#ifndef TRITONRL_EXEC_TTIR_RUN_CONTROL_STEPS_H_
#define TRITONRL_EXEC_TTIR_RUN_CONTROL_STEPS_H_

#include <cstdint>
#include <vector>

#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

struct LoopData : StepData {
  Lane lane = Lane::kI32;  // of bounds and variable
  bool is_unsigned = false;
};

// in: lower bound, upper bound, step; out: the variable; codes[0] is the body, which leaves the
// carried values in their buffers.
bool RunFor(const Step& step, Program& program);

// codes: what computes the condition in[0], and the body.
bool RunWhile(const Step& step, Program& program);

// in[0]: condition; codes: then, else.
bool RunIf(const Step& step, Program& program);

// codes: the blocks, then the copies of the branches' values.
struct GraphData : StepData {
  struct Node {
    int32_t condition = kNoBuffer;  // index into Step::in
    int32_t target[2] = {-1, -1};   // index of a node; -1: the function returns
    int32_t copies[2] = {-1, -1};   // index of a code, or -1
  };
  std::vector<Node> nodes;
};
bool RunGraph(const Step& step, Program& program);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_CONTROL_STEPS_H_
