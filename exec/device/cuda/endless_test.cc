// A kernel that never ends: a program of its own, as it keeps the GPU's context busy for good.
#include <unistd.h>

#include "absl/time/clock.h"
#include "exec/device/cuda/testing/cuda_fixture.h"

namespace tritonrl::device {
namespace {

class EndlessTest : public CudaFixture {};

TEST_F(EndlessTest, ADeadlineEndsTheWait) {
  const int lock = Make(1, at::kInt);
  const int count = Make(1, at::kInt);
  const int x = Make(64);
  View(lock, at::kInt).fill_(1);  // taken, and nobody gives it back
  const int64_t kernel = Kernel("spin_lock.ttir");
  const absl::Time began = absl::Now();
  device_->set_deadline(began + absl::Seconds(1));
  const absl::Status status =
      Launch(kernel, {1, 1, 1}, {Argument(lock, at::kInt), Argument(count, at::kInt), Argument(x)});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_LT(absl::Now() - began, absl::Seconds(20));
  EXPECT_TRUE(Gpu().context->poisoned());
  // Nothing of ours waits for the kernel any more. The driver would, at the process's regular end.
  device_.reset();
  Gpu().arena->Reset();
  fflush(stdout);
  _exit(HasFailure() ? 1 : 0);
}

}  // namespace
}  // namespace tritonrl::device
