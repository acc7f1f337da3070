// A server with a scripted backend in this process, called over loopback.
#include "exec/service/exec_server.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "exec/service/health.grpc.pb.h"
#include "exec/service/service.grpc.pb.h"
#include "exec/service/testing/test_server.h"
#include "exec/service/wire.h"

namespace tritonrl {
namespace {

// Calls Run directly, without RemoteBackend's checks and retries.
grpc::Status RawRun(const TestServer& server, const RunRequest& request,
                    const std::vector<std::string>& authorizations, RunReply* reply,
                    absl::Duration limit = absl::Seconds(20), std::string* retry_after = nullptr) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto stub = ExecService::NewStub(
      grpc::CreateCustomChannel(server.address(), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  for (const std::string& text : authorizations) context.AddMetadata(kAuthorizationHeader, text);
  context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
  const grpc::Status status = stub->Run(&context, request, reply);
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto hint = trailers.find(kRetryTrailer);
  if (retry_after != nullptr && hint != trailers.end()) {
    retry_after->assign(hint->second.data(), hint->second.size());
  }
  return status;
}

RunRequest Wrapped(const ExecRequest& request) {
  RunRequest run;
  *run.mutable_request() = request;
  return run;
}

TEST(ExecServerTest, ResultsComeThroughWhateverTheyHold) {
  TestServer server([](const ExecRequest& request, absl::Time) {
    ExecResult result = ScriptedBackend::Result(Outcome::MISMATCH);
    result.set_output("bytes \xFF\xFE of " + request.candidate_source());
    result.set_speedup(1.5);
    return result;
  });
  EXPECT_TRUE(absl::StrContains(server.address(), "127.0.0.1:"));
  auto client = Connect({&server});
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->name(), "native");
  EXPECT_TRUE(client->modelled());
  EXPECT_EQ(client->concurrency(), 2);
  EXPECT_TRUE(absl::StrContains(client->sandbox_description(), "1 of 1 servers"));
  const auto result = client->Run(SomeRequest("mine"), Soon());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome().reason(), Outcome::MISMATCH);
  EXPECT_EQ(result->outcome().status(), Outcome::STATUS_CANDIDATE_FAILED);
  EXPECT_EQ(result->output(), "bytes \xEF\xBF\xBD\xEF\xBF\xBD of mine");
  EXPECT_EQ(result->speedup(), 1.5);
}

TEST(ExecServerTest, WithoutTheTokenNothingRuns) {
  TestServer server(AnswerOk());
  const RunRequest request = Wrapped(SomeRequest());
  const std::string good = absl::StrCat("Bearer ", Token());
  RunReply reply;
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{},
                                             {""},
                                             {"Bearer "},
                                             {Token()},
                                             {good + "k"},
                                             {absl::StrCat("Bearer ", std::string(63, 'k'))},
                                             {absl::StrCat("bearer ", Token())},
                                             {"Bearer " + std::string(64, 'x')},
                                             {good, good}}) {
    EXPECT_EQ(RawRun(server, request, wrong, &reply).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
  }
  EXPECT_EQ(server.backend->calls(), 0);
  EXPECT_TRUE(RawRun(server, request, {good}, &reply).ok());
  RemoteOptions options;
  options.servers = {{server.address(), std::string(64, 'x')}};
  const absl::Status refused = RemoteBackend::Connect(options).status();
  EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), server.address()));
}

TEST(ExecServerTest, ATokenMustBeLong) {
  Dispatcher dispatcher({}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(ExecServer::Start({.token = "short"}, &dispatcher).status()));
  EXPECT_TRUE(absl::IsNotFound(
      ExecServer::Start({.interface = "nosuch0", .token = Token()}, &dispatcher).status()));
}

