#include "trainer/sft/sft_example.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using Turns = std::vector<std::pair<std::string, std::string>>;

// The format that is detected, and the turns that are parsed.
std::pair<std::string, Turns> Parse(const std::string& text) {
  const auto format = DetectSftFormat(text);
  if (!format.ok() || !format->has_value()) {
    ADD_FAILURE() << text << ": " << format.status();
    return {};
  }
  const auto example = ParseSftExample(text, **format);
  EXPECT_TRUE(example.ok()) << example.status();
  if (!example.ok()) return {};
  Turns turns;
  for (const SftMessage& message : example->messages) {
    turns.emplace_back(message.role, message.content);
  }
  return {SftFormatName(**format), turns};
}

// The error about a record of a file with the format that is detected.
std::string Error(const std::string& text, SftFormat otherwise = SftFormat::kPromptResponse) {
  const auto format = DetectSftFormat(text);
  if (!format.ok()) return std::string(format.status().message());
  const auto example = ParseSftExample(text, format->value_or(otherwise));
  EXPECT_FALSE(example.ok()) << text;
  return std::string(example.status().message());
}

void ExpectError(const std::string& text, const std::string& part) {
  const std::string error = Error(text);
  EXPECT_TRUE(absl::StrContains(error, part)) << text << "\n  " << error;
}

TEST(SftExampleTest, ReadsEveryForm) {
  const Turns pair = {{"user", "q"}, {"assistant", "a"}};
  const Turns with_system = {{"system", "s"}, {"user", "q"}, {"assistant", "a"}};
  EXPECT_EQ(Parse(R"({"prompt": "q", "response": "a"})"),
            std::pair(std::string("prompt/response"), pair));
  EXPECT_EQ(Parse(R"({"prompt": "q", "completion": "a", "score": 1})"),
            std::pair(std::string("prompt/completion"), pair));
  EXPECT_EQ(
      Parse(R"({"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}],
                      "completion": [{"role": "assistant", "content": "a"}]})"),
      std::pair(std::string("prompt/completion"), with_system));
  EXPECT_EQ(Parse(R"({"prompt": "q", "messages": [{"role": "system", "content": "s"},
                      {"role": "user", "content": [{"type": "text", "text": "q"}]},
                      {"role": "assistant", "content": "a", "tool_calls": null}]})"),
            std::pair(std::string("messages"), with_system));
  EXPECT_EQ(Parse(R"({"system": "s", "conversations": [{"from": "human", "value": "q"},
                      {"from": "gpt", "value": "a"}]})"),
            std::pair(std::string("ShareGPT"), with_system));
  EXPECT_EQ(Parse(R"({"system": "other", "conversations": [{"from": "system", "value": "s"},
                      {"from": "user", "value": "q"}, {"from": "assistant", "value": "a"}]})"),
            std::pair(std::string("ShareGPT"), with_system));
  EXPECT_EQ(Parse(R"({"conversations": [{"role": "user", "content": "q"},
                      {"role": "assistant", "content": "a"}]})"),
            std::pair(std::string("ShareGPT"), pair));
  EXPECT_EQ(Parse(R"({"instruction": "q", "input": "", "output": "a", "system": "s"})"),
            std::pair(std::string("Alpaca"), with_system));
  EXPECT_EQ(
      Parse(R"({"instruction": "add", "input": "1 2", "output": "3", "system": null,
                      "history": [["q", "a"]]})"),
      std::pair(
          std::string("Alpaca"),
          Turns{{"user", "q"}, {"assistant", "a"}, {"user", "add\n1 2"}, {"assistant", "3"}}));
}

TEST(SftExampleTest, KeepsSeparateReasoning) {
  const auto example = ParseSftExample(
      R"({"messages": [{"role": "user", "content": "q", "reasoning": "no"},
          {"role": "assistant", "content": "a", "reasoning_content": "because"}]})",
      SftFormat::kMessages);
  ASSERT_TRUE(example.ok()) << example.status();
  EXPECT_FALSE(example->messages[0].reasoning.has_value());
  EXPECT_EQ(example->messages[1].reasoning, "because");
}

