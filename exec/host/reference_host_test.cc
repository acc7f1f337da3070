// A host by itself, and what is kept of several, with a runner that only plays one.
#include "exec/host/reference_host.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/oracle/oracle.h"
#include "exec/oracle/oracle_cache.h"
#include "exec/testing/pool_options.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

absl::Time Soon(double seconds = 60) { return absl::Now() + absl::Seconds(seconds); }

class ReferenceHostTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto pool = WorkerPool::Start(FakePoolOptions(3));
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = pool->release();
    hosts_ = std::make_shared<HostPool>(pool_);
  }
  static void TearDownTestSuite() {
    hosts_ = nullptr;
    delete pool_;
    pool_ = nullptr;
  }

  // A host whose reference may have a function `order` that answers in place of the fake one.
  static std::shared_ptr<const OracleResult> Run(const std::string& reference,
                                                 double wall_seconds = 10,
                                                 HostPool* hosts = nullptr) {
    ExecRequest request;
    request.set_reference_source(reference);
    request.set_trials(1);
    JobContext context{request, "interpreter", DeriveSeeds(0, 1), wall_seconds};
    context.hosts = hosts != nullptr ? hosts : hosts_.get();
    ExecLimits limits = pool_->limits();
    limits.set_wall_seconds(wall_seconds);
    return RunOracle(context, pool_, limits, Soon());
  }

  static inline WorkerPool* pool_ = nullptr;
  static inline std::shared_ptr<HostPool> hosts_;
};

TEST_F(ReferenceHostTest, OpensWindowsAndAnswersUntilItIsGone) {
  auto oracle = Run("pass");
  ASSERT_TRUE(oracle->ok()) << oracle->run.message();
  EXPECT_EQ(oracle->windows.in_bytes, 4096u);
  EXPECT_FALSE(oracle->windows.in_turn);
  std::vector<int> fds;
  const auto opened =
      oracle->host->Ask({{"open", true}}, "opened", {.deadline = Soon(), .fds = &fds});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)["session"], 1);
  ASSERT_EQ(fds.size(), 2u);
  for (const int fd : fds) {
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    close(fd);
  }
  EXPECT_EQ(*oracle->host->Ask({{"close", {{"session", 1}}}}, "closed", {.deadline = Soon()}),
            true);
  oracle = nullptr;
  // Its worker is free again.
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Run("pass")->ok());
}

TEST_F(ReferenceHostTest, SaysWhatWentWrong) {
  const auto oracle = Run(R"(
def order(message):
  name = next(iter(message))
  if name == 'fill': return {'error': 'CUDA out of memory', 'out_of_memory': True}
  if name == 'keep': return {'error': 'no such session'}
  if name == 'same': return [1]
)");
  ASSERT_TRUE(oracle->ok()) << oracle->run.message();
  const auto ask = [&](const char* name) {
    return oracle->host->Ask({{name, true}}, "done", {.deadline = Soon()}).status();
  };
  EXPECT_TRUE(absl::IsResourceExhausted(ask("fill"))) << ask("fill");
  EXPECT_TRUE(absl::IsInternal(ask("keep")));
  EXPECT_NE(ask("keep").message().find("no such session"), std::string::npos);
  EXPECT_TRUE(absl::IsInternal(ask("same")));
  EXPECT_TRUE(oracle->host->alive());
}

