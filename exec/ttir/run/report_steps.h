// tt.assert and tt.print.
#ifndef TRITONRL_EXEC_TTIR_RUN_REPORT_STEPS_H_
#define TRITONRL_EXEC_TTIR_RUN_REPORT_STEPS_H_

#include <string>
#include <vector>

#include "exec/ttir/run/step.h"
#include "exec/ttir/types.h"

namespace tritonrl::ttir {

struct ReportData : StepData {
  struct Value {
    Type type;
    bool uniform = true;  // the buffer holds one element
    bool is_signed = true;
  };
  std::string text;  // the assertion's message, or what stands before the printed values
  bool is_hex = false;
  std::vector<Value> values;  // of Step::in
};

// Aborted if an element of in[0] is false.
bool RunAssert(const Step& step, Program& program);
// Lines "pid (1, 0, 0) idx (3) text: 5", as the GPU prints them.
bool RunPrint(const Step& step, Program& program);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_REPORT_STEPS_H_
