#include "exec/sandbox/job_filter.h"

#include <gtest/gtest.h>
#include <linux/filter.h>

namespace tritonrl {
namespace {

TEST(JobFilterTest, ThisKernelEnforcesIt) {
  const absl::Status status = CheckJobFilter();
  EXPECT_TRUE(status.ok()) << status;
}

TEST(JobFilterTest, IsAProgramThatTheKernelTakes) {
  for (const bool unix_sockets : {false, true}) {
    const auto program = JobFilter({.unix_sockets = unix_sockets});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->size() % sizeof(sock_filter), 0u);
    EXPECT_LT(program->size() / sizeof(sock_filter), BPF_MAXINSNS);
  }
  EXPECT_NE(*JobFilter({}), *JobFilter({.unix_sockets = true}));
}

}  // namespace
}  // namespace tritonrl
