#include "tasks/response_style.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;
using Plan = ResponseStyle::Plan;
using CodeBlock = ResponseStyle::CodeBlock;

class DetectTest : public ::testing::Test {
 protected:
  void SetUp() override { dir_ = MakeTempDirectory("style").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/" + name, text).ok());
  }
  // "thinking" or "plain".
  std::string Detect(absl::string_view chat_template = "", absl::string_view prompt = "") {
    const auto choice = DetectResponseStyle(dir_, chat_template, prompt);
    if (!choice.ok()) return Message(choice.status());
    EXPECT_EQ(choice->style.code_block,
              choice->style.plan == Plan::kThinking ? CodeBlock::kOnly : CodeBlock::kFirst);
    return std::string(PlanStyleName(choice->style.plan));
  }

  std::string dir_;
};

TEST_F(DetectTest, TheTokenizerDecidesWithoutATemplate) {
  EXPECT_EQ(Detect(), "plain");
  Write("tokenizer.json", R"({"added_tokens":[{"content":"<|im_end|>"}]})");
  EXPECT_EQ(Detect(), "plain");
  Write("tokenizer.json", R"({"added_tokens":[{"content":"</think>"}]})");
  EXPECT_EQ(Detect(), "thinking");
}

// Models without thoughts share the tokenizer of those with thoughts.
TEST_F(DetectTest, TheChatTemplateDecidesBeforeTheTokenizer) {
  Write("tokenizer.json", R"({"added_tokens":[{"content":"</think>"}]})");
  EXPECT_EQ(Detect("{{ '<|im_start|>assistant\n' }}"), "plain");
  Write("tokenizer.json", R"({"added_tokens":[]})");
  EXPECT_EQ(Detect("{{ '<think>\n' }}"), "thinking");
  EXPECT_EQ(
      Detect("{{ content.split('</think>') }}"),
      "response_style \"auto\" cannot tell how this model responds, because its chat template "
      "has </think> but no <think>; set \"thinking\" or \"plain\"");
}

// The folder's template does not count where another one renders the prompts.
TEST_F(DetectTest, TheFoldersTemplateIsNotRead) {
  Write("chat_template.jinja", "</think>");
  Write("tokenizer_config.json", R"({"chat_template":"</think>"})");
  EXPECT_EQ(Detect("x"), "plain");
  EXPECT_EQ(Detect(), "plain");
}

// What the template has put into the prompt decides before the template's text.
TEST_F(DetectTest, ThePromptDecidesFirst) {
  const std::string chat = "<think> {% if enable_thinking is false %}</think>{% endif %}";
  EXPECT_EQ(Detect(chat, "<|im_start|>assistant\n"), "thinking");
  EXPECT_EQ(Detect(chat, "<|im_start|>assistant\n<think>\n\n</think>\n\n"), "plain");
  EXPECT_EQ(Detect("x", "<|assistant|><think>\n"), "thinking");
}

TEST_F(DetectTest, SettingsOverrideIt) {
  const auto choose = [&](absl::string_view style, absl::string_view block) {
    const auto choice = ChooseResponseStyle(style, block, dir_, "");
    return choice.ok() ? absl::StrCat(PlanStyleName(choice->style.plan), "/",
                                      CodeBlockName(choice->style.code_block))
                       : Message(choice.status());
  };
  EXPECT_EQ(choose("auto", "auto"), "plain/first");
  EXPECT_EQ(choose("thinking", "auto"), "thinking/only");
  EXPECT_EQ(choose("auto", "joined"), "plain/joined");
  EXPECT_EQ(choose("thinking", "last"), "thinking/last");
  EXPECT_EQ(choose("odd", "auto"),
            "response_style \"odd\" is unknown; use \"auto\", \"thinking\" or \"plain\"");
  EXPECT_EQ(choose("auto", "second"),
            "code_block \"second\" is unknown; use \"auto\", \"only\", \"first\", \"last\" or "
            "\"joined\"");
  EXPECT_EQ(ChooseResponseStyle("auto", "last", dir_, "")->Sentence(),
            "Responses are read as plain (its tokenizer.json has no </think>), code block: last");
  // A file that cannot be read does not matter if the style is given.
  ASSERT_TRUE(CreateDirectories(dir_ + "/tokenizer.json").ok());
  EXPECT_EQ(choose("plain", "auto"), "plain/first");
}

TEST(ResponseStyleNamesTest, RecordedStyles) {
  for (const Plan plan : {Plan::kThinking, Plan::kPlain}) {
    for (const CodeBlock block :
         {CodeBlock::kOnly, CodeBlock::kFirst, CodeBlock::kLast, CodeBlock::kJoined}) {
      const ResponseStyle style = {.plan = plan, .code_block = block};
      EXPECT_EQ(*ResponseStyleFromNames(PlanStyleName(plan), CodeBlockName(block)), style);
    }
  }
  EXPECT_FALSE(ResponseStyleFromNames("auto", "only").ok());
  EXPECT_THAT(Message(ResponseStyleFromNames("plain", "").status()), HasSubstr("code_block \"\""));
}

TEST(ResponseStyleNamesTest, AutoKeepsTheBase) {
  const ResponseStyle base = {.plan = Plan::kPlain, .code_block = CodeBlock::kJoined};
  EXPECT_EQ(*OverrideResponseStyle("auto", "auto", base), base);
  EXPECT_EQ(OverrideResponseStyle("plain", "auto", base)->code_block, CodeBlock::kFirst);
  EXPECT_EQ(OverrideResponseStyle("auto", "last", base)->plan, Plan::kPlain);
}

}  // namespace
}  // namespace tritonrl
