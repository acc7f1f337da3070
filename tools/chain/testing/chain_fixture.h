// Fixture that runs programs one after the other on the files of each other.
#ifndef TRITONRL_TOOLS_CHAIN_TESTING_CHAIN_FIXTURE_H_
#define TRITONRL_TOOLS_CHAIN_TESTING_CHAIN_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "nlohmann/json.hpp"
#include "parallel/testing/mpi_launch.h"
#include "tasks/loader.h"

namespace tritonrl {

// The variable with the key of the served policy, and the key.
inline constexpr char kKeyVariable[] = "TRITONRL_CHAIN_TEST_KEY";
inline constexpr char kKey[] = "the-key-of-the-chain-test";

inline std::string Data(const std::string& path) {
  const auto file = Runfile(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.value_or("");
}

inline std::string Text(const std::string& path) {
  const auto text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

inline std::vector<nlohmann::json> Lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  const std::string text = Text(path);
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

// The end of a program's output, for messages.
inline std::string End(const std::string& text) {
  constexpr size_t kBytes = 3000;
  return text.substr(text.size() - std::min(text.size(), kBytes));
}

class ChainFixture : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("chain_");
    ASSERT_TRUE(folder.ok()) << folder.status();
    dir_ = *folder;
    data_ = dir_ + "/kernelbook";
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  // Runs a program to its end, which must have this exit code.
  CommandResult Run(const std::string& program, const std::vector<std::string>& flags,
                    int exit_code = 0) const {
    std::vector<std::string> argv = {Data(program)};
    argv.insert(argv.end(), flags.begin(), flags.end());
    RunCommandOptions options;
    options.timeout = absl::Minutes(6);
    options.env = MpiTestEnvironment();
    options.env.emplace_back(kKeyVariable, kKey);
    const absl::Time began = absl::Now();
    const auto result = RunCommand(argv, options);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return CommandResult();
    std::printf("%s: %.1f s\n", program.c_str(), absl::ToDoubleSeconds(absl::Now() - began));
    EXPECT_TRUE(result->exit_code == exit_code && result->signal == 0 && !result->timed_out)
        << program << (result->timed_out ? " did not end in time" : " ended with code ")
        << result->exit_code << ", signal " << result->signal << "\nstdout:\n"
        << End(result->out) << "\nstderr:\n"
        << End(result->err);
    return *result;
  }

  static std::vector<std::string> With(std::vector<std::string> flags,
                                       const std::vector<std::string>& more) {
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  std::vector<Task> TasksOf(const std::string& folder) const {
    const auto set = LoadTasks(folder);
    EXPECT_TRUE(set.ok()) << set.status();
    if (!set.ok()) return {};
    EXPECT_THAT(set->problems, testing::IsEmpty());
    return set->tasks;
  }

  void ExpectModel(const std::string& folder) const {
    for (const char* file : {"config.json", "model.safetensors", "tokenizer.json"}) {
      EXPECT_TRUE(FileExists(JoinPath(folder, file))) << file;
    }
  }

  std::string dir_;
  std::string data_;  // in the place of data/kernelbook
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_CHAIN_TESTING_CHAIN_FIXTURE_H_
