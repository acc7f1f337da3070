#include "base/runfiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/run_command.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

TEST(RunfilesTest, FindsADataFile) {
  auto path = Runfile("base/README.md");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_THAT(ReadFile(*path).value(), HasSubstr("# base"));
}

TEST(RunfilesTest, MissingFileIsNamed) {
  auto path = Runfile("base/no_such_file");
  EXPECT_EQ(path.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(path.status()), HasSubstr("base/no_such_file"));
}

TEST(RunfilesTest, ArchiveFolderFromTheEnvironmentWins) {
  std::string dir = MakeTempDirectory("runfiles_test").value();
  ASSERT_TRUE(CreateDirectories(dir + "/tritonrl/base").ok());
  ASSERT_TRUE(WriteFileAtomic(dir + "/tritonrl/base/README.md", "other").ok());
  setenv("TRITONRL_RUNFILES", dir.c_str(), 1);
  EXPECT_EQ(ReadFile(Runfile("base/README.md").value()).value(), "other");
  unsetenv("TRITONRL_RUNFILES");
  EXPECT_TRUE(RemoveTree(dir).ok());
}

TEST(PythonEnvTest, RunsWithThePinnedPackages) {
  auto env = FindPythonEnv();
  ASSERT_TRUE(env.ok()) << env.status();
  RunCommandOptions options;
  options.env = env->Environment({"/first"});
  auto result =
      RunCommand({env->interpreter, "-c",
                  "import sys, importlib.metadata as m; print(sys.path[1], m.version('triton'))"},
                 options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->out, "/first 3.6.0\n") << result->err;
}

TEST(PythonEnvTest, OverrideMustExist) {
  setenv("TRITONRL_PYTHON", "/no/python", 1);
  EXPECT_THAT(Message(FindPythonEnv().status()), HasSubstr("/no/python (from TRITONRL_PYTHON)"));
  unsetenv("TRITONRL_PYTHON");
}

}  // namespace
}  // namespace tritonrl