TEST_F(ReferenceHostTest, WhoComesTooLateDoesNotHarmIt) {
  const auto oracle = Run("pass");
  ASSERT_TRUE(oracle->ok()) << oracle->run.message();
  const auto late = oracle->host->Ask({{"open", true}}, "opened", {.deadline = Soon(-1)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  EXPECT_TRUE(oracle->host->alive());
  // An order that is begun has some seconds, whatever its deadline.
  const auto slow = Run("import time\norder = lambda m: time.sleep(0.3)\n");
  ASSERT_TRUE(slow->ok()) << slow->run.message();
  EXPECT_TRUE(slow->host->Ask({{"fill", true}}, "filled", {.deadline = Soon(0.05)}).ok());
}

TEST_F(ReferenceHostTest, OneThatEndsOrHangsIsGoneForGood) {
  for (const char* reference :
       {"import os\norder = lambda m: os._exit(3)", "order = lambda m: time.sleep(60)\nimport time",
        "import signal\nsignal.signal(15, signal.SIG_IGN)\nimport time\n"
        "order = lambda m: time.sleep(60)"}) {
    const auto oracle = Run(reference);
    ASSERT_TRUE(oracle->ok()) << oracle->run.message();
    const absl::Time begin = absl::Now();
    const auto answer = oracle->host->Ask({{"open", true}}, "opened", {.deadline = Soon(0.3)});
    EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
    EXPECT_FALSE(oracle->host->alive());
    EXPECT_TRUE(absl::IsUnavailable(
        oracle->host->Ask({{"open", 1}}, "opened", {.deadline = Soon()}).status()));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
  }
}

TEST_F(ReferenceHostTest, AReferenceThatFailsOrIsTooSlowHasNone) {
  const auto broken =
      Run("result['outcome'] = 'reference_error'\nresult['message'] = 'no'\n"
          "job['host'] = False");
  EXPECT_EQ(broken->run.outcome(), EXEC_REFERENCE_FAILED);
  EXPECT_EQ(broken->host, nullptr);
  EXPECT_FALSE(broken->out_of_memory);
  const auto full =
      Run("result.update(outcome='reference_error', out_of_memory=True)\n"
          "job['host'] = False");
  EXPECT_TRUE(full->out_of_memory);
  const auto slow = Run("import time; time.sleep(60)", 0.5);
  EXPECT_EQ(slow->run.outcome(), EXEC_REFERENCE_FAILED) << slow->run.ShortDebugString();
  EXPECT_NE(slow->run.message().find("0.5"), std::string::npos) << slow->run.message();
}

TEST_F(ReferenceHostTest, NoMoreAreKeptThanThereAreWorkers) {
  OracleCache cache(1 << 20, /*max_hosts=*/2);
  const auto get = [&](const std::string& key) {
    bool cached = false;
    auto oracle = cache.Get(
        key, Soon(), [&] { return Run("pass"); }, &cached);
    EXPECT_TRUE(oracle->ok()) << oracle->run.message();
    return std::pair(std::move(oracle), cached);
  };
  get("a");
  get("b");
  EXPECT_TRUE(get("a").second);
  get("c");  // b goes
  EXPECT_TRUE(get("a").second);
  EXPECT_FALSE(get("b").second);  // c goes
  EXPECT_EQ(cache.counts().entries, 2);
  // One that is used stays, whatever its turn.
  const auto used = get("a").first;
  get("b");
  get("c");
  EXPECT_TRUE(used->host->alive());
  cache.DropIdleHosts();
  EXPECT_EQ(cache.counts().entries, 1);
  EXPECT_TRUE(get("a").second);
  cache.Forget("a", nullptr);
  EXPECT_TRUE(get("a").second);
  cache.Forget("a", used);
  EXPECT_FALSE(get("a").second);
}

TEST_F(ReferenceHostTest, AProcessGoesOnToTheNextTask) {
  hosts_->EndIdle();
  const std::string count =
      "import fake_runner\nfake_runner.count = getattr(fake_runner, 'count', 0) + 1\n"
      "result['device_name'] = str(fake_runner.count)\n";
  EXPECT_EQ(Run(count)->run.device_name(), "1");
  EXPECT_EQ(Run(count)->run.device_name(), "2");
  {
    const auto used = Run(count);
    EXPECT_EQ(used->run.device_name(), "3");
    EXPECT_EQ(Run(count)->run.device_name(), "1");  // beside it a new one
  }
  hosts_->EndIdle();
  EXPECT_EQ(Run(count)->run.device_name(), "1");
  // What fails in a process with a past is tried in one without.
  const auto picky = Run(count +
                         "if fake_runner.count > 1:\n  job['host'] = False\n"
                         "  result['outcome'] = 'reference_error'\n");
  EXPECT_TRUE(picky->ok()) << picky->run.message();
  EXPECT_EQ(picky->run.device_name(), "1");
}

TEST_F(ReferenceHostTest, ADeadOneIsMadeAgain) {
  OracleCache cache(1 << 20, 2);
  bool cached = false;
  const auto make = [&] { return Run("import os\norder = lambda m: os._exit(1)"); };
  const auto first = cache.Get("a", Soon(), make, &cached);
  EXPECT_FALSE(first->host->Ask({{"open", true}}, "opened", {.deadline = Soon()}).ok());
  const auto second = cache.Get("a", Soon(), make, &cached);
  EXPECT_FALSE(cached);
  EXPECT_TRUE(second->host->alive());
  // It takes no worker any more, though somebody still has its host: there is room for another.
  const absl::Time begin = absl::Now();
  const auto third = Run("pass");
  EXPECT_TRUE(third->ok()) << third->run.message();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

TEST_F(ReferenceHostTest, ItsTurnIsNotTakenFromItsPatience) {
  const auto oracle = Run("import time\norder = lambda m: time.sleep(0.2)\n");
  ASSERT_TRUE(oracle->ok()) << oracle->run.message();
  WaitedTime queued;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      const auto answer = oracle->host->Ask(
          {{"fill", true}}, "filled",
          {.deadline = Soon(), .patience = absl::Milliseconds(10), .queued = &queued});
      EXPECT_TRUE(answer.ok()) << answer.status();
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(queued.Total(), absl::Milliseconds(550));
  // A turn that does not come in time harms nobody.
  std::thread busy([&] { (void)oracle->host->Ask({{"fill", 1}}, "filled", {.deadline = Soon()}); });
  absl::SleepFor(absl::Milliseconds(50));
  const auto late = oracle->host->Ask({{"fill", true}}, "filled", {.deadline = Soon(0.02)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  busy.join();
  EXPECT_TRUE(oracle->host->alive());
}

}  // namespace
}  // namespace tritonrl
