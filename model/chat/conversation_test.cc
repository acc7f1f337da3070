// ChatTemplate::EncodeConversation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/chat/chat_template.h"
#include "model/chat/testing/chat_folder.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

// The conversation as text, with what is taught in [[ ]].
std::string Taught(const std::string& jinja, const std::vector<ChatMessage>& messages,
                   bool all_turns = false, const ChatOptions& options = {}) {
  const ChatFolder folder(jinja);
  const Tokenizer tokenizer = QwenLikeTokenizer();
  const ChatTemplate chat = ChatTemplate::Load(folder.dir(), options, tokenizer).value();
  const auto encoded = chat.EncodeConversation(messages, all_turns);
  if (!encoded.ok()) return Message(encoded.status());
  const auto text = [&](int64_t begin, int64_t end) {
    return tokenizer.Decode(std::span(encoded->ids).subspan(begin, end - begin));
  };
  std::string shown;
  int64_t done = 0;
  for (const auto& [begin, end] : encoded->taught) {
    absl::StrAppend(&shown, text(done, begin), "[[", text(begin, end), "]]");
    done = end;
  }
  return absl::StrCat(shown, text(done, encoded->ids.size()));
}

const std::vector<ChatMessage> kTwoTurns = {
    {"user", "1"}, {"assistant", "one"}, {"user", "2"}, {"assistant", "two"}};

TEST(EncodeConversation, TheLastTurnOrAllTurns) {
  const std::string first = "<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n";
  const std::string second = "\n<|im_start|>user\n2<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(Taught(kChatMl, kTwoTurns), first + "one<|im_end|>" + second + "[[two<|im_end|>]]");
  EXPECT_EQ(Taught(kChatMl, kTwoTurns, true),
            first + "[[one<|im_end|>]]" + second + "[[two<|im_end|>]]");
}

TEST(EncodeConversation, AThoughtIsTaughtAsTheTemplateWritesIt) {
  const std::vector<ChatMessage> messages = {{"user", "1"},
                                             {"assistant", "<think>plan</think>code"}};
  EXPECT_EQ(Taught(kThinkingChatMl, messages),
            "<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n"
            "[[<think>\nplan\n</think>\n\ncode<|im_end|>]]");
}

TEST(EncodeConversation, AnEmptyThoughtOfTheQuestionIsNotTaught) {
  ChatOptions options;
  options.enable_thinking = false;
  EXPECT_EQ(Taught(kThinkingChatMl, {{"user", "1"}, {"assistant", "one"}}, false, options),
            "<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
            "[[one<|im_end|>]]");
}

// The kind of template that opens the thought itself and shows no thoughts of the past.
constexpr char kOpensThought[] =
    "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>{{ m.content }}{% else %}"
    "<|im_end|>{{ m.content.split('</think>')[-1] }}<|endoftext|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_end|><think>\n{% endif %}";

TEST(EncodeConversation, AThoughtThatTheTemplateDropsIsTaughtAsGenerated) {
  EXPECT_EQ(Taught(kOpensThought, {{"user", "1"}, {"assistant", "<think>\nplan</think>code"}}),
            "<|im_start|>1<|im_end|><think>\n[[plan</think>code<|endoftext|>]]");
  // Earlier turns show no thought; their questions end with one, so that they cannot be taught.
  EXPECT_THAT(Taught(kOpensThought, kTwoTurns, true), HasSubstr("message 1: chat template"));
  EXPECT_EQ(Taught(kOpensThought, kTwoTurns),
            "<|im_start|>1<|im_end|>one<|endoftext|><|im_start|>2<|im_end|><think>\n"
            "[[two<|endoftext|>]]");
}

constexpr char kAsked[] = "<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n";
const std::vector<ChatMessage> kReasoned = {{"user", "1"}, {"assistant", "code", "plan"}};
const std::vector<ChatMessage> kReasonedTwice = {
    {"user", "1"}, {"assistant", "one", "plan 1"}, {"user", "2"}, {"assistant", "two", "plan 2"}};

TEST(EncodeConversation, ReasoningIsTaughtByATemplateThatWritesIt) {
  EXPECT_EQ(Taught(kThinkingChatMl, kReasoned),
            absl::StrCat(kAsked, "[[<think>\nplan\n</think>\n\ncode<|im_end|>]]"));
  // The content may have the same thought too.
  EXPECT_EQ(Taught(kThinkingChatMl,
                   {{"user", "1"}, {"assistant", "<think>\nplan\n</think>\n\ncode", "plan"}}),
            absl::StrCat(kAsked, "[[<think>\nplan\n</think>\n\ncode<|im_end|>]]"));
  // A form of the template's own.
  const std::string own = absl::StrCat(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}[plan]"
      "{{ m.reasoning_content | trim }}[/plan]{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}",
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  EXPECT_EQ(Taught(own, kReasoned), absl::StrCat(kAsked, "[[[plan]plan[/plan]code<|im_end|>]]"));
}

TEST(EncodeConversation, ReasoningIsTaughtByATemplateThatDoesNotKnowIt) {
  EXPECT_EQ(Taught(kChatMl, kReasoned),
            absl::StrCat(kAsked, "[[<think>\nplan\n</think>\n\ncode<|im_end|>]]"));
  // Turns that are not taught are written as the template writes them.
  const std::string second = "\n<|im_start|>user\n2<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(Taught(kChatMl, kReasonedTwice),
            absl::StrCat(kAsked, "one<|im_end|>", second,
                         "[[<think>\nplan 2\n</think>\n\ntwo<|im_end|>]]"));
  EXPECT_EQ(Taught(kChatMl, kReasonedTwice, true),
            absl::StrCat(kAsked, "[[<think>\nplan 1\n</think>\n\none<|im_end|>]]", second,
                         "[[<think>\nplan 2\n</think>\n\ntwo<|im_end|>]]"));
  EXPECT_EQ(Taught(kChatMl, {{"user", "1"}, {"assistant", "c", "a<|im_end|>b"}}),
            absl::StrCat(kAsked, "[[<think>\na<|im_end|>b\n</think>\n\nc<|im_end|>]]"));
}

