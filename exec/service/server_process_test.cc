// Real server processes with the native backend on loopback: verdicts, kill -9, drain.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "exec/service/remote_backend.h"
#include "exec/service/server_registry.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(120);

class ServerProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("servers");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  absl::StatusOr<Subprocess> StartServer(const std::vector<std::string>& flags = {}) {
    auto program = Runfile("exec/service/server");
    if (!program.ok()) return program.status();
    SubprocessOptions options;
    options.argv = {*program, "--backend=native", "--workers=1", "--register=" + folder_};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    return Subprocess::Start(options);
  }

  std::vector<ServerEntry> WaitRegistered(size_t count) {
    std::vector<ServerEntry> entries;
    const absl::Time deadline = absl::Now() + kPatience;
    while (absl::Now() < deadline && entries.size() < count) {
      absl::SleepFor(absl::Milliseconds(50));
      std::vector<std::string> problems;
      auto read = ReadServerRegistry(folder_, &problems);
      if (read.ok()) entries = *read;
    }
    EXPECT_EQ(entries.size(), count);
    return entries;
  }

  static bool WaitRunning(const std::vector<ServerEntry>& servers) {
    const absl::Time deadline = absl::Now() + kPatience;
    for (const ServerEntry& server : servers) {
      RemotePool pool({server}, "");
      if (!pool.WaitReady(deadline).ok()) return false;
      const auto endpoint = pool.Pick(/*timing=*/true, deadline);
      ServerDescription description;
      while (absl::Now() < deadline && description.running() == 0) {
        grpc::ClientContext context;
        PrepareCall(*endpoint, deadline, &context);
        if (!endpoint->stub->Describe(&context, {}, &description).ok()) return false;
        absl::SleepFor(absl::Milliseconds(20));
      }
      pool.Done(endpoint.get());
    }
    return absl::Now() < deadline;
  }

  static ExecRequest Softmax(const std::string& lines = "") {
    ExecRequest request;
    request.set_task_id("softmax");
    request.set_reference_source(kSoftmaxReference);
    request.set_candidate_source(lines + kSoftmaxCandidate);
    return request;
  }

  std::string folder_;
};

TEST_F(ServerProcessTest, TheSameVerdictsAsAtHomeAndAnOrderlyEnd) {
  auto server = StartServer({"--token_file=" + folder_ + "/token"});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto entries = WaitRegistered(1);
  ASSERT_EQ(entries.size(), 1);
  EXPECT_EQ(TokenFromFile(folder_ + "/token", false).value_or(""), entries[0].token);
  RemoteOptions options;
  options.registry_dir = folder_;
  auto client = RemoteBackend::Connect(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->name(), "native");

  auto good = (*client)->Run(Softmax(), absl::Now() + kPatience);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->outcome().reason(), Outcome::OK) << good->DebugString();
  EXPECT_TRUE(good->correct());
  EXPECT_TRUE(good->modelled());
  EXPECT_GT(good->speedup(), 0);

  ExecRequest wrong = Softmax();
  wrong.set_candidate_source(absl::StrReplaceAll(kSoftmaxCandidate, {{"e / tl.sum(e, 0)", "e"}}));
  auto result = (*client)->Run(wrong, absl::Now() + kPatience);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome().reason(), Outcome::MISMATCH);

  // SIGTERM during a job: the job is answered, the registry entry is removed, the exit code is 0.
  std::atomic<int> outcome{-1};
  std::thread caller([&] {
    auto last = (*client)->Run(Softmax("import time; time.sleep(2)\n"), absl::Now() + kPatience);
    if (last.ok()) outcome = last->outcome().reason();
  });
  EXPECT_TRUE(WaitRunning(entries));
  ASSERT_EQ(kill(server->pid(), SIGTERM), 0);
  const auto exit = server->Wait(kPatience);
  caller.join();
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(exit->ok()) << exit->ToString();
  EXPECT_EQ(outcome, Outcome::OK);
  std::vector<std::string> problems;
  EXPECT_TRUE(ReadServerRegistry(folder_, &problems)->empty());
}

