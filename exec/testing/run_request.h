// Requests for tests and benchmarks: a softmax task with an honest candidate, and a call that runs
// a request.
#ifndef TRITONRL_EXEC_TESTING_RUN_REQUEST_H_
#define TRITONRL_EXEC_TESTING_RUN_REQUEST_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/time/clock.h"
#include "exec/device_backend.h"

namespace tritonrl {

inline constexpr char kSoftmaxReference[] = R"py(
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
def get_inputs():
    return [torch.randn(64, 200)]
def get_init_inputs():
    return []
)py";

inline constexpr char kSoftmaxCandidate[] = R"py(
import torch, triton, triton.language as tl
@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + i, e / tl.sum(e, 0), mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=256)
        return y
)py";

// A request with a wall-clock limit of `seconds`.
inline ExecRequest MakeExecRequest(const std::string& candidate,
                                   const std::string& reference = kSoftmaxReference,
                                   double seconds = 20) {
  ExecRequest request;
  request.set_task_id("t");
  request.set_reference_source(reference);
  request.set_candidate_source(candidate);
  request.mutable_limits()->set_wall_seconds(seconds);
  return request;
}

// Runs the request with a deadline of two minutes. On an error it adds a test failure and returns
// an empty result.
inline ExecResult RunOrFail(DeviceBackend* backend, const ExecRequest& request) {
  auto result = backend->Run(request, absl::Now() + absl::Seconds(120));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : ExecResult();
}

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_RUN_REQUEST_H_
