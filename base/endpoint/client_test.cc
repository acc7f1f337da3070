// The client against a mock endpoint: answers, refusals and faults.
#include "base/endpoint/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/endpoint/testing/mock_endpoint.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;
using Fault = MockReply::Fault;

EndpointRequest Question(const std::string& text = "question") {
  EndpointRequest request;
  request.model = "teacher";
  request.messages = {{.role = "user", .content = text}};
  request.max_tokens = 100;
  return request;
}

EndpointOptions Fast(const std::string& url) {
  EndpointOptions options;
  options.url = url;
  options.first_pause = absl::Milliseconds(1);
  options.max_attempts = 3;
  return options;
}

std::unique_ptr<EndpointClient> Make(const EndpointOptions& options) {
  auto client = EndpointClient::Make(options);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

// Asks one question of an endpoint with this script.
absl::StatusOr<EndpointResponse> AskOnce(const MockEndpoint::Script& script) {
  MockEndpoint endpoint(script);
  return Make(Fast(endpoint.url()))->Ask(Question());
}

TEST(EndpointClientTest, AsksAndAnswers) {
  MockEndpoint endpoint([](const MockRequest& request) {
    return MockReply::Chat(absl::StrCat("answer to ", request.prompt), "thought");
  });
  const auto client = Make(Fast(endpoint.url()));
  const auto response = client->Ask(Question());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->text(), "answer to question");
  EXPECT_EQ(response->choices[0].reasoning, "thought");
  const MockRequest asked = endpoint.log()[0];
  EXPECT_EQ(asked.path, "/v1/chat/completions");
  EXPECT_EQ(asked.model(), "teacher");
  EXPECT_EQ(asked.authorization, "");
  EndpointRequest completion;
  completion.model = "teacher";
  completion.prompt = "raw";
  // The mock answers with a chat message, which is no completion.
  EXPECT_TRUE(absl::IsUnavailable(client->Ask(completion).status()));
  EXPECT_EQ(endpoint.log()[1].path, "/v1/completions");
}

TEST(EndpointClientTest, ManyRequestsAreInFlightAtOnce) {
  MockEndpoint endpoint(
      [](const MockRequest& request) {
        MockReply reply = MockReply::Chat(request.prompt);
        reply.delay = absl::Milliseconds(200);
        return reply;
      },
      /*key=*/"", /*threads=*/64);
  EndpointOptions options = Fast(endpoint.url());
  options.max_in_flight = 40;
  const auto client = Make(options);
  std::atomic<int> right = 0, left = 200;
  absl::Notification done;
  for (int i = 0; i < 200; ++i) {
    const std::string text = absl::StrCat("question ", i);
    client->Submit(Question(text), [&, text](const absl::StatusOr<EndpointResponse>& response) {
      if (response.ok() && response->text() == text) ++right;
      if (--left == 0) done.Notify();
    });
  }
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(60)));
  EXPECT_EQ(right, 200);
  EXPECT_EQ(endpoint.most_at_once(), 40);
  const EndpointCounts counts = client->counts();
  EXPECT_EQ(counts.attempts, 200);
  EXPECT_EQ(counts.responses, 200);
  EXPECT_EQ(counts.in_flight, 0);
  EXPECT_EQ(counts.prompt_tokens, 200 * 100);
  EXPECT_EQ(counts.completion_tokens, 200 * 1000);
}

TEST(EndpointClientTest, FaultsAreRetried) {
  MockEndpoint endpoint([](const MockRequest& request) {
    MockReply reply = MockReply::Chat("fine");
    switch (request.number) {
      case 1:
        return MockReply::Error(500, "crashed");
      case 2:
        return MockReply{.body = "<html>garbage"};
      case 3:
        reply.fault = Fault::kCut;
        return reply;
      case 4:
        reply.fault = Fault::kHang;
        return reply;
      case 5:
        return MockReply::Error(503, "overloaded");
      default:
        return reply;
    }
  });
  EndpointOptions options = Fast(endpoint.url());
  options.max_attempts = 20;
  options.attempt_timeout = absl::Seconds(1);
  const auto client = Make(options);
  const auto response = client->Ask(Question());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_GE(endpoint.requests(), 6);
  EXPECT_EQ(client->counts().retries, endpoint.requests() - 1);
}

