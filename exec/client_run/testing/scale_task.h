// A task with weights, y = relu(x) * w, and a candidate that solves it, for tests of whole runs.
#ifndef TRITONRL_EXEC_CLIENT_RUN_TESTING_SCALE_TASK_H_
#define TRITONRL_EXEC_CLIENT_RUN_TESTING_SCALE_TASK_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "exec/testing/run_request.h"

namespace tritonrl {

inline constexpr char kScaleReference[] = R"py(
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(64))
    def forward(self, x):
        return torch.relu(x) * self.w
def get_inputs():
    return [torch.randn(8, 64)]
def get_init_inputs():
    return []
)py";

// Tests replace INIT and LAST by statements.
inline constexpr char kScaleCandidate[] = R"py(
import torch, triton, triton.language as tl
@triton.jit
def scale(x, w, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + i
    v = tl.load(x + at, mask=i < n)
    tl.store(y + at, tl.where(v > 0, v, 0.0) * tl.load(w + i, mask=i < n), mask=i < n)
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        INIT
        self.w = torch.nn.Parameter(torch.randn(64))
    def forward(self, x):
        y = torch.empty_like(x)
        scale[(x.shape[0],)](x, self.w, y, x.shape[1], BLOCK=64)
        LAST
        return y
)py";
inline constexpr char kScaleLaunch[] = "scale[(x.shape[0],)](x, self.w, y, x.shape[1], BLOCK=64)";

inline void ExpectOutcome(const ExecResult& result, Outcome::Reason reason,
                          const std::string& message) {
  EXPECT_EQ(result.outcome().reason(), reason) << result.ShortDebugString();
  EXPECT_THAT(result.outcome().message(), testing::HasSubstr(message));
}

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_TESTING_SCALE_TASK_H_
