// A kernel that breaks the GPU's context: a program of its own, as nothing works after it.
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "exec/device/cuda/testing/cuda_fixture.h"

namespace tritonrl::device {
namespace {

class PoisonedTest : public CudaFixture {};

TEST_F(PoisonedTest, AWildAccessIsNamedAndEndsTheContext) {
  const int x = Make(3000);
  // Far behind the storage, where no memory is.
  const absl::Status status =
      Launch(Kernel("vector_add.ttir"), {1 << 20, 1, 1},
             {Argument(x), Argument(x), Argument(x), Value::Integer(1 << 30)});
  printf("%s\n", status.ToString().c_str());
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), "kernel k: out of bounds")) << status;
  EXPECT_TRUE(Gpu().context->poisoned());
  EXPECT_EQ(Launch(0, {1, 1, 1}, {Argument(x), Argument(x), Argument(x), Value::Integer(1)}).code(),
            absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace tritonrl::device
