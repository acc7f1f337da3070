// A folder with generations as others write them, for tests of LoadGenerations.
#ifndef TRITONRL_EVAL_SOURCES_TESTING_INPUT_FOLDER_H_
#define TRITONRL_EVAL_SOURCES_TESTING_INPUT_FOLDER_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/sources/file_source.h"
#include "tasks/loader.h"

namespace tritonrl {

// A reference that CheckTaskSource accepts.
inline constexpr char kReference[] =
    "class Model:\n    def forward(self, x):\n        return x\n"
    "def get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n";

inline Task MakeTask(const std::string& id, int level) {
  return {.id = id, .path = "", .source = kReference, .level = level};
}

class InputFolderTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = MakeTempDirectory("generations").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  std::string Path(const std::string& name) const { return JoinPath(folder_, name); }

  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = Path(name);
    EXPECT_TRUE(CreateDirectories(DirName(path)).ok());
    EXPECT_TRUE(WriteFileAtomic(path, text).ok());
    return path;
  }

  LoadedGenerations Load(const std::string& path, const LoadOptions& options = {}) {
    auto loaded = LoadGenerations(path, tasks_, options);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : LoadedGenerations();
  }

  // The message of the error that LoadGenerations returns, without the temporary folder.
  std::string Error(const std::string& path, const LoadOptions& options = {}) {
    const auto loaded = LoadGenerations(path, tasks_, options);
    EXPECT_FALSE(loaded.ok());
    std::string message = Message(loaded.status());
    for (size_t at; (at = message.find(folder_)) != std::string::npos;) {
      message.replace(at, folder_.size(), "DIR");
    }
    return message;
  }

  // "task sample turn text", one line each.
  static std::string Text(const LoadedGenerations& loaded) {
    std::string text;
    for (const Generation& each : loaded.generations) {
      absl::StrAppend(&text, each.task, " ", each.sample, " ", each.turn, " ",
                      each.response.value_or(each.code), "\n");
    }
    return text;
  }

  std::string folder_;
  std::vector<Task> tasks_ = {MakeTask("level1/1_add", 1), MakeTask("level1/19_ReLU", 1),
                              MakeTask("level2/1_fused", 2)};
};

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_TESTING_INPUT_FOLDER_H_