TEST(ExecServerTest, OversizedAndSenselessRequestsAreRefused) {
  TestServer server(AnswerOk());
  const std::string good = absl::StrCat("Bearer ", Token());
  RunReply reply;
  const grpc::Status large =
      RawRun(server, Wrapped(SomeRequest(std::string(kMaxRequestBytes + 1, 'x'))), {good}, &reply);
  EXPECT_EQ(large.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << large.error_message();
  const grpc::Status source =
      RawRun(server, Wrapped(SomeRequest(std::string(3 << 20, 'x'))), {good}, &reply);
  EXPECT_EQ(source.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << source.error_message();
  EXPECT_EQ(RawRun(server, RunRequest(), {good}, &reply).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(server.backend->calls(), 0);
  // The client rejects such requests itself, without a call.
  auto client = Connect({&server});
  ASSERT_NE(client, nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(
      client->Run(SomeRequest(std::string(kMaxRequestBytes, 'x')), Soon()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client->Run(SomeRequest("\xFF"), Soon()).status()));
  EXPECT_TRUE(client->Run(SomeRequest(), Soon()).ok());
}

TEST(ExecServerTest, AFullQueueAnswersAtOnceAndClientsWait) {
  absl::Notification release;
  TestServer server(
      [&](const ExecRequest&, absl::Time) {
        release.WaitForNotificationWithTimeout(absl::Seconds(20));
        return ScriptedBackend::Result(Outcome::OK);
      },
      {.queue = 0}, 1);
  auto client = Connect({&server});
  ASSERT_NE(client, nullptr);
  std::atomic<int> ok{0};
  std::vector<std::thread> callers;
  const auto call = [&] {
    const auto result = client->Run(SomeRequest(), Soon());
    if (result.ok() && result->outcome().reason() == Outcome::OK) ++ok;
  };
  callers.emplace_back(call);
  ASSERT_TRUE(server.backend->WaitRunning(1));
  RunReply reply;
  std::string hint;
  const grpc::Status full =
      RawRun(server, Wrapped(SomeRequest()), {absl::StrCat("Bearer ", Token())}, &reply,
             absl::Seconds(20), &hint);
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  int milliseconds = 0;
  EXPECT_TRUE(absl::SimpleAtoi(hint, &milliseconds)) << hint;
  EXPECT_GT(milliseconds, 0);
  for (int i = 0; i < 3; ++i) callers.emplace_back(call);
  release.Notify();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(ok, 4) << "refused ones came again";
  EXPECT_EQ(client->losses(), 0);
}

TEST(ExecServerTest, DeadlinesHold) {
  absl::Notification release;
  TestServer server(
      [&](const ExecRequest&, absl::Time) {
        release.WaitForNotificationWithTimeout(absl::Seconds(20));
        return ScriptedBackend::Result(Outcome::OK);
      },
      {}, 1);
  auto client = Connect({&server});
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 2; ++i) {  // one runs, one waits
    const auto late = client->Run(SomeRequest(), absl::Now() + absl::Milliseconds(100));
    ASSERT_TRUE(late.ok()) << late.status();
    EXPECT_EQ(late->outcome().reason(), Outcome::DEADLINE);
    EXPECT_EQ(late->outcome().status(), Outcome::STATUS_INFRA_ERROR);
  }
  release.Notify();
  const auto result = client->Run(SomeRequest(), Soon());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome().reason(), Outcome::OK);
}

TEST(ExecServerTest, DrainingFinishesWhatRunsAndSendsTheRestElsewhere) {
  absl::Notification release;
  TestServer first([&](const ExecRequest&, absl::Time) {
    release.WaitForNotificationWithTimeout(absl::Seconds(20));
    return ScriptedBackend::Result(Outcome::MISMATCH);
  });
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto health = grpc::health::v1::Health::NewStub(
      grpc::CreateCustomChannel(first.address(), grpc::InsecureChannelCredentials(), arguments));
  const auto serving = [&health] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(Soon()));
    grpc::health::v1::HealthCheckResponse response;
    const grpc::Status status = health->Check(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.status();
  };
  EXPECT_EQ(serving(), grpc::health::v1::HealthCheckResponse::SERVING);
  auto client = Connect({&first});
  ASSERT_NE(client, nullptr);
  Outcome::Reason begun = Outcome::UNSPECIFIED;
  std::thread caller([&] {
    const auto result = client->Run(SomeRequest(), Soon());
    if (result.ok()) begun = result->outcome().reason();
  });
  ASSERT_TRUE(first.backend->WaitRunning(1));
  bool drained = false;
  std::thread drain([&] { drained = first.server->Drain(absl::Seconds(20)); });
  while (!first.dispatcher->Describe().draining()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(serving(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  RunReply reply;
  EXPECT_EQ(RawRun(first, Wrapped(SomeRequest()), {absl::StrCat("Bearer ", Token())}, &reply)
                .error_code(),
            grpc::StatusCode::UNAVAILABLE);
  release.Notify();
  drain.join();
  caller.join();
  EXPECT_TRUE(drained);
  EXPECT_EQ(begun, Outcome::MISMATCH) << "what ran has its answer";
}

TEST(ExecServerTest, GarbageOnThePortHarmsNobody) {
  TestServer server(AnswerOk());
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (int i = 0; i < 40; ++i) {
    Philox random(11, i);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    std::string bytes = i % 2 == 0 ? preface : "";
    for (uint64_t n = random.Below(4000); n > 0; --n) {
      bytes.push_back(static_cast<char>(random.Below(256)));
    }
    (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (i % 3 != 0) close(fd);  // the other connections stay open, like those of a slow client
  }
  auto client = Connect({&server});
  ASSERT_NE(client, nullptr);
  const auto result = client->Run(SomeRequest(), Soon());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome().reason(), Outcome::OK);
  EXPECT_EQ(server.backend->calls(), 1);
}

}  // namespace
}  // namespace tritonrl
