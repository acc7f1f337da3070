#include "model/chat/template_renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

const Json kNone = Json::object();

std::vector<ChatMessage> User(const std::string& content) { return {{"user", content}}; }

std::unique_ptr<TemplateRenderer> Started(const std::string& text,
                                          absl::Duration deadline = absl::Seconds(60)) {
  auto renderer = TemplateRenderer::Start(text, deadline);
  EXPECT_TRUE(renderer.ok()) << renderer.status();
  return renderer.ok() ? *std::move(renderer) : nullptr;
}

// The text, or the error's message.
std::string Rendered(const std::string& text, const Json& variables = kNone) {
  auto renderer = TemplateRenderer::Start(text, absl::Seconds(60));
  if (!renderer.ok()) return Message(renderer.status());
  const auto rendered = (*renderer)->Render(User("hello"), true, variables);
  return rendered.ok() ? *rendered : Message(rendered.status());
}

TEST(TemplateRenderer, RendersAsTransformersDoes) {
  // White space of blocks, as trim_blocks and lstrip_blocks say.
  EXPECT_EQ(Rendered("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  // JSON keeps its order, its characters and the signs of HTML.
  EXPECT_EQ(Rendered("{{ x | tojson }}", {{"x", {{"z", "<é>"}, {"a", 1}}}}),
            "{\"z\": \"<é>\", \"a\": 1}");
  EXPECT_EQ(Rendered("{{ x | tojson(indent=2) }}", {{"x", {1}}}), "[\n  1\n]");
  EXPECT_EQ(Rendered("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}"
                     "{% endfor %}"),
            "01");
  EXPECT_EQ(Rendered("<{% generation %}{{ messages[0].content }}{% endgeneration %}>"), "<hello>");
  EXPECT_EQ(Rendered("{{ tools is none }} {{ documents is none }} {{ unset }}"), "True True ");
  EXPECT_EQ(Rendered("{{ add_generation_prompt }} {{ a }}{{ b }}", {{"a", "é"}, {"b", 7}}),
            "True é7");
}

TEST(TemplateRenderer, KnowsTheVariablesOfATemplate) {
  const auto renderer = Started(
      "{% if enable_thinking is defined and not enable_thinking %}x{% endif %}"
      "{% if not date is defined %}{% set date = 'today' %}{% endif %}{{ date }}"
      "{% set b = b | default(1) %}{% set own = 1 %}{{ own }}{{ strftime_now('%Y') }}"
      "{% macro f(argument) %}{{ argument }}{{ inner.x }}{% endmacro %}text");
  EXPECT_THAT(
      renderer->UnknownVariables({"enable_thinking", "date", "b", "strftime_now", "inner"}).value(),
      ElementsAre());
  EXPECT_THAT(renderer->UnknownVariables({"text", "own", "date", "argument", "é"}).value(),
              ElementsAre("text", "own", "argument", "é"));
  // The process renders afterwards, and another one answers too.
  EXPECT_THAT(renderer->Render(User("hello"), true, kNone).value(), HasSubstr("today"));
  kill(renderer->pid(), SIGKILL);
  const auto after = renderer->Render(User("hello"), false, kNone);
  EXPECT_TRUE(after.ok()) << after.status();
  EXPECT_THAT(renderer->UnknownVariables({"z"}).value(), ElementsAre("z"));
}

TEST(TemplateRenderer, ErrorsNameTheLineAndTheTemplatesOwnMessage) {
  EXPECT_EQ(Rendered("{{ raise_exception('Only users may speak') }}"), "Only users may speak");
  EXPECT_THAT(Rendered("a\n{% if %}"), HasSubstr("line 2: TemplateSyntaxError"));
  EXPECT_THAT(Rendered("a\nb {{ messages[0].content.x.y }}"), HasSubstr("line 2: UndefinedError"));
  EXPECT_THAT(Rendered("{{ '\\ud800' }}"), HasSubstr("surrogates"));
}

TEST(TemplateRenderer, TemplatesReachNothing) {
  EXPECT_THAT(Rendered("{% include '/etc/passwd' %}"), HasSubstr("no loader"));
  EXPECT_THAT(Rendered("{{ ''.__class__.__mro__ }}"), HasSubstr("SecurityError"));
  EXPECT_THAT(Rendered("{{ messages.append(1) }}"), HasSubstr("SecurityError"));
  EXPECT_THAT(Rendered("{{ cycler.__init__.__globals__.os }}"), HasSubstr("SecurityError"));
  EXPECT_THAT(Rendered("{{ ('x' * 2000000000) | length }}"), HasSubstr("1024 MiB"));
  EXPECT_THAT(Rendered("{{ range(10000000) | length }}"), HasSubstr("OverflowError"));
}

constexpr char kEndless[] =
    "{% if messages[0].content == 'spin' %}{% for a in range(99999) %}{% for b in range(99999) %}"
    "{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}{% endif %}done";

TEST(TemplateRenderer, AnEndlessTemplateIsRefused) {
  const auto renderer = Started(kEndless, absl::Seconds(2));
  ASSERT_NE(renderer, nullptr);
  const absl::Status status = renderer->Render(User("spin"), true, kNone).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(Message(status), "takes longer than 2 s, the limit");
  EXPECT_EQ(renderer->Render(User("go"), true, kNone).value(), "done");
}

TEST(TemplateRenderer, AnEndlessCompilationIsRefused) {
  // Jinja2 computes constants when it compiles.
  const auto renderer = TemplateRenderer::Start("{{ 9 ** (9 ** 9) }}", absl::Seconds(1));
  EXPECT_EQ(Message(renderer.status()), "takes longer than 1 s, the limit");
}

TEST(TemplateRenderer, AKilledChildIsStartedAgain) {
  const auto renderer = Started("{{ messages[0].content }}");
  ASSERT_NE(renderer, nullptr);
  for (const char* content : {"one", "two"}) {
    const pid_t before = renderer->pid();
    ASSERT_GT(before, 0);
    kill(before, SIGKILL);
    EXPECT_EQ(renderer->Render(User(content), true, kNone).value(), content);
    EXPECT_NE(renderer->pid(), before);
  }
}

TEST(TemplateRenderer, EqualRequestsAreRenderedOnceUnlessTheyAskForTheTime) {
  const auto random = Started("{{ range(99999) | random }}");
  ASSERT_NE(random, nullptr);
  const std::string first = random->Render(User("a"), true, kNone).value();
  EXPECT_EQ(random->Render(User("a"), true, kNone).value(), first);
  const auto dated = Started("{{ strftime_now('%Y') | length }} {{ range(99999) | random }}");
  ASSERT_NE(dated, nullptr);
  std::vector<std::string> texts;
  for (int i = 0; i < 5; ++i) texts.push_back(dated->Render(User("a"), true, kNone).value());
  EXPECT_TRUE(std::any_of(texts.begin(), texts.end(),
                          [&](const std::string& text) { return text != texts[0]; }));
}

TEST(TemplateRenderer, ThreadsGetTheirOwnTexts) {
  const auto renderer = Started("{{ messages[0].content * 3 }}");
  ASSERT_NE(renderer, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const std::string content = absl::StrCat(t, "-", i, ";");
        EXPECT_EQ(renderer->Render(User(content), true, kNone).value(),
                  absl::StrCat(content, content, content));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

const std::vector<ChatMessage> kThree = {{"user", "one"}, {"assistant", "two"}, {"user", "three"}};

TEST(TemplateRenderer, SeveralTextsOfAConversationComeInOrder) {
  const auto renderer = Started(
      "{% for m in messages %}{{ m.content }} {% endfor %}{{ add_generation_prompt }}{{ v }}");
  ASSERT_NE(renderer, nullptr);
  for (int round = 0; round < 3; ++round) {
    const std::vector<Rendering> wanted = {{3, false}, {1, true}, {0, true}, {2, false}};
    const RenderedTexts rendered = renderer->RenderAll(kThree, wanted, {{"v", round}});
    EXPECT_TRUE(rendered.status.ok()) << rendered.status;
    EXPECT_FALSE(rendered.dated);
    const std::string end = absl::StrCat(round);
    EXPECT_THAT(rendered.texts, ElementsAre("one two three False" + end, "one True" + end,
                                            "True" + end, "one two False" + end));
  }
  EXPECT_TRUE(renderer->RenderAll(kThree, {}, kNone).texts.empty());
}

TEST(TemplateRenderer, ContentsPassAsTheyAre) {
  const auto renderer = Started("{{ messages | tojson }}{{ messages[0].content }}");
  ASSERT_NE(renderer, nullptr);
  using std::string_literals::operator""s;
  for (const std::string& content :
       {""s, "\n"s, "a\r\n\n{\"text\": 3}\n"s, "\0\x01\x7f"s, "é\u2028你好\U0001f600"s}) {
    const std::vector<ChatMessage> messages = {{"user", content}, {"assistant", "b", content}};
    Json json = {{{"role", "user"}, {"content", content}},
                 {{"role", "assistant"}, {"content", "b"}, {"reasoning_content", content}}};
    const std::string text = renderer->Render(messages, true, kNone).value();
    const size_t end = text.size() - content.size();
    EXPECT_EQ(text.substr(end), content);
    EXPECT_EQ(Json::parse(text.substr(0, end)), json);
  }
  // What is no UTF-8 is replaced, each maximal ill-formed part by one U+FFFD.
  const auto copies = Started("{{ messages[0].content }}{{ messages[0].role }}");
  ASSERT_NE(copies, nullptr);
  EXPECT_EQ(
      copies->Render(std::vector<ChatMessage>{{"\xff", "a\xe4\xbd b\xed\xa0\x80"}}, true, kNone)
          .value(),
      "a\uFFFD b\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(TemplateRenderer, AnErrorEndsTheTextsOfItsConversationAlone) {
  const auto renderer = Started(
      "{% if messages | length == 2 %}{{ raise_exception('No pairs') }}{% endif %}"
      "{{ messages[-1].content }}");
  ASSERT_NE(renderer, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const bool bad = (t + i) % 2 == 0;
        const std::vector<Rendering> wanted = {
            {3, false}, {static_cast<size_t>(bad ? 2 : 1), true}, {1, true}};
        const RenderedTexts rendered = renderer->RenderAll(kThree, wanted, kNone);
        if (bad) {
          EXPECT_THAT(rendered.texts, ElementsAre("three"));
          EXPECT_EQ(Message(rendered.status), "No pairs");
        } else {
          EXPECT_THAT(rendered.texts, ElementsAre("three", "one", "one"));
          EXPECT_TRUE(rendered.status.ok()) << rendered.status;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TemplateRenderer, AnEndlessTextAmongSeveralIsRefused) {
  const auto renderer = Started(
      absl::StrCat("{% if messages | length == 2 %}{% set messages = [{'content': 'spin'}] %}",
                   "{% endif %}", kEndless),
      absl::Seconds(2));
  ASSERT_NE(renderer, nullptr);
  const std::vector<Rendering> wanted = {{3, false}, {2, true}, {1, true}};
  for (int round = 0; round < 2; ++round) {
    const RenderedTexts rendered = renderer->RenderAll(kThree, wanted, kNone);
    EXPECT_THAT(rendered.texts, ElementsAre("done"));
    EXPECT_TRUE(absl::IsInvalidArgument(rendered.status));
    EXPECT_EQ(Message(rendered.status), "takes longer than 2 s, the limit");
  }
  EXPECT_EQ(renderer->Render(User("go"), true, kNone).value(), "done");
}

TEST(TemplateRenderer, AChildThatHangsOrDiesDuringARequest) {
  const std::vector<Rendering> wanted = {{3, false}, {1, true}};
  const auto renderer = Started("{{ messages[-1].content }}", absl::Seconds(30));
  ASSERT_NE(renderer, nullptr);
  // It stands still, so that it cannot have answered when it dies.
  const pid_t before = renderer->pid();
  ASSERT_EQ(kill(before, SIGSTOP), 0);
  RenderedTexts rendered;
  std::thread thread([&] { rendered = renderer->RenderAll(kThree, wanted, kNone); });
  kill(before, SIGKILL);
  thread.join();
  EXPECT_TRUE(rendered.status.ok()) << rendered.status;
  EXPECT_THAT(rendered.texts, ElementsAre("three", "one"));
  EXPECT_NE(renderer->pid(), before);

  const auto hasty = Started("{{ messages[-1].content }}", absl::Seconds(5));
  ASSERT_NE(hasty, nullptr);
  ASSERT_EQ(kill(hasty->pid(), SIGSTOP), 0);
  rendered = hasty->RenderAll(kThree, wanted, kNone);
  EXPECT_TRUE(rendered.texts.empty());
  EXPECT_EQ(Message(rendered.status), "takes longer than 5 s, the limit");
  EXPECT_EQ(hasty->pid(), 0);
  EXPECT_THAT(hasty->RenderAll(kThree, wanted, kNone).texts, ElementsAre("three", "one"));
}

TEST(TemplateRenderer, LongTextsPass) {
  const auto renderer = Started("{{ messages[0].content }}");
  ASSERT_NE(renderer, nullptr);
  const std::string content(3 << 20, 'x');
  EXPECT_EQ(renderer->Render(User(content), true, kNone).value(), content);
  const std::vector<Rendering> wanted = {{1, false}, {1, true}};
  EXPECT_THAT(renderer->RenderAll(User(content), wanted, kNone).texts,
              ElementsAre(content, content));
  const auto longer = Started("{{ messages[0].content * 65 }}");
  ASSERT_NE(longer, nullptr);
  EXPECT_EQ(Message(longer->Render(User(std::string(1 << 20, 'x')), true, kNone).status()),
            "writes 65 MiB, more than 64 MiB");
}

}  // namespace
}  // namespace tritonrl