TEST(EndpointClientTest, GivesUpWithTheLastReason) {
  const auto status =
      AskOnce([](const MockRequest&) { return MockReply::Error(502, "bad gateway"); }).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("gave no usable answer in 3 attempts: HTTP status 502: bad gateway"));
  const auto garbage =
      AskOnce([](const MockRequest&) { return MockReply{.body = "garbage"}; }).status();
  EXPECT_THAT(garbage.message(), HasSubstr("in 3 attempts: the reply is not JSON"));
  const auto nobody = Make(Fast("http://127.0.0.1:1/v1"))->Ask(Question()).status();
  EXPECT_TRUE(absl::IsUnavailable(nobody)) << nobody;
  EXPECT_THAT(nobody.message(), HasSubstr("http://127.0.0.1:1/v1"));
}

TEST(EndpointClientTest, AHangingEndpointEndsAtTheTotalDeadline) {
  MockEndpoint endpoint([](const MockRequest&) { return MockReply{.fault = Fault::kHang}; });
  EndpointOptions options = Fast(endpoint.url());
  options.max_attempts = 1000;
  options.attempt_timeout = absl::Milliseconds(100);
  options.total_timeout = absl::Milliseconds(700);
  const auto status = Make(options)->Ask(Question()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("within 700ms"));
}

TEST(EndpointClientTest, RefusalsAreNotRetried) {
  struct Case {
    int status;
    const char* code;
    absl::StatusCode expected;
    const char* text;
  };
  for (const Case& c : {
           Case{400, "", absl::StatusCode::kInvalidArgument, "refuses the request"},
           Case{401, "", absl::StatusCode::kUnauthenticated, "wants a key"},
           Case{402, "", absl::StatusCode::kPermissionDenied, "no quota left"},
           Case{403, "", absl::StatusCode::kPermissionDenied, "wants a key"},
           Case{404, "", absl::StatusCode::kNotFound, "no model \"teacher\""},
           Case{422, "", absl::StatusCode::kInvalidArgument, "refuses the request"},
           Case{429, "insufficient_quota", absl::StatusCode::kPermissionDenied, "no quota left"},
       }) {
    MockEndpoint endpoint(
        [&](const MockRequest&) { return MockReply::Error(c.status, "the reason", c.code); });
    const auto status = Make(Fast(endpoint.url()))->Ask(Question()).status();
    EXPECT_EQ(status.code(), c.expected) << status;
    EXPECT_THAT(status.message(), HasSubstr(c.text));
    EXPECT_THAT(status.message(), HasSubstr("the reason"));
    EXPECT_EQ(endpoint.requests(), 1) << c.status;
  }
}

TEST(EndpointClientTest, AWrongKeyIsNamedByItsVariableAndNeverShown) {
  MockEndpoint endpoint([](const MockRequest&) { return MockReply::Chat("fine"); }, "right");
  EndpointOptions options = Fast(endpoint.url());
  options.api_key_variable = "TEST_ENDPOINT_KEY";
  setenv("TEST_ENDPOINT_KEY", "sk-secret", 1);
  const auto status = Make(options)->Ask(Question()).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_TRUE(EndsAllRequests(status));
  EXPECT_THAT(status.message(), HasSubstr("refuses the key in the variable TEST_ENDPOINT_KEY"));
  EXPECT_THAT(status.message(), HasSubstr("bad key Bearer [the key]"));
  EXPECT_THAT(status.message(), Not(HasSubstr("secret")));
  setenv("TEST_ENDPOINT_KEY", "right", 1);
  EXPECT_TRUE(Make(options)->Ask(Question()).ok());
}

