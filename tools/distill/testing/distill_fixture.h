// Runs the program distill in a folder of its own.
#ifndef TRITONRL_TOOLS_DISTILL_TESTING_DISTILL_FIXTURE_H_
#define TRITONRL_TOOLS_DISTILL_TESTING_DISTILL_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

inline std::string DistillData(const std::string& path) {
  const auto file = Runfile(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.value_or("");
}

class DistillTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("distill_");
    ASSERT_TRUE(folder.ok()) << folder.status();
    dir_ = *folder;
    out_ = dir_ + "/out";
    program_ = DistillData("tools/distill/distill");
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  // A folder with `count` tasks that are all softmax, each with a comment of its own.
  std::string Tasks(int count) {
    const std::string source = *ReadFile(DistillData("verify/examples/softmax_reference.py"));
    const std::string folder = dir_ + "/tasks";
    EXPECT_TRUE(CreateDirectories(folder).ok());
    for (int i = 0; i < count; ++i) {
      const std::string text = absl::StrCat(source, "\nTASK_NUMBER = ", i, "\n");
      EXPECT_TRUE(WriteFileAtomic(absl::StrCat(folder, "/task_", i, ".py"), text).ok());
    }
    return folder;
  }

  std::vector<std::string> Command(const std::vector<std::string>& flags) const {
    std::vector<std::string> argv = {program_, "--out=" + out_};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return argv;
  }
  CommandResult Run(const std::vector<std::string>& flags) const {
    const auto result = RunCommand(Command(flags), {.timeout = absl::Minutes(10)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CommandResult());
  }

  std::vector<nlohmann::json> Lines(const std::string& file) const {
    std::vector<nlohmann::json> lines;
    const auto text = ReadFile(out_ + "/" + file);
    EXPECT_TRUE(text.ok()) << text.status();
    for (absl::string_view line : absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty())) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }

  std::string dir_, out_, program_;
};

inline std::string ExampleProgram(const std::string& name) {
  return absl::StrCat("```python\n",
                      *ReadFile(DistillData("verify/examples/softmax_" + name + ".py")), "```\n");
}

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_DISTILL_TESTING_DISTILL_FIXTURE_H_