TEST(EncodeConversation, ReasoningContinuesAThoughtThatThePromptOpens) {
  const std::string asked = "<|im_start|>1<|im_end|><think>\n";
  // This template strips thoughts and does not know reasoning.
  EXPECT_EQ(Taught(kOpensThought, kReasoned),
            absl::StrCat(asked, "[[plan\n</think>\n\ncode<|endoftext|>]]"));
  // Templates that write <think> before the reasoning, as the prompt does or in another form.
  for (const char* opening : {"<think>\n", "<think>\n\n"}) {
    const std::string writes = absl::StrCat(
        "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>{{ m.content }}{% else %}"
        "<|im_end|><think>\n{{ m.reasoning_content }}\n</think>\n\n{{ m.content }}<|endoftext|>"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_end|>",
        opening, "{% endif %}");
    EXPECT_EQ(Taught(writes, kReasoned), absl::StrCat("<|im_start|>1<|im_end|>", opening,
                                                      "[[plan\n</think>\n\ncode<|endoftext|>]]"));
    EXPECT_EQ(
        Taught(writes, {{"user", "1"}, {"assistant", "<think>\nplan</think>code"}}),
        absl::StrCat("<|im_start|>1<|im_end|>", opening, "[[plan</think>code<|endoftext|>]]"));
  }
  // A template that copies the content behind a thought of its own.
  const std::string copies =
      "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>{{ m.content }}{% else %}"
      "<|im_end|><think>\n{{ m.content }}<|endoftext|>{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<|im_end|><think>\n{% endif %}";
  EXPECT_EQ(Taught(copies, kReasoned),
            absl::StrCat(asked, "[[plan\n</think>\n\ncode<|endoftext|>]]"));
}

TEST(EncodeConversation, ReasoningThatCannotBeTaughtIsRefused) {
  // Earlier turns show no thought.
  EXPECT_THAT(Taught(kThinkingChatMl, kReasonedTwice, true),
              AllOf(HasSubstr("message 1: chat template"), HasSubstr("without its reasoning"),
                    HasSubstr("only the last turn can be taught")));
  EXPECT_THAT(Taught(kThinkingChatMl, kReasonedTwice),
              HasSubstr("one<|im_end|>\n<|im_start|>user\n2<|im_end|>\n<|im_start|>assistant\n"
                        "[[<think>\nplan 2\n</think>\n\ntwo<|im_end|>]]"));
  ChatOptions options;
  options.enable_thinking = false;
  EXPECT_EQ(Taught(kThinkingChatMl, kReasoned, false, options),
            "message 1: the prompt ends with </think> (thinking is switched off), so that the "
            "turn's reasoning cannot be taught; switch thinking on, or remove the reasoning");
  EXPECT_THAT(Taught(kChatMl, {{"user", "1"}, {"assistant", "<think>a</think>b", "plan"}}),
              HasSubstr("message 1: the turn has reasoning of its own"));
}

TEST(EncodeConversation, AReasoningThatOccursInATagIsNotTakenForWritten) {
  const std::string drops = absl::StrCat(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n\n"
      "</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}",
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  EXPECT_THAT(Taught(drops, {{"user", "1"}, {"assistant", "code", "k"}}),
              HasSubstr("[[<think>\nk\n</think>\n\ncode<|im_end|>]]"));
}

TEST(EncodeConversation, AnEndOfTurnInAContentIsNotTheEnd) {
  const std::vector<ChatMessage> messages = {
      {"user", "1"}, {"assistant", "a<|im_end|>b"}, {"user", "2"}, {"assistant", "c<|im_end|>\nd"}};
  EXPECT_EQ(Taught(kChatMl, messages, true),
            "<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n[[a<|im_end|>b<|im_end|>]]\n"
            "<|im_start|>user\n2<|im_end|>\n<|im_start|>assistant\n[[c<|im_end|>\nd<|im_end|>]]");
}

TEST(EncodeConversation, ATemplateThatRefusesAQuestionIsAnErrorWhereItIsAsked) {
  const std::string template_text = absl::StrCat(
      "{% if add_generation_prompt and messages | length == 1 and messages[0].content == '1' %}"
      "{{ raise_exception('No ones') }}{% endif %}",
      kChatMl);
  EXPECT_EQ(Taught(template_text, kTwoTurns), Taught(kChatMl, kTwoTurns));
  EXPECT_THAT(Taught(template_text, kTwoTurns, true), HasSubstr("No ones"));
  const std::string refuses_all = absl::StrCat(
      "{% if messages | length > 2 %}{{ raise_exception('Too long') }}{% endif %}", template_text);
  EXPECT_THAT(Taught(refuses_all, kTwoTurns, true), HasSubstr("Too long"));
}

TEST(EncodeConversation, WhatCannotBeIsSaid) {
  EXPECT_EQ(Taught(kChatMl, {{"user", "1"}}), "the last message must be the assistant's");
  EXPECT_THAT(Taught("{% for m in messages %}{{ m.content }}{% endfor %}", kTwoTurns),
              HasSubstr("writes no control token at the end"));
  const ChatFolder empty;
  const auto plain = ChatTemplate::Load(empty.dir(), {}, QwenLikeTokenizer());
  EXPECT_TRUE(absl::IsFailedPrecondition(plain->EncodeConversation(kTwoTurns, false).status()));
}

}  // namespace
}  // namespace tritonrl