TEST(EndpointClientTest, ARedirectIsNotFollowed) {
  const auto status = AskOnce([](const MockRequest&) { return MockReply{.status = 308}; }).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("has moved"));
}

TEST(EndpointClientTest, LongRepliesAreRefused) {
  MockEndpoint endpoint(
      [](const MockRequest&) { return MockReply::Chat(std::string(10000, 'x')); });
  EndpointOptions options = Fast(endpoint.url());
  options.max_reply_bytes = 5000;
  const auto status = Make(options)->Ask(Question()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("longer than 5000 bytes"));
}

TEST(EndpointClientTest, CancelWaitingKeepsWhatIsInFlight) {
  MockEndpoint endpoint([](const MockRequest& request) {
    MockReply reply = MockReply::Chat(request.prompt);
    reply.delay = absl::Milliseconds(300);
    return reply;
  });
  EndpointOptions options = Fast(endpoint.url());
  options.max_in_flight = 2;
  const auto client = Make(options);
  std::atomic<int> answered = 0, cancelled = 0, left = 10;
  absl::Notification done;
  for (int i = 0; i < 10; ++i) {
    client->Submit(Question(), [&](const absl::StatusOr<EndpointResponse>& response) {
      if (response.ok()) ++answered;
      if (absl::IsCancelled(response.status())) ++cancelled;
      if (--left == 0) done.Notify();
    });
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (endpoint.requests() < 2 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  client->CancelWaiting();
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(cancelled, 8);
}

TEST(EndpointClientTest, TheDestructorEndsRequestsInFlight) {
  MockEndpoint endpoint([](const MockRequest&) { return MockReply{.fault = Fault::kHang}; });
  auto client = Make(Fast(endpoint.url()));
  absl::Status status;
  client->Submit(Question(), [&](const absl::StatusOr<EndpointResponse>& response) {
    status = response.status();
  });
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (endpoint.requests() < 1 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  client.reset();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST(EndpointOptionsTest, MistakesAreNamed) {
  const auto message = [](const EndpointOptions& options) {
    const auto client = EndpointClient::Make(options);
    EXPECT_TRUE(absl::IsInvalidArgument(client.status())) << client.status();
    return std::string(client.status().message());
  };
  EXPECT_EQ(message({}), "the endpoint's url is missing");
  EXPECT_THAT(message({.url = "ftp://h"}), HasSubstr("\"ftp://h\" must begin with http://"));
  unsetenv("TEST_ENDPOINT_NO_KEY");
  EXPECT_EQ(
      message({.url = "http://h", .api_key_variable = "TEST_ENDPOINT_NO_KEY"}),
      "the endpoint's key is to stand in the variable TEST_ENDPOINT_NO_KEY, which is not set");
  setenv("TEST_ENDPOINT_KEY", "a\nb", 1);
  EXPECT_THAT(message({.url = "http://h", .api_key_variable = "TEST_ENDPOINT_KEY"}),
              HasSubstr("has a line break"));
  EXPECT_THAT(message({.url = "http://h", .max_attempts = 0}), HasSubstr("at least 1"));
  EXPECT_THAT(message({.url = "http://h", .max_in_flight = 0}), HasSubstr("1 to 10000"));
  EXPECT_THAT(message({.url = "http://h", .requests_per_minute = -1}), HasSubstr("rate limits"));
  EXPECT_THAT(message({.url = "http://h", .price_in = -1}), HasSubstr("prices"));
  EXPECT_THAT(message({.url = "http://h", .max_cost = 1}),
              HasSubstr("needs the endpoint's prices"));
  EXPECT_THAT(message({.url = "http://h", .attempt_timeout = absl::ZeroDuration()}),
              HasSubstr("above 0"));
}

}  // namespace
}  // namespace tritonrl
