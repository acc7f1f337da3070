#include "base/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

CommandResult Shell(const std::string& script, RunCommandOptions options = {}) {
  return RunCommand({"/bin/sh", "-c", script}, options).value();
}

// Whether the process runs. A zombie counts as ended.
bool Alive(pid_t pid) {
  absl::StatusOr<std::string> stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
  return stat.ok() && stat->find(") Z") == std::string::npos;
}

TEST(RunCommandTest, CollectsOutputAndExitCode) {
  CommandResult result = Shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(result.ok());
}

TEST(RunCommandTest, FeedsInputLongerThanAPipe) {
  RunCommandOptions options;
  options.input = std::string(1 << 20, 'x');
  EXPECT_EQ(Shell("cat", options).out, options.input);
  EXPECT_TRUE(Shell("true", options).ok());  // a child that does not read is no error
}

TEST(RunCommandTest, CutsEndlessOutput) {
  RunCommandOptions options;
  options.max_output = 1000;
  CommandResult result = Shell("head -c 5000000 /dev/zero", options);
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.out.size(), 1000);
}

TEST(RunCommandTest, TimeoutKillsTheWholeGroup) {
  RunCommandOptions options;
  options.timeout = absl::Milliseconds(300);
  CommandResult result = Shell("sleep 1000 & echo $!; wait", options);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
  int pid = 0;
  ASSERT_TRUE(absl::SimpleAtoi(result.out, &pid));
  for (int i = 0; i < 100 && Alive(pid); ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_FALSE(Alive(pid));
}

TEST(RunCommandTest, DoesNotWaitForABackgroundProcess) {
  RunCommandOptions options;
  options.timeout = absl::Seconds(60);
  CommandResult result = Shell("sleep 1000 & echo done", options);
  EXPECT_EQ(result.out, "done\n");
  EXPECT_FALSE(result.timed_out);
}

TEST(RunCommandTest, Environment) {
  RunCommandOptions options;
  options.env = {{"FRUIT", "pear"}};
  EXPECT_EQ(Shell("echo $FRUIT$HOME", options).out,
            "pear" + std::string(getenv("HOME") ?: "") + "\n");
  options.clear_env = true;
  EXPECT_EQ(Shell("echo $FRUIT$HOME", options).out, "pear\n");
}

TEST(SubprocessTest, MissingProgramAndFolder) {
  SubprocessOptions options;
  options.argv = {"no_such_program_here"};
  EXPECT_EQ(Subprocess::Start(options).status().code(), absl::StatusCode::kNotFound);
  options.argv = {"/no/such/program"};
  EXPECT_EQ(Message(Subprocess::Start(options).status()),
            "cannot start the program /no/such/program: No such file or directory");
  options.argv = {"/bin/true"};
  options.cwd = "/no/such/folder";
  EXPECT_THAT(Message(Subprocess::Start(options).status()), HasSubstr("/no/such/folder"));
}

TEST(SubprocessTest, PassesDescriptorsAndClosesTheRest) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);  // without O_CLOEXEC, so that only Subprocess closes them
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", "echo hello >&7; ls /proc/self/fd | tr '\\n' ' '"};
  options.pass_fds = {{fds[1], 7}};
  options.out = Stdio::Pipe();
  auto process = Subprocess::Start(options);
  ASSERT_TRUE(process.ok());
  EXPECT_TRUE(process->Wait(absl::Seconds(20))->ok());
  char buffer[64] = {};
  EXPECT_EQ(read(fds[0], buffer, sizeof(buffer)), 6);
  EXPECT_STREQ(buffer, "hello\n");
  std::string listed(64, '\0');
  listed.resize(read(process->stdout_fd(), listed.data(), listed.size()));
  EXPECT_EQ(listed, "0 1 2 3 7 ");  // 3 is the folder that ls reads
  close(fds[0]);
  close(fds[1]);
}

TEST(SubprocessTest, DestructorKills) {
  pid_t pid;
  {
    SubprocessOptions options;
    options.argv = {"sleep", "1000"};
    auto process = Subprocess::Start(options);
    ASSERT_TRUE(process.ok());
    pid = process->pid();
    EXPECT_EQ(process->Wait(absl::Milliseconds(10)), std::nullopt);
    EXPECT_TRUE(Alive(pid));
  }
  EXPECT_FALSE(Alive(pid));
}

TEST(SubprocessTest, ReportsSignals) {
  SubprocessOptions options;
  options.argv = {"sleep", "1000"};
  auto process = Subprocess::Start(options);
  ASSERT_TRUE(process.ok());
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(absl::Seconds(20))->ToString(), "signal 15 (Terminated)");
}

}  // namespace
}  // namespace tritonrl
