// Steps that look at operands, in launches that check (LaunchOptions::check).
#ifndef TRITONRL_EXEC_TTIR_RUN_CHECK_STEPS_H_
#define TRITONRL_EXEC_TTIR_RUN_CHECK_STEPS_H_

#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

struct OperandCheckData : StepData {
  Lane lane = Lane::kI32;
  int width = 0;  // of the number that is shifted; 0: the operand is a divisor
};

// in: the divisor or the number of places to shift by.
bool RunOperandCheck(const Step& step, Program& program);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_CHECK_STEPS_H_
