// A client and several servers with scripted backends in one process, over loopback.
#include "exec/service/remote_backend.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "exec/service/testing/test_server.h"

namespace tritonrl {
namespace {

TEST(RemoteBackendTest, ALostServersJobsGoToAnother) {
  absl::Notification release;
  auto lost = std::make_unique<TestServer>([&](const ExecRequest&, absl::Time) {
    release.WaitForNotificationWithTimeout(absl::Seconds(20));
    return ScriptedBackend::Result(Outcome::CANCELLED);  // the outcome of a stopped worker pool
  });
  TestServer other(AnswerOk());
  auto client = Connect({lost.get(), &other});
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->concurrency(), 4);
  std::atomic<int> ok{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] {
      const auto result = client->Run(SomeRequest(), Soon());
      if (result.ok() && result->outcome().reason() == Outcome::OK) ++ok;
    });
  }
  while (lost->backend->running() == 0) absl::SleepFor(absl::Milliseconds(5));
  release.Notify();
  lost.reset();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(ok, 6);
  EXPECT_GT(client->losses(), 0);
}

TEST(RemoteBackendTest, SaysWhyItsServersWereLost) {
  TestServer server(
      [](const ExecRequest&, absl::Time) { return ScriptedBackend::Result(Outcome::CANCELLED); });
  RemoteOptions options;
  options.servers = {{server.address(), Token()}};
  options.max_losses = 1;
  auto client = RemoteBackend::Connect(options);
  ASSERT_TRUE(client.ok()) << client.status();
  const auto result = (*client)->Run(SomeRequest(), Soon());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome().reason(), Outcome::WORKER_LOST);
  EXPECT_TRUE(absl::StrContains(result->outcome().message(), "it stopped its workers"))
      << result->outcome().message();
}

TEST(RemoteBackendTest, SilentServersDoNotDelayEachOther) {
  // The kernel accepts connections to these sockets, and nobody answers.
  std::deque<ScopedFd> silent;
  RemoteOptions options;
  for (int i = 0; i < 10; ++i) {
    silent.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    ASSERT_EQ(bind(silent.back().get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(silent.back().get(), 8), 0);
    ASSERT_EQ(getsockname(silent.back().get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    options.servers.push_back({absl::StrCat("127.0.0.1:", ntohs(address.sin_port)), Token()});
  }
  TestServer server(AnswerOk());
  options.servers.push_back({server.address(), Token()});
  const absl::Time begin = absl::Now();
  // Returns when each server has answered or has had its time, which is at least a second.
  const auto client = RemoteBackend::Connect(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(8));
}

TEST(RemoteBackendTest, WithNoServerLeftItIsAnInfraError) {
  auto server = std::make_unique<TestServer>(AnswerOk());
  const int port = server->port();
  auto client = Connect({server.get()});
  ASSERT_NE(client, nullptr);
  server.reset();
  const auto result = client->Run(SomeRequest(), absl::Now() + absl::Milliseconds(300));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome().status(), Outcome::STATUS_INFRA_ERROR) << result->DebugString();
  EXPECT_TRUE(IsRetryable(result->outcome().reason()));
  // A server starts again at the same address.
  TestServer again(AnswerOk(), {}, 2, true, port);
  const auto later = client->Run(SomeRequest(), Soon());
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->outcome().reason(), Outcome::OK) << later->DebugString();
  EXPECT_EQ(later->server(), absl::StrCat("127.0.0.1:", port));
}

TEST(RemoteBackendTest, WithNoServerAtAllConnectingSaysSo) {
  RemoteOptions options;
  options.connect_timeout = absl::Milliseconds(300);
  options.registry_dir = "/no/such/folder";
  EXPECT_TRUE(absl::IsNotFound(RemoteBackend::Connect(options).status()));
  options.registry_dir = "";
  options.servers = {{"127.0.0.1:1", Token()}};
  const absl::Status status = RemoteBackend::Connect(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "127.0.0.1:1")) << status;
}

TEST(RemoteBackendTest, CheckedInOnePlaceAndTimedInAnother) {
  const ScriptedBackend::Answer answer = [](const ExecRequest& request, absl::Time) {
    ExecResult result = ScriptedBackend::Result(
        request.candidate_source() == "wrong" ? Outcome::MISMATCH : Outcome::OK);
    if (!request.skip_timing()) result.set_speedup(2);
    return result;
  };
  TestServer check(answer, {.role = SERVER_ROLE_CHECK}, 4, /*modelled=*/false);
  TestServer time(answer, {.role = SERVER_ROLE_TIME}, 4, /*modelled=*/false);
  auto client = Connect({&check, &time});
  ASSERT_NE(client, nullptr);
  const auto wrong = client->Run(SomeRequest("wrong", /*timing=*/true), Soon());
  ASSERT_TRUE(wrong.ok());
  EXPECT_EQ(wrong->outcome().reason(), Outcome::MISMATCH);
  EXPECT_EQ(time.backend->calls(), 0) << "no time of the GPU for what is wrong";
  const auto good = client->Run(SomeRequest("good", /*timing=*/true), Soon());
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->speedup(), 2);
  EXPECT_EQ(check.backend->calls(), 2);
  EXPECT_EQ(time.backend->calls(), 1);
}

TEST(RemoteBackendTest, ServersOfTwoBackendsAreNotMixed) {
  TestServer one(AnswerOk(), {}, 2, /*modelled=*/true);
  TestServer other(AnswerOk(), {}, 2, /*modelled=*/false);
  RemoteOptions options;
  options.servers = {{one.address(), Token()}, {other.address(), Token()}};
  const absl::Status status = RemoteBackend::Connect(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "cannot be mixed"));
}

TEST(ParseServersTest, AddressesAndFolders) {
  EXPECT_EQ(ParseServers("/some/folder", "")->registry_dir, "/some/folder");
  EXPECT_TRUE(absl::IsInvalidArgument(ParseServers("host:1", "").status()));
  EXPECT_TRUE(absl::IsNotFound(ParseServers("host:1", "/no/such/token").status()));
}

}  // namespace
}  // namespace tritonrl
