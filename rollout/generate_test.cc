// The program `generate`: a sample of the mini policy, and what a user is told about mistakes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "model/testing/mini_folders.h"

namespace tritonrl {
namespace {

class GenerateTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = MakeTempDirectory("generate").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  CommandResult Run(const std::vector<std::string>& flags) const {
    std::vector<std::string> argv = {Runfile("rollout/generate").value(), "--device=cpu"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    const auto result = RunCommand(argv);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CommandResult());
  }

  std::string dir_;
};

TEST_F(GenerateTest, PrintsASample) {
  const CommandResult result = Run({"--model=" + Runfile("model/mini").value(), "--prompt=x",
                                    "--max_tokens=5", "--temperature=0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(absl::StartsWith(result.out, "--- sample 0: ")) << result.out;
  EXPECT_TRUE(absl::StrContains(result.out, " tokens, ended by ")) << result.out;
}

TEST_F(GenerateTest, MistakesAreToldInOneSentence) {
  const std::string mini = "--model=" + Runfile("model/mini").value(), prompt = "--prompt=x";
  const std::string shard = WriteMiniWithMissingShard(dir_ + "/shard");
  WriteMiniWithTemplate(dir_ + "/raises", kRaisingTemplate);
  WriteMiniWithTemplate(dir_ + "/chat", "{{ raise_exception('Not ' ~ word) if word }}x");
  struct Case {
    std::vector<std::string> flags;
    int exit_code;
    std::string sentence;
  };
  const Case cases[] = {
      {{prompt}, 2, "generate: --model=FOLDER is needed"},
      {{mini}, 2, "generate: --prompt=TEXT or --prompt_file=FILE is needed"},
      {{mini, "--prompt_file=" + dir_ + "/none"}, 1, "generate: cannot read " + dir_ + "/none: "},
      {{"--model=" + dir_ + "/none", prompt}, 1, dir_ + "/none/tokenizer.json"},
      {{"--model=" + dir_ + "/shard", prompt},
       1,
       absl::StrCat("generate: ", shard,
                    ": is missing, though model.safetensors.index.json lists it; copy or download "
                    "it into the folder")},
      {{"--model=" + dir_ + "/chat", prompt, "--chat", "--chat_arguments=[1]"},
       2,
       "the chat template's arguments"},
      {{mini, prompt, "--chat"}, 2, "has no chat template; give one with --chat_template"},
      {{"--model=" + dir_ + "/raises", prompt, "--chat"},
       2,
       absl::StrCat("generate: ", RaisingTemplateError(dir_ + "/raises"))},
  };
  for (const Case& c : cases) {
    const CommandResult result = Run(c.flags);
    EXPECT_EQ(result.exit_code, c.exit_code) << result.err;
    EXPECT_TRUE(absl::StrContains(result.err, c.sentence)) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  const CommandResult refused =
      Run({"--model=" + dir_ + "/chat", prompt, "--chat", "--chat_arguments={\"word\": \"so\"}"});
  EXPECT_TRUE(absl::StrContains(refused.err, "Not so")) << refused.err;
  // Without --chat the template is not used.
  EXPECT_EQ(Run({"--model=" + dir_ + "/raises", prompt, "--max_tokens=3"}).exit_code, 0);
}

}  // namespace
}  // namespace tritonrl
