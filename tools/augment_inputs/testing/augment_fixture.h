// Fixture that runs the program augment_inputs on a folder of small tasks.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_TESTING_AUGMENT_FIXTURE_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_TESTING_AUGMENT_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A task in KernelBench form with a parameter that fixes a size.
inline constexpr char kLinear[] = R"(import torch
import torch.nn as nn

batch = 4


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 3)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.rand(batch, 8)]


def get_init_inputs():
    return [8]
)";

// A code block with a function get_inputs() that returns `value`.
inline std::string Block(const std::string& value) {
  return absl::StrCat("```python\ndef get_inputs():\n    return ", value, "\n```\n");
}

class AugmentFixture : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("augment_");
    ASSERT_TRUE(folder.ok()) << folder.status();
    dir_ = *folder;
    out_ = dir_ + "/out";
    tasks_ = dir_ + "/tasks";
    Add("level1/linear", kLinear);
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  void Add(const std::string& name, const std::string& source) {
    const std::string file = absl::StrCat(tasks_, "/", name, ".py");
    ASSERT_TRUE(CreateDirectories(DirName(file)).ok());
    ASSERT_TRUE(WriteFileAtomic(file, source).ok());
  }

  std::vector<std::string> Command(const std::vector<std::string>& flags) const {
    std::vector<std::string> argv = {*Runfile("tools/augment_inputs/augment_inputs"),
                                     "--tasks=" + tasks_, "--out=" + out_, "--model=writer",
                                     "--workers=1"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return argv;
  }
  CommandResult Run(const std::vector<std::string>& flags) {
    const auto result = RunCommand(Command(flags), {.timeout = absl::Minutes(10)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CommandResult());
  }

  std::string Text(const std::string& file) const {
    return ReadFile(out_ + "/" + file).value_or("");
  }
  std::vector<nlohmann::json> Lines(const std::string& file) const {
    std::vector<nlohmann::json> lines;
    const std::string text = Text(file);
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
  nlohmann::json Summary() const {
    return nlohmann::json::parse(Text("summary.json"), nullptr, /*allow_exceptions=*/false);
  }

  std::string dir_, out_, tasks_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_TESTING_AUGMENT_FIXTURE_H_
