#include "exec/sandbox/sandbox.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/run_command.h"
#include "exec/sandbox/cgroup.h"
#include "exec/sandbox/seccomp_policy.h"

namespace tritonrl {
namespace {

TEST(SandboxTest, KindsHaveNames) {
  EXPECT_EQ(*ParseSandboxKind("bubblewrap"), SandboxKind::kBubblewrap);
  EXPECT_EQ(*ParseSandboxKind("none"), SandboxKind::kNone);
  const absl::Status error = ParseSandboxKind("jail").status();
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(error.message().find("\"jail\""), absl::string_view::npos);
}

TEST(SandboxTest, RunsACommandAsNobodyWithoutTheHostsFiles) {
  ASSERT_TRUE(CheckSandbox(SandboxKind::kBubblewrap).ok())
      << CheckSandbox(SandboxKind::kBubblewrap);
  SandboxSpec spec;
  spec.env = {{"PATH", "/usr/bin"}, {"ONLY", "this"}};
  auto result = RunCommand(
      SandboxCommand(spec, {"/usr/bin/sh", "-c", "id -u; ls -a /tmp /home 2>&1; env | sort"}));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(result->out.find("ONLY=this"), std::string::npos) << result->out;
  EXPECT_EQ(result->out.find("HOME="), std::string::npos) << result->out;
  EXPECT_NE(result->out.find("'/home'"), std::string::npos) << result->out;  // no such folder
  if (geteuid() == 0) {
    EXPECT_EQ(result->out.substr(0, 6), "65534\n") << result->out;
  }
}

TEST(SandboxTest, NoneStillCleansTheEnvironmentAndDropsTheUser) {
  ASSERT_TRUE(CheckSandbox(SandboxKind::kNone).ok());
  SandboxSpec spec;
  spec.kind = SandboxKind::kNone;
  spec.env = {{"ONLY", "this"}};
  auto result =
      RunCommand(SandboxCommand(spec, {"/usr/bin/sh", "-c", "/usr/bin/id -u; /usr/bin/env"}));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(result->out.find("ONLY=this"), std::string::npos) << result->out;
  EXPECT_EQ(result->out.find("HOME="), std::string::npos) << result->out;
  if (geteuid() == 0) {
    EXPECT_EQ(result->out.substr(0, 6), "65534\n") << result->out;
  }
}

TEST(SandboxTest, SaysWhatIsMissing) {
  // Bubblewrap is the only program that is looked up on PATH.
  const std::string path = getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const absl::Status status = CheckSandbox(SandboxKind::kBubblewrap);
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("install the package bubblewrap"), absl::string_view::npos)
      << status;
  EXPECT_NE(status.message().find("sandbox \"none\""), absl::string_view::npos) << status;
}

TEST(SandboxTest, SaysWhichFolderIsClosed) {
  auto folder = MakeTempDirectory("closed");
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string inner = JoinPath(*folder, "site");
  ASSERT_TRUE(CreateDirectories(inner).ok());
  const absl::Status status = CheckReadableByAll(inner);
  if (geteuid() == 0) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("is closed to others"), absl::string_view::npos) << status;
  } else {
    EXPECT_TRUE(status.ok()) << status;  // the worker is the same user
  }
  EXPECT_TRUE(CheckReadableByAll("/usr/bin/env").ok());
  EXPECT_FALSE(CheckReadableByAll("/nonexistent").ok());
  ASSERT_TRUE(RemoveTree(*folder).ok());
}

TEST(CgroupTest, HoldsAProcessAndGoesAway) {
  std::vector<std::string> files;
  {
    WorkerCgroup group =
        WorkerCgroup::Create("test", {.memory_bytes = 64 << 20, .processes = 8, .cores = 1});
    files = group.procs_files();
    EXPECT_EQ(files.empty(), group.description() == "no cgroup");
    EXPECT_EQ(group.OomKills(), 0);
    SandboxSpec spec;
    spec.kind = SandboxKind::kNone;
    spec.cgroup_procs = files;
    // The process joins before the command runs, so the command sees itself in the group.
    auto result = RunCommand(SandboxCommand(spec, {"/usr/bin/cat", "/proc/self/cgroup"}));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 0) << result->err;
    EXPECT_EQ(result->out.find("/tritonrl-") != std::string::npos, !files.empty()) << result->out;
  }
  for (const std::string& file : files) EXPECT_FALSE(FileExists(file)) << file;
}

TEST(CgroupTest, CountsWhatTheKernelKilled) {
  WorkerCgroup group = WorkerCgroup::Create("oom", {.memory_bytes = 32 << 20});
  if (!group.limits_memory()) {
    EXPECT_EQ(group.description(), "no cgroup");  // nothing to count on this host
    return;
  }
  SandboxSpec spec;
  spec.kind = SandboxKind::kNone;
  spec.cgroup_procs = group.procs_files();
  auto result =
      RunCommand(SandboxCommand(spec, {"/usr/bin/python3", "-c", "x = b'x' * (200 << 20)"}));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->signal, 9);
  EXPECT_EQ(group.OomKills(), 1);
}

TEST(CgroupTest, StopsWhoTakesMoreCoresThanGiven) {
  WorkerCgroup group =
      WorkerCgroup::Create("cores", {.memory_bytes = int64_t{1} << 30, .cores = 0.1});
  if (!group.limits_cores()) {
    EXPECT_EQ(group.description().find("cpu"), std::string::npos);
    return;
  }
  SandboxSpec spec;
  spec.kind = SandboxKind::kNone;
  spec.cgroup_procs = group.procs_files();
  // The command uses the core time of six periods, so the kernel must stop it at least once.
  const auto result = RunCommand(SandboxCommand(
      spec, {"/usr/bin/python3", "-c", "import time\nwhile time.process_time() < 0.06: pass"}));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 0) << result->err;
  EXPECT_GE(group.Throttled(), 1);
}

TEST(CgroupTest, ARefusedCoreLimitIsNotInForce) {
  const WorkerCgroup group = WorkerCgroup::Create("many-cores", {.cores = 1e12});
  EXPECT_FALSE(group.limits_cores());
  const std::string description = group.description();
  EXPECT_TRUE(description == "no cgroup" || description == "cgroup v1 core share") << description;
}

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
