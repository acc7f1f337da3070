// The run-time audit of the functionality layer: what a run says of its kernels. Operators of torch
// that compute never come here: the executor refuses them (RUNTIME_COMPUTE).
#ifndef TRITONRL_VERIFY_PIPELINE_RUNTIME_AUDIT_H_
#define TRITONRL_VERIFY_PIPELINE_RUNTIME_AUDIT_H_

#include "exec/messages.pb.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

enum class RunAudit {
  kNone,
  kLaunches,  // forward launches kernels
  kAll,       // and they make the result: ablation, input sensitivity
};

// Fails the layer with NOT_LAUNCHED, HARD_CODED or DECORATION if the run shows that the kernels do
// not make the result; returns true if the layer passes. It adds evidence of the launched kernels
// with their tensors, and of each kernel whose ablation changes nothing. One such kernel among
// others is no failure: it may add a bias of zeros, or process an empty tail.
bool AuditRuntime(const ExecResult& result, RunAudit audit, LayerResult* functionality);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PIPELINE_RUNTIME_AUDIT_H_
