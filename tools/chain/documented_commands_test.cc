// docs/data.md and trainer/configs name the same folders.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const std::string& data) {
  const auto path = Runfile(data);
  EXPECT_TRUE(path.ok()) << path.status();
  const auto text = ReadFile(path.value_or(""));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

// The documented commands write where the configurations of the paper's trainings look.
TEST(DocumentedCommandsTest, WriteTheFoldersOfTheConfigurations) {
  const std::string page = TextOf("docs/data.md");
  const std::map<std::string, std::vector<std::string>> folders = {
      {"data/kernelbook/traces_r1", {"sft_8b_r1.textproto"}},
      {"data/kernelbook/traces_gpt_oss",
       {"sft_8b_gpt_oss.textproto", "sft_seed_coder_gpt_oss.textproto"}},
      {"data/kernelbook/labelled", {"base_grpo_hrd_8b.textproto"}},
      {"data/kernelbook/augmented",
       {"grpo_hrd_8b_a100_ia.textproto", "grpo_hrd_8b_h200_ia.textproto"}}};
  for (const auto& [folder, configs] : folders) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("--out=", folder, " ")));
    for (const std::string& config : configs) {
      EXPECT_THAT(TextOf("trainer/configs/" + config), HasSubstr(absl::StrCat("\"", folder)))
          << config;
    }
  }
  // Variants get their levels from the folders of the tasks that they are made of.
  EXPECT_THAT(page, HasSubstr("//tools:augment_inputs -- --tasks=data/kernelbook/labelled "));
}

}  // namespace
}  // namespace tritonrl
