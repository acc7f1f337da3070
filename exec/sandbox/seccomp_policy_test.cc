#include "exec/sandbox/seccomp_policy.h"

#include <gtest/gtest.h>
#include <linux/filter.h>

namespace tritonrl {
namespace {

TEST(SeccompPolicyTest, ThisKernelEnforcesIt) {
  const absl::Status status = CheckSeccompPolicy();
  EXPECT_TRUE(status.ok()) << status;
}

TEST(SeccompPolicyTest, IsAProgramThatTheKernelTakes) {
  for (const bool unix_sockets : {false, true}) {
    const auto program = BuildSeccompPolicy({.unix_sockets = unix_sockets});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->size() % sizeof(sock_filter), 0u);
    EXPECT_LT(program->size() / sizeof(sock_filter), BPF_MAXINSNS);
  }
  EXPECT_NE(*BuildSeccompPolicy({}), *BuildSeccompPolicy({.unix_sockets = true}));
}

}  // namespace
}  // namespace tritonrl
