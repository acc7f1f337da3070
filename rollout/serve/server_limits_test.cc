// The server with slow, numerous, disconnected and hostile clients, and its drain.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rollout/serve/testing/server_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;

const json kStream = {{"prompt", "x"}, {"stream", true}};

std::string PostText(const std::string& body, const std::string& headers = "") {
  return absl::StrCat("POST /v1/completions HTTP/1.1\r\nHost: x\r\n", headers,
                      "Content-Length: ", body.size(), "\r\n\r\n", body);
}

TEST_F(ServerTest, BodiesBeyondTheLimitAreRefused) {
  ServerOptions options;
  options.http.max_body_bytes = 1000;
  Start(options);
  const std::string body = json{{"prompt", std::string(5000, 'x')}}.dump();
  const HttpReply declared = Call(port(), "POST", "/v1/completions", body);
  EXPECT_EQ(declared.status, 413);
  EXPECT_TRUE(absl::StrContains(declared.error(), "1000 bytes")) << declared.body;
  // A chunked body does not declare its length.
  RawClient chunked(port());
  std::string text = "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20; ++i) absl::StrAppend(&text, "64\r\n", std::string(100, 'x'), "\r\n");
  chunked.Send(text + "0\r\n\r\n");
  EXPECT_TRUE(absl::StrContains(chunked.ReadToEnd(), " 413 "));
  // The declared length is far larger than the body: the answer comes before the body.
  RawClient liar(port());
  liar.Send("POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n");
  EXPECT_TRUE(absl::StrContains(liar.ReadUntil("\r\n\r\n"), " 413 "));
  EXPECT_EQ(Call(port(), "GET", "/health").status, 200);
}

