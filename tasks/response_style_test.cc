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
  // "thinking" or "plain", or the error's message.
  std::string Detect(absl::string_view prompt = "") {
    const auto choice = DetectResponseStyle(dir_, prompt);
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
  Write("tokenizer_config.json", R"({"eos_token":"<|im_end|>","chat_template":null})");
  EXPECT_EQ(Detect(), "plain");
  Write("tokenizer.json", R"({"added_tokens":[{"content":"</think>"}]})");
  EXPECT_EQ(Detect(), "thinking");
}

// Models without thoughts share the tokenizer of those with thoughts.
TEST_F(DetectTest, TheChatTemplateDecidesBeforeTheTokenizer) {
  Write("tokenizer.json", R"({"added_tokens":[{"content":"</think>"}]})");
  Write("tokenizer_config.json", R"({"chat_template":"{{ '<|im_start|>assistant\n' }}"})");
  EXPECT_EQ(Detect(), "plain");
  Write("tokenizer_config.json", R"({"chat_template":"{{ '<think>\n' }}"})");
  EXPECT_EQ(Detect(), "thinking");
  Write("tokenizer_config.json",
        R"({"chat_template":[{"name":"tool_use","template":"</think>"},
                             {"name":"default","template":"x"}]})");
  EXPECT_EQ(Detect(), "plain");
  Write("tokenizer_config.json", R"({"chat_template":[{"name":"rag","template":"</think>"}]})");
  EXPECT_EQ(Detect(), "thinking");
  Write("chat_template.json", R"({"chat_template":"x"})");
  EXPECT_EQ(Detect(), "plain");
  Write("chat_template.jinja", "{{ content.split('</think>') }}");
  EXPECT_EQ(Detect(), "thinking");
}

// What the template has put into the prompt decides before the template's text.
TEST_F(DetectTest, ThePromptDecidesFirst) {
  Write("chat_template.jinja", "<think> {% if enable_thinking is false %}</think>{% endif %}");
  EXPECT_EQ(Detect("<|im_start|>assistant\n"), "thinking");
  EXPECT_EQ(Detect("<|im_start|>assistant\n<think>\n\n</think>\n\n"), "plain");
  Write("chat_template.jinja", "x");
  EXPECT_EQ(Detect("<|assistant|><think>\n"), "thinking");
}

TEST_F(DetectTest, AFileThatIsNoJsonIsNamed) {
  Write("tokenizer_config.json", "version https://git-lfs.github.com/spec/v1");
  EXPECT_EQ(Detect(), dir_ + "/tokenizer_config.json is not a JSON object");
}

TEST_F(DetectTest, SettingsOverrideIt) {
  const auto choose = [&](absl::string_view style, absl::string_view block) {
    const auto choice = ChooseResponseStyle(style, block, dir_);
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
  EXPECT_EQ(ChooseResponseStyle("auto", "last", dir_)->Sentence(),
            "Responses are read as plain (its tokenizer.json has no </think>), code block: last");
  // A folder that cannot be read does not matter if the style is given.
  Write("tokenizer_config.json", "[]");
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
