// A reference and an honest candidate for tests and the benchmark.
#ifndef TRITONRL_EXEC_TESTING_SOFTMAX_H_
#define TRITONRL_EXEC_TESTING_SOFTMAX_H_

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

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_SOFTMAX_H_
