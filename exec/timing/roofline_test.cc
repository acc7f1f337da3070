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

}  // namespace
}  // namespace tritonrl
