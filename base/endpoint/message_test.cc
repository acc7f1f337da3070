#include "base/endpoint/message.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using nlohmann::json;

EndpointRequest Chat() {
  EndpointRequest request;
  request.model = "m";
  request.messages = {{.role = "user", .content = "question"}};
  return request;
}

json Body(const EndpointRequest& request) {
  const auto body = RequestBody(request);
  EXPECT_TRUE(body.ok()) << body.status();
  return json::parse(body.value_or("null"));
}

TEST(RequestBodyTest, SendsOnlyWhatIsSet) {
  EXPECT_EQ(
      Body(Chat()),
      json::parse(R"({"model": "m", "messages": [{"role": "user", "content": "question"}]})"));
  EndpointRequest request = Chat();
  request.temperature = 0.6;
  request.top_p = 0.95;
  request.max_tokens = 100;
  request.n = 2;
  request.seed = 7;
  request.stop = {"END"};
  request.extra = R"({"top_k": 20, "temperature": 1})";
  EXPECT_EQ(Body(request), json::parse(R"({"model": "m", "top_p": 0.95, "max_tokens": 100, "n": 2,
      "seed": 7, "stop": ["END"], "top_k": 20, "temperature": 1,
      "messages": [{"role": "user", "content": "question"}]})"));
}

TEST(RequestBodyTest, APromptWithoutMessagesIsACompletion) {
  EndpointRequest request;
  request.model = "m";
  request.prompt = "text \xff";
  EXPECT_EQ(Body(request), json::parse(R"({"model": "m", "prompt": "text \ufffd"})"));
  EXPECT_EQ(RequestUrl("http://h/v1", request), "http://h/v1/completions");
  EXPECT_EQ(RequestUrl("http://h/v1/", Chat()), "http://h/v1/chat/completions");
  EXPECT_EQ(RequestUrl("http://h/v1/chat/completions", Chat()), "http://h/v1/chat/completions");
  EXPECT_EQ(RequestUrl("http://h/v1/chat/completions/", request), "http://h/v1/completions");
}

TEST(RequestBodyTest, MistakesAreNamed) {
  EndpointRequest request = Chat();
  request.extra = "[1]";
  EXPECT_EQ(RequestBody(request).status().message(),
            "the request's extra members are no JSON object: [1]");
  request.model = "";
  EXPECT_EQ(RequestBody(request).status().message(), "the request names no model");
  request = {.model = "m"};
  EXPECT_EQ(RequestBody(request).status().message(),
            "the request has neither messages nor a prompt");
}

TEST(ParseReplyTest, ReadsTextReasoningAndUsage) {
  const auto reply = ParseReply(Chat(), R"({"model": "teacher-1", "choices": [
      {"message": {"content": "code", "reasoning_content": "plan"}, "finish_reason": "stop"},
      {"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}], "reasoning": "r"}},
      {"message": {"content": null, "reasoning_content": "cut"}, "finish_reason": "length"}],
      "usage": {"prompt_tokens": 5, "completion_tokens": 7}})");
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->choices.size(), 3);
  EXPECT_EQ(reply->text(), "code");
  EXPECT_EQ(reply->choices[0].reasoning, "plan");
  EXPECT_EQ(reply->choices[0].finish_reason, "stop");
  EXPECT_EQ(reply->choices[1].text, "ab");
  EXPECT_EQ(reply->choices[1].reasoning, "r");
  EXPECT_EQ(reply->choices[2].text, "");
  EXPECT_EQ(reply->model, "teacher-1");
  EXPECT_EQ(reply->usage.prompt_tokens, 5);
  EXPECT_EQ(reply->usage.completion_tokens, 7);
  EXPECT_TRUE(reply->usage.reported);
}

TEST(ParseReplyTest, EstimatesTokensThatAreNotReported) {
  EndpointRequest request;
  request.model = "m";
  request.prompt = std::string(40, 'p');
  const auto reply = ParseReply(request, R"({"choices": [{"text": "12345678"}]})");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_FALSE(reply->usage.reported);
  EXPECT_EQ(reply->usage.prompt_tokens, 10);
  EXPECT_EQ(reply->usage.completion_tokens, 2);
}

TEST(ParseReplyTest, SaysWhatIsMissing) {
  for (const auto& [body, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"<html>", "the reply is not JSON"},
           {"\"text\"", "the reply is not JSON"},
           {"{\"choices\": [{\"mess", "the reply is not JSON"},
           {"{}", "the reply has no choices"},
           {R"({"choices": []})", "the reply has no choices"},
           {R"({"error": {"message": "overloaded"}})", "the reply has no choices: overloaded"},
           {R"({"choices": [1]})", "a choice of the reply is no object"},
           {R"({"choices": [{"text": "x"}]})", "the reply has no message"},
           {R"({"choices": [{"message": {"content": 1}}]})", "the reply has no message content"}}) {
    const auto reply = ParseReply(Chat(), body);
    EXPECT_TRUE(absl::IsDataLoss(reply.status())) << body;
    EXPECT_EQ(reply.status().message(), message) << body;
  }
}

// A filtered response: it is paid for, and another would not be better.
TEST(ParseReplyTest, NoContentIsAnEmptyText) {
  for (const char* message : {R"({"content": null})", "{}"}) {
    const auto reply =
        ParseReply(Chat(), absl::StrCat(R"({"choices": [{"message": )", message,
                                        R"(}], "usage": {"completion_tokens": 7}})"));
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->text(), "");
    EXPECT_EQ(reply->usage.completion_tokens, 7);
  }
}

TEST(ParseReplyTest, ABadReplyMayReportItsUsage) {
  const EndpointUsage usage =
      UsageOfBadReply(R"({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 7}})");
  EXPECT_EQ(usage.prompt_tokens, 3);
  EXPECT_EQ(usage.completion_tokens, 7);
  EXPECT_FALSE(UsageOfBadReply("{}").reported);
  EXPECT_FALSE(UsageOfBadReply("<html>").reported);
}

TEST(ErrorTextTest, FindsTheMessageInUsualForms) {
  std::string code;
  EXPECT_EQ(ErrorText(R"({"error": {"message": "a\nb", "code": "c"}})", &code), "a b");
  EXPECT_EQ(code, "c");
  EXPECT_EQ(ErrorText(R"({"error": {"message": "a", "type": "t", "code": null}})", &code), "a");
  EXPECT_EQ(code, "t");
  EXPECT_EQ(ErrorText(R"({"error": "text"})", &code), "text");
  EXPECT_EQ(code, "");
  EXPECT_EQ(ErrorText(R"({"detail": "d"})", &code), "d");
  EXPECT_EQ(ErrorText(R"({"message": "m"})", &code), "m");
  EXPECT_EQ(ErrorText("gone\xff", &code), "gone\xef\xbf\xbd");
  EXPECT_EQ(ErrorText(std::string(5000, 'x'), &code).size(), 300);
}

}  // namespace
}  // namespace tritonrl