TEST_F(ServerProcessTest, AllVerdictsArriveWhenOneOfTwoServersIsKilled) {
  auto victim = StartServer();
  auto other = StartServer();
  ASSERT_TRUE(victim.ok() && other.ok());
  const auto entries = WaitRegistered(2);
  ASSERT_EQ(entries.size(), 2);
  RemoteOptions options;
  options.registry_dir = folder_;
  auto client = RemoteBackend::Connect(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->concurrency(), 2);
  std::atomic<int> ok{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&, i] {
      const std::string lines = absl::StrCat("import time; time.sleep(1)  # ", i, "\n");
      auto result = (*client)->Run(Softmax(lines), absl::Now() + kPatience);
      if (result.ok() && result->outcome().reason() == Outcome::OK && result->correct()) ++ok;
    });
  }
  EXPECT_TRUE(WaitRunning(entries)) << "both have a job";
  ASSERT_EQ(kill(victim->pid(), SIGKILL), 0);
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(ok, 6);
  EXPECT_GT((*client)->losses(), 0);
}

TEST_F(ServerProcessTest, AnEndThatCannotWaitSaysSo) {
  auto server = StartServer({"--drain_seconds=0.2"});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto entries = WaitRegistered(1);
  RemoteOptions options;
  options.registry_dir = folder_;
  auto client = RemoteBackend::Connect(options);
  ASSERT_TRUE(client.ok()) << client.status();
  std::thread caller([&] {
    auto cut =
        (*client)->Run(Softmax("import time; time.sleep(20)\n"), absl::Now() + absl::Seconds(3));
    EXPECT_TRUE(cut.ok() && cut->outcome().status() == Outcome::STATUS_INFRA_ERROR);
  });
  EXPECT_TRUE(WaitRunning(entries));
  ASSERT_EQ(kill(server->pid(), SIGTERM), 0);
  const auto exit = server->Wait(absl::Seconds(15));
  caller.join();
  ASSERT_TRUE(exit.has_value()) << "it must not wait for the job";
  EXPECT_EQ(exit->exit_code, 1);
}

TEST_F(ServerProcessTest, MistakesInTheCallAreToldInOneSentence) {
  auto program = Runfile("exec/service/server");
  ASSERT_TRUE(program.ok());
  const auto run = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> argv = {*program};
    argv.insert(argv.end(), flags.begin(), flags.end());
    auto result = RunCommand(argv);
    return result.ok() ? absl::StrCat(result->exit_code, " ", result->err) : "";
  };
  EXPECT_EQ(run({}).find("2 server: give --register or --token_file"), 0);
  EXPECT_EQ(run({"--register=" + folder_, "--role=clock"}).find("2 server: role \"clock\""), 0);
  EXPECT_EQ(run({"--register=" + folder_, "--interface=nosuch0"})
                .find("2 server: network interface \"nosuch0\""),
            0);
}

TEST_F(ServerProcessTest, ItsStatusIsShown) {
  auto server = StartServer();
  ASSERT_TRUE(server.ok()) << server.status();
  const auto entries = WaitRegistered(1);
  ASSERT_EQ(entries.size(), 1u);
  {
    RemoteOptions options;
    options.registry_dir = folder_;
    auto client = RemoteBackend::Connect(options);
    ASSERT_TRUE(client.ok()) << client.status();
    for (const char* lines : {"", "not Python\n"}) {
      EXPECT_TRUE((*client)->Run(Softmax(lines), absl::Now() + kPatience).ok());
    }
  }
  const auto show = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> argv = {*Runfile("exec/service/server"), "--status",
                                     "--register=" + folder_};
    argv.insert(argv.end(), flags.begin(), flags.end());
    const auto result = RunCommand(argv);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : CommandResult();
  };
  const CommandResult text = show({});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("2 finished (1 import_error, 1 ok), 0 infrastructure errors"),
            std::string::npos)
      << text.out;
  const CommandResult json = show({"--json"});
  EXPECT_NE(json.out.find("\"finished\":\"2\""), std::string::npos) << json.out;
  server->Kill();
  const CommandResult dead = show({});
  EXPECT_EQ(dead.exit_code, 3) << dead.out;
  EXPECT_NE(dead.err.find(entries[0].address), std::string::npos) << dead.err;
}

}  // namespace
}  // namespace tritonrl
