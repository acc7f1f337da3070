// A device backend for tests: answers by a function, counts calls, can hold them back.
#ifndef TRITONRL_VERIFY_TESTING_FAKE_BACKEND_H_
#define TRITONRL_VERIFY_TESTING_FAKE_BACKEND_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "exec/device_backend.h"

namespace tritonrl {

class FakeBackend : public DeviceBackend {
 public:
  using Answer = std::function<absl::StatusOr<ExecResult>(const ExecRequest&, int call)>;
  explicit FakeBackend(Answer answer) : answer_(std::move(answer)) {}

  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time) override {
    int call;
    {
      absl::MutexLock lock(&mutex_);
      call = calls_++;
      ++running_;
      max_running_ = std::max(max_running_, running_);
      requests_.push_back(request);
    }
    absl::StatusOr<ExecResult> result = answer_(request, call);
    absl::MutexLock lock(&mutex_);
    --running_;
    return result;
  }
  int concurrency() const override { return 2; }
  std::string name() const override { return "fake"; }
  bool modelled() const override { return true; }
  std::string sandbox_description() const override { return "none"; }

  int calls() const {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }
  int max_running() const {
    absl::MutexLock lock(&mutex_);
    return max_running_;
  }
  std::vector<ExecRequest> requests() const {
    absl::MutexLock lock(&mutex_);
    return requests_;
  }

  // A run in which everything went well: `speedup` times as fast as the reference.
  static ExecResult Good(double speedup) {
    ExecResult result;
    result.set_outcome(EXEC_OK);
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

  static ExecResult Bad(ExecOutcome outcome, const std::string& message) {
    ExecResult result;
    result.set_outcome(outcome);
    result.set_message(message);
    result.set_modelled(true);
    return result;
  }

 private:
  const Answer answer_;
  mutable absl::Mutex mutex_;
  int calls_ = 0;
  int running_ = 0;
  int max_running_ = 0;
  std::vector<ExecRequest> requests_;
};

// A program that the linter accepts; `tag` makes it differ from others.
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

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_TESTING_FAKE_BACKEND_H_
