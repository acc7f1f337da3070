#include "exec/timing/roofline.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

RooflineModel Round() {
  return {.device_name = "round numbers",
          .launch_seconds = 1,
          .dram_bytes = 10,
          .l2_bytes = 100,
          .fp32_flops = 1000,
          .tensor_flops = 2000,
          .full_warps = 8,
          .program_seconds = 0.5};
}

KernelLaunch Launch(int programs, int warps) {
  KernelLaunch launch;
  for (const int size : {programs, 1, 1}) launch.add_grid(size);
  launch.set_num_warps(warps);
  return launch;
}

TEST(Roofline, TheSlowestResourceDecides) {
  KernelLaunch launch = Launch(2, 4);
  EXPECT_DOUBLE_EQ(LaunchSeconds(Round(), launch), 1 + 2 * 0.5);
  launch.set_unique_bytes(50);  // 5 s
  EXPECT_DOUBLE_EQ(LaunchSeconds(Round(), launch), 2 + 5);
  launch.set_sector_bytes(500);
  launch.set_atomic_bytes(100);  // 6 s together
  EXPECT_DOUBLE_EQ(LaunchSeconds(Round(), launch), 2 + 6);
  launch.set_flops(3000);
  launch.set_dot_flops(4000);  // 7 s together
  EXPECT_DOUBLE_EQ(LaunchSeconds(Round(), launch), 2 + 7);
  launch.set_tensor_flops(16000);  // 8 s
  EXPECT_DOUBLE_EQ(LaunchSeconds(Round(), launch), 2 + 8);
}

TEST(Roofline, FewWarpsUseAPartOfTheDevice) {
  KernelLaunch launch = Launch(1, 2);
  launch.set_unique_bytes(10);
  EXPECT_DOUBLE_EQ(LaunchSeconds(Round(), launch), 1 + 1 * 4 + 0.5);
  launch = Launch(100, 2);  // more than fill it
  launch.set_unique_bytes(10);
  EXPECT_DOUBLE_EQ(LaunchSeconds(Round(), launch), 1 + 1 + 50);
}

TEST(Roofline, AnOperatorOccupiesTheWholeDevice) {
  EXPECT_DOUBLE_EQ(OperatorSeconds(Round(), 1, 20, 1000), 1 + 2);
  EXPECT_DOUBLE_EQ(OperatorSeconds(Round(), 1, 20, 5000), 1 + 5);
  EXPECT_DOUBLE_EQ(OperatorSeconds(Round(), 3, 20, 5000), 3 + 5);
}

TEST(Roofline, ModelsHaveNames) {
  EXPECT_EQ(FindRooflineModel("")->device_name, FindRooflineModel("l40s")->device_name);
  for (const char* name : {"l40s", "l40s_mini"}) {
    EXPECT_NE(FindRooflineModel(name)->device_name.find("(modelled)"), std::string::npos);
  }
  EXPECT_EQ(FindRooflineModel("h100").status().message(),
            "device_model \"h100\" is unknown; known are l40s, l40s_mini");
}

// Two kernels: one bound by memory, one by operations; a view costs nothing.
TEST(ModelReferenceTest, SumsOperatorsThatRunKernels) {
  ReferenceResult reference_result;
  const auto add = [&](int64_t calls, double bytes, double flops, bool free) {
    AtenOp* const op = reference_result.run.add_reference_ops();
    op->set_calls(calls);
    op->set_bytes(bytes);
    op->set_flops(flops);
    op->set_free(free);
  };
  add(2, 864e3, 1, false);
  add(1, 8, 91.6e6, false);
  add(5, 1e9, 1e9, true);
  ExecRequest request;
  ASSERT_TRUE(ModelReference(request, &reference_result).ok());
  EXPECT_DOUBLE_EQ(reference_result.run.reference_seconds(), 3 * 2.5e-6 + 1e-6 + 1e-6);
  EXPECT_EQ(reference_result.run.device_name(), "NVIDIA L40S (modelled)");
  EXPECT_EQ(reference_result.bytes_per_second, 864e9);
  request.set_skip_timing(true);
  ReferenceResult untimed;
  ASSERT_TRUE(ModelReference(request, &untimed).ok());
  EXPECT_FALSE(untimed.run.has_reference_seconds());
  request.set_device_model("abacus");
  EXPECT_FALSE(ModelReference(request, &untimed).ok());
}

}  // namespace
}  // namespace tritonrl
