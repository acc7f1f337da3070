// What one run says about whose work the result is: operators and launches that were seen, and what
// became of the result without the kernels. The run-time side of the functionality layer.
#ifndef TRITONRL_VERIFY_RUN_EVIDENCE_H_
#define TRITONRL_VERIFY_RUN_EVIDENCE_H_

#include "exec/messages.pb.h"
#include "verify/verdict.pb.h"

namespace tritonrl {

// Fails the layer with NOT_LAUNCHED, RUNTIME_COMPUTE, HARD_CODED or DECORATION where the run
// contradicts what the source seemed to do; true if there is nothing to object to. Either way the
// layer gets evidence: which kernels were launched with which tensors, and which of them change
// nothing when they are left out (which on its own is no failure: a bias of zeros, an empty tail).
bool CheckRunTime(const ExecResult& result, FunctionalityResult* functionality);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_RUN_EVIDENCE_H_