TEST(SftExampleTest, UnusedFieldsMayHoldWhatPythonWrites) {
  for (const char* const value : {"NaN", "-Infinity", "[Infinity, {\"a\": NaN}]", "\"\\ud800\"",
                                  "\"\\udc00x\\ud83d\"", "\"NaN \\\" \\\\\""}) {
    const std::string text = absl::StrCat("{\"prompt\": \"NaN \\ud83d\\ude00\", \"x\": ", value,
                                          ", \"response\": \"a\"}");
    EXPECT_EQ(Parse(text).second, (Turns{{"user", "NaN \xF0\x9F\x98\x80"}, {"assistant", "a"}}));
  }
}

TEST(SftExampleTest, UsedFieldsMayNot) {
  ExpectError(R"({"prompt": "a\ud800b", "response": "x"})",
              "the field \"prompt\" holds half of a surrogate pair");
  ExpectError(R"({"prompt": "a", "response": NaN})", "the field \"response\" is no string");
  ExpectError(R"({"messages": [{"role": "user", "content": "\udfff"}]})",
              "the field \"messages[0].content\" holds half");
}

TEST(SftExampleTest, NamesTheFieldAndWhatIsWanted) {
  EXPECT_EQ(Error(R"({"prompt": "q"})"),
            "the field \"response\" is missing (wanted: one object with \"prompt\" and "
            "\"response\", each a string or a list of messages)");
  ExpectError(R"({"prompt": 1, "response": "x"})", "the field \"prompt\" is no string");
  ExpectError(R"({"prompt": "", "response": "x"})", "the prompt is empty");
  ExpectError(R"({"response": "x"})", "the field \"prompt\" is missing");
  ExpectError("nonsense", "this is no JSON from byte ");
  ExpectError(R"({"prompt": "q", "res)", "this is no JSON from byte ");
  ExpectError("[1]", "this is no JSON object");
  ExpectError("{\"prompt\": \"\xFF\", \"response\": \"x\"}", "this is no JSON");
  ExpectError(R"({"question": "q", "answer": "a"})",
              "the fields \"answer\", \"question\" are no known form of example (wanted: ");
  ExpectError(R"({"messages": []})", "the field \"messages\" is no list of messages");
  ExpectError(R"({"messages": ["q"]})", "the field \"messages[0]\" is no object");
  ExpectError(R"({"messages": [{"content": "q"}]})", "the field \"messages[0].role\" is missing");
  ExpectError(R"({"messages": [{"role": "user", "content": null}]})",
              "the field \"messages[0].content\" is no string");
  ExpectError(R"({"messages": [{"role": "boss", "content": "q"}]})",
              "the field \"messages[0].role\" is \"boss\"; it must be system");
  ExpectError(R"({"messages": [{"role": "user", "content": [{"type": "image"}]}]})",
              "the field \"messages[0].content[0]\" is no part of type \"text\"");
  ExpectError(R"({"messages": [{"role": "user", "content": "q"},
                  {"role": "assistant", "content": "", "tool_calls": [{}]}]})",
              "the field \"messages[1].tool_calls\" is not empty");
  ExpectError(R"({"messages": [{"role": "user", "content": "q"}]})",
              "the last turn has the role \"user\" instead of \"assistant\"");
  ExpectError(R"({"messages": [{"role": "assistant", "content": "a"}]})",
              "there is no text before the assistant's turn");
  ExpectError(R"({"conversations": [{"from": "human"}]})",
              "the field \"conversations[0].value\" is missing");
  ExpectError(R"({"instruction": "q"})", "the field \"output\" is missing");
  ExpectError(R"({"instruction": "q", "input": 3, "output": "a"})",
              "the field \"input\" is no string");
  ExpectError(R"({"instruction": "q", "output": "a", "history": [["q"]]})",
              "the field \"history[0]\" is no pair of strings");
}

}  // namespace
}  // namespace tritonrl
