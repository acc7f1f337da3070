#include "eval/sources/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

TEST(GenerationTest, ComesBackFromJson) {
  Generation response = {.task = "level1/19_ReLU",
                         .sample = 9,
                         .turn = 2,
                         .response = "<think>\n\"p\"</think> \u00e9\n```\nx\n```"};
  response.style = {.plan = ResponseStyle::Plan::kPlain,
                    .code_block = ResponseStyle::CodeBlock::kJoined};
  response.truncated = true;
  response.tokens = 12;
  response.source = "model/mini";
  const std::string line = GenerationToJson(response);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(GenerationFromJson(line).value(), response);

  Generation program = {.task = "a", .sample = 0};
  program.code = "import triton\n";
  EXPECT_EQ(GenerationToJson(program), R"({"task":"a","sample":0,"code":"import triton\n"})");
  EXPECT_EQ(GenerationFromJson(GenerationToJson(program)).value(), program);

  Generation empty = {.task = "a", .response = ""};
  EXPECT_EQ(GenerationFromJson(GenerationToJson(empty)).value(), empty);
}

TEST(GenerationTest, TheStyleOfALineIsItsOwn) {
  const ResponseStyle plain = {.plan = ResponseStyle::Plan::kPlain,
                               .code_block = ResponseStyle::CodeBlock::kLast};
  const auto style = [&plain](const std::string& more) {
    return GenerationFromJson(R"({"task":"a","sample":0,"response":"x")" + more + "}", plain)
        .value()
        .style;
  };
  EXPECT_EQ(style(""), plain);
  EXPECT_EQ(style(R"(,"response_style":null)"), plain);
  EXPECT_EQ(style(R"(,"response_style":"thinking","code_block":"only")"), ResponseStyle());
}

TEST(GenerationTest, TextThatIsNoUtf8BecomesJson) {
  Generation generation = {.task = "a", .response = "\xFFx"};
  EXPECT_EQ(GenerationFromJson(GenerationToJson(generation)).value().response, "\uFFFDx");
}

TEST(GenerationTest, ErrorsNameTheField) {
  EXPECT_THAT(Message(GenerationFromJson(R"({"sample":0,"code":""})").status()),
              HasSubstr("field 'task' is missing"));
  EXPECT_THAT(
      Message(GenerationFromJson(R"({"task":"a","sample":0,"code":"","turn":-1})").status()),
      HasSubstr("field 'turn' is -1; it must be an integer from 0 on"));
  EXPECT_FALSE(GenerationFromJson("").ok());
}

}  // namespace
}  // namespace tritonrl
