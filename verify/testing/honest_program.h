// A program that passes all verifier layers, and results of a device backend for it.
#ifndef TRITONRL_VERIFY_TESTING_HONEST_PROGRAM_H_
#define TRITONRL_VERIFY_TESTING_HONEST_PROGRAM_H_

#include <string>

#include "exec/device_backend.h"

namespace tritonrl {

// Returns a program that the linter accepts; a different `tag` gives a different program.
inline std::string HonestProgram(const std::string& tag = "") {
  return "# " + tag + R"(
import torch
import torch.nn as nn
import triton
import triton.language as tl
@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.maximum(x, 0.0), mask=offs < n)
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
)";
}

// The result of a correct program that is `speedup` times as fast as the reference.
inline ExecResult GoodResult(double speedup) {
  ExecResult result;
  SetOutcome(Outcome::OK, "", result.mutable_outcome());
  result.set_compiled(true);
  result.set_correct(true);
  result.set_trials_run(5);
  result.set_max_error(1e-6);
  result.set_modelled(true);
  result.set_reference_seconds(1e-5 * speedup);
  result.set_candidate_seconds(1e-5);
  result.set_speedup(speedup);
  result.set_wall_seconds(0.1);
  KernelLaunch* launch = result.add_launches();
  launch->set_name("relu_kernel");
  launch->set_line(6);
  for (int size : {4, 1, 1}) launch->add_grid(size);
  return result;
}

// The modelled result of a run that ended with `reason`.
inline ExecResult BadResult(Outcome::Reason reason, const std::string& message) {
  ExecResult result;
  SetOutcome(reason, message, result.mutable_outcome());
  result.set_modelled(true);
  return result;
}

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_TESTING_HONEST_PROGRAM_H_