TEST_F(ServerTest, BodiesWithoutAClearLengthAreRefused) {
  Start();
  for (const char* head :
       {"", "Content-Length: -5\r\n", "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: five\r\n", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 2\r\n"}) {
    RawClient client(port());
    client.Send(absl::StrCat("POST /v1/completions HTTP/1.1\r\n", head, "\r\n{}"));
    EXPECT_TRUE(absl::StrContains(client.ReadToEnd(), " 400 ")) << head;
  }
}

TEST_F(ServerTest, HeadsThatAreNoneAreRefused) {
  Start();
  const std::string long_header(100 << 10, 'x');
  for (const std::string& head :
       {std::string("HELLO\r\n\r\n"), absl::StrCat("GET /", long_header, " HTTP/1.1\r\n\r\n"),
        absl::StrCat("GET /health HTTP/1.1\r\nX: ", long_header, "\r\n\r\n"),
        absl::StrCat("GET /health HTTP/1.1\r\nRange: bytes=", std::string(8000, '1'),
                     "-\r\n\r\n")}) {
    RawClient client(port());
    client.Send(head);
    const std::string answer = client.ReadToEnd();
    EXPECT_TRUE(answer.empty() || absl::StartsWith(answer, "HTTP/1.1 4")) << answer;
  }
  EXPECT_EQ(Call(port(), "GET", "/health").status, 200);
}

TEST_F(ServerTest, AnUnreadBodyIsNoSecondRequest) {
  Start();
  for (const char* start : {"POST /nowhere", "GET /health"}) {
    RawClient client(port());
    const std::string inner = "GET /v1/models HTTP/1.1\r\n\r\n";
    client.Send(
        absl::StrCat(start, " HTTP/1.1\r\nContent-Length: ", inner.size(), "\r\n\r\n", inner));
    const std::string answers = client.ReadToEnd();
    EXPECT_TRUE(absl::StartsWith(answers, "HTTP/1.1 ")) << answers;
    EXPECT_FALSE(absl::StrContains(answers.substr(5), "HTTP/1.1 ")) << answers;
  }
}

TEST_F(ServerTest, AConnectionServesSeveralRequests) {
  Start();
  RawClient client(port());
  for (int i = 0; i < 10; ++i) {
    client.Send("GET /health HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(absl::StrContains(client.ReadUntil("}"), "200 OK"));
  }
}

TEST_F(ServerTest, ClientsThatTrickleAreCutOff) {
  ServerOptions options;
  options.http.read_timeout = absl::Milliseconds(300);
  Start(options);
  // The head, then the body, byte by byte: each byte arrives in time, the whole does not.
  for (const std::string& start :
       {std::string(),
        std::string("POST /v1/completions HTTP/1.1\r\nContent-Length: 100000\r\n\r\n")}) {
    RawClient client(port());
    ASSERT_TRUE(client.Send(start));
    const absl::Time deadline = absl::Now() + kPatience;
    while (client.Send("x") && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(20));
    EXPECT_LT(absl::Now(), deadline);
  }
  // A client that sends nothing.
  RawClient silent(port());
  EXPECT_EQ(silent.ReadToEnd(), "");
}

TEST_F(ServerTest, ClientsThatDoNotReadAreCutOff) {
  ServerOptions options;
  options.http.write_timeout = absl::Milliseconds(200);
  Start(options);
  RawClient client(port());
  client.Send(PostText(kStream.dump()));
  const GenerateRequest request = engine_.WaitForRequest(0);
  // Texts of 60 kB, until the socket buffers are full.
  for (int i = 0; i < 1000 && engine_.IsOpen(request, 0); ++i) {
    engine_.Draw(request, 0, 259);
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(engine_.WaitForCancel(request));
}

TEST_F(ServerTest, AClientThatGoesAwayCancelsItsSamples) {
  Start();
  const json whole = {{"prompt", "x"}, {"n", 3}};
  size_t before = 0;
  for (const json& body : {whole, kStream}) {
    RawClient client(port());
    client.Send(PostText(body.dump()));
    const GenerateRequest request = engine_.WaitForRequest(before++);
    engine_.Draw(request, 0, "a");
    client.Close();
    EXPECT_TRUE(engine_.WaitForCancel(request)) << "without another token";
  }
  EXPECT_TRUE(WaitUntil([&] { return Metric("tritonrl_requests_in_progress") == "0"; }));
  // Cancelled samples leave the engine by themselves.
  EXPECT_TRUE(WaitUntil(
      [&] { return engine_.Outstanding() == 0 && Metric("tritonrl_samples_running") == "0"; }));
  EXPECT_EQ(Metric("tritonrl_requests_total{endpoint=\"/v1/completions\",status=\"499\"}"), "1");
}

TEST_F(ServerTest, MoreRequestsThanTheLimitAreTold429) {
  ServerOptions options;
  options.max_concurrent = 1;
  Start(options);
  auto first = PostAsync("/v1/completions", {{"prompt", "x"}});
  const GenerateRequest request = engine_.WaitForRequest(0);
  const HttpReply second = Post(port(), "/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(second.status, 429);
  EXPECT_EQ(second.json()["error"]["type"], "rate_limit_error");
  EXPECT_EQ(second.headers.find("Retry-After")->second, "1");
  EndWith(request, 0, "a");
  EXPECT_EQ(first.get().status, 200);
  auto third = PostAsync("/v1/completions", {{"prompt", "x"}});
  EndWith(engine_.WaitForRequest(1), 0, "a");
  EXPECT_EQ(third.get().status, 200) << "its place is free again";
}

TEST_F(ServerTest, AFullEngineIsTold429) {
  Start();
  engine_.Refuse(absl::ResourceExhaustedError("too many samples"));
  EXPECT_EQ(Post(port(), "/v1/completions", {{"prompt", "x"}}).status, 429);
}

TEST_F(ServerTest, MoreConnectionsThanTheLimitAreTold503) {
  ServerOptions options;
  options.http.max_connections = 2;
  Start(options);
  RawClient first(port()), second(port());
  for (RawClient* client : {&first, &second}) {
    client->Send("GET /health HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(absl::StrContains(client->ReadUntil("}"), "200 OK"));
  }
  RawClient third(port());
  EXPECT_TRUE(absl::StrContains(third.ReadToEnd(), "too many connections"));
  first.Close();
  EXPECT_TRUE(WaitUntil([&] { return Call(port(), "GET", "/health").status == 200; }));
}

TEST_F(ServerTest, RequestsHaveATimeLimit) {
  ServerOptions options;
  options.request_timeout = absl::Milliseconds(200);
  Start(options);
  const HttpReply whole = Post(port(), "/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(whole.status, 503);
  EXPECT_TRUE(absl::StrContains(whole.error(), "time")) << whole.body;
  EXPECT_TRUE(engine_.WaitForCancel(engine_.WaitForRequest(0)));
  const HttpReply stream = Post(port(), "/v1/completions", kStream);
  EXPECT_EQ(stream.status, 200) << "the stream had begun";
  const std::vector<std::string> events = stream.events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(json::parse(events[0]).contains("error"));
}

TEST_F(ServerTest, AFailedEngineIsSaidToAll) {
  Start();
  auto running = PostAsync("/v1/completions", {{"prompt", "x"}});
  engine_.WaitForRequest(0);
  engine_.Fail(absl::InternalError("out of memory"));
  EXPECT_EQ(running.get().status, 500);
  EXPECT_EQ(Post(port(), "/v1/completions", {{"prompt", "x"}}).error(), "out of memory");
  EXPECT_EQ(Call(port(), "GET", "/health").status, 503);
  EXPECT_FALSE(server_->health().ok());
}

TEST_F(ServerTest, AnEngineThatRanOutOfMemoryIsNotBusy) {
  Start();
  auto running = PostAsync("/v1/completions", {{"prompt", "x"}});
  engine_.WaitForRequest(0);
  engine_.Fail(absl::ResourceExhaustedError("out of memory"));
  EXPECT_EQ(running.get().status, 500);
  const HttpReply later = Post(port(), "/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(later.status, 500);
  EXPECT_EQ(later.error(), "out of memory");
  EXPECT_EQ(later.headers.count("Retry-After"), 0u);
}

TEST_F(ServerTest, AFailedSampleEndsItsRequestAlone) {
  Start();
  auto whole = PostAsync("/v1/completions", {{"prompt", "x"}, {"n", 2}});
  const GenerateRequest first = engine_.WaitForRequest(0);
  auto stream = PostAsync("/v1/completions", kStream);
  const GenerateRequest second = engine_.WaitForRequest(1);
  auto other = PostAsync("/v1/completions", {{"prompt", "x"}});
  const GenerateRequest third = engine_.WaitForRequest(2);
  engine_.Draw(first, 1, "ab");
  engine_.End(first, 1, FinishReason::kFailed);
  const HttpReply failed = whole.get();
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.error(), absl::StrCat("answer 1 failed after 2 tokens: ", kLogitsNotFinite));
  EXPECT_TRUE(engine_.WaitForCancel(first)) << "its sibling is not computed for nobody";
  engine_.Draw(second, 0, "a");
  engine_.End(second, 0, FinishReason::kFailed);
  const std::vector<std::string> events = stream.get().events();
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(json::parse(events[events.size() - 2])["error"]["type"], "server_error");
  EXPECT_EQ(events.back(), "[DONE]");
  EndWith(third, 0, "well");
  EXPECT_EQ(other.get().json()["choices"][0]["text"], "well");
  EXPECT_TRUE(WaitUntil([&] {
    return Metric("tritonrl_completions_total{finish_reason=\"failed\"}") == "2" &&
           Metric("tritonrl_completions_total{finish_reason=\"cancelled\"}") == "1" &&
           Metric("tritonrl_completions_total{finish_reason=\"stop\"}") == "1";
  }));
  EXPECT_EQ(Metric("tritonrl_request_seconds_count"), "1");
  EXPECT_EQ(Call(port(), "GET", "/health").status, 200);
}

TEST_F(ServerTest, ADrainLetsRequestsEnd) {
  Start();
  auto stream = PostAsync("/v1/completions", kStream);
  const GenerateRequest request = engine_.WaitForRequest(0);
  engine_.Draw(request, 0, "a");
  auto drained = std::async(std::launch::async, [&] { return server_->Drain(kPatience); });
  EXPECT_TRUE(WaitUntil([&] { return Call(port(), "GET", "/health").status == 503; }));
  const HttpReply refused = Post(port(), "/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(absl::StrContains(refused.error(), "shutting down"));
  EndWith(request, 0, "b");
  EXPECT_TRUE(drained.get());
  const HttpReply whole = stream.get();
  EXPECT_EQ(whole.events().back(), "[DONE]");
  EXPECT_TRUE(absl::StrContains(whole.body, "\"finish_reason\":\"stop\""));
  EXPECT_EQ(Call(port(), "GET", "/health").status, 0) << "nobody listens";
}

TEST_F(ServerTest, ADrainThatCannotWaitCancels) {
  Start();
  auto stream = PostAsync("/v1/completions", kStream);
  auto whole = PostAsync("/v1/completions", {{"prompt", "x"}});
  const GenerateRequest first = engine_.WaitForRequest(0), second = engine_.WaitForRequest(1);
  EXPECT_FALSE(server_->Drain(absl::ZeroDuration()));
  const std::vector<std::string> events = stream.get().events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(absl::StrContains(events[0], "shutting down"));
  EXPECT_EQ(whole.get().status, 503);
  EXPECT_TRUE(engine_.WaitForCancel(first));
  EXPECT_TRUE(engine_.WaitForCancel(second));
}

}  // namespace
}  // namespace tritonrl
