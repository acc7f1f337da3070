// Tests of reference processes, and of the cache with several of them, on a fake runner.
#include "exec/reference/reference_process.h"

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
#include "base/testing/fake_clock.h"
#include "exec/reference/reference_cache.h"
#include "exec/reference/reference_runner.h"
#include "exec/testing/job_event.h"
#include "exec/testing/pool_options.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

absl::Time Soon(double seconds = 60) { return absl::Now() + absl::Seconds(seconds); }

class ReferenceProcessTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto pool = WorkerPool::Start(FakePoolOptions(3));
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = pool->release();
    reference_processes_ = std::make_shared<ReferenceProcessPool>(pool_);
  }
  static void TearDownTestSuite() {
    reference_processes_ = nullptr;
    delete pool_;
    pool_ = nullptr;
  }

  // Starts a reference process. `reference` may define a function `order`, which then answers
  // orders instead of the fake runner.
  static std::shared_ptr<const ReferenceResult> Run(
      const std::string& reference, double wall_seconds = 10,
      std::shared_ptr<ReferenceProcessPool> reference_processes = nullptr,
      WorkerPool* pool = nullptr) {
    ExecRequest request;
    request.set_reference_source(reference);
    request.set_trials(1);
    JobContext context{request, "cpu", DeriveSeeds(SecretKey(), 0, 1), wall_seconds};
    context.host_memory_bytes = 4096;
    context.reference_processes =
        (reference_processes != nullptr ? reference_processes : reference_processes_).get();
    ExecLimits limits = pool_->limits();
    limits.set_wall_seconds(wall_seconds);
    return RunReference(context, pool != nullptr ? pool : pool_, limits, Soon());
  }

  static inline WorkerPool* pool_ = nullptr;
  static inline std::shared_ptr<ReferenceProcessPool> reference_processes_;
};

TEST_F(ReferenceProcessTest, ExportsMemoryAndAnswersUntilItEnds) {
  auto reference_result = Run("sizes = {'in_bytes': 4096}");
  ASSERT_TRUE(reference_result->ok()) << reference_result->run.outcome().message();
  EXPECT_EQ(reference_result->shared_buffers.in_bytes, 4096u);
  EXPECT_FALSE(reference_result->has_memory());
  std::vector<int> fds;
  const auto exported = reference_result->session->Ask({{"export", true}}, "exported",
                                                       {.deadline = Soon(), .fds = &fds});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(*exported, true);
  ASSERT_EQ(fds.size(), 2u);
  for (const int fd : fds) {
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    close(fd);
  }
  EXPECT_EQ(*reference_result->session->Ask({{"close", {{"session", 1}}}}, "closed",
                                            {.deadline = Soon()}),
            true);
  reference_result = nullptr;
  // Its worker is free again.
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Run("pass")->ok());
}

TEST_F(ReferenceProcessTest, SaysWhatWentWrong) {
  const auto reference_result = Run(R"(
def order(message):
  name = next(iter(message))
  if name == 'fill': return {'error': 'CUDA out of memory', 'out_of_memory': True}
  if name == 'keep': return {'error': 'no such session'}
  if name == 'same': return [1]
)");
  ASSERT_TRUE(reference_result->ok()) << reference_result->run.outcome().message();
  const auto ask = [&](const char* name) {
    return reference_result->session->Ask({{name, true}}, "done", {.deadline = Soon()}).status();
  };
  EXPECT_TRUE(absl::IsResourceExhausted(ask("fill"))) << ask("fill");
  EXPECT_TRUE(absl::IsInternal(ask("keep")));
  EXPECT_NE(ask("keep").message().find("no such session"), std::string::npos);
  EXPECT_TRUE(absl::IsInternal(ask("same")));
  EXPECT_TRUE(reference_result->session->alive());
}

TEST_F(ReferenceProcessTest, WhoComesTooLateDoesNotHarmIt) {
  const auto reference_result = Run("pass");
  ASSERT_TRUE(reference_result->ok()) << reference_result->run.outcome().message();
  const auto late =
      reference_result->session->Ask({{"export", true}}, "exported", {.deadline = Soon(-1)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  EXPECT_TRUE(reference_result->session->alive());
  // A started order gets at least five seconds, whatever its deadline.
  const auto slow = Run("import time\norder = lambda m: time.sleep(2)\n");
  ASSERT_TRUE(slow->ok()) << slow->run.outcome().message();
  EXPECT_TRUE(slow->session->Ask({{"fill", true}}, "filled", {.deadline = Soon(1.5)}).ok());
}

TEST_F(ReferenceProcessTest, OneThatEndsOrHangsIsGoneForGood) {
  for (const char* reference :
       {"import os\norder = lambda m: os._exit(3)", "order = lambda m: time.sleep(60)\nimport time",
        "import signal\nsignal.signal(15, signal.SIG_IGN)\nimport time\n"
        "order = lambda m: time.sleep(60)"}) {
    const auto reference_result = Run(reference);
    ASSERT_TRUE(reference_result->ok()) << reference_result->run.outcome().message();
    const absl::Time begin = absl::Now();
    const auto answer = reference_result->session->Ask(
        {{"fill", true}}, "filled",
        {.deadline = Soon(), .answer_timeout = absl::Milliseconds(300)});
    EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
    EXPECT_FALSE(reference_result->session->alive());
    EXPECT_TRUE(absl::IsUnavailable(
        reference_result->session->Ask({{"fill", 1}}, "filled", {.deadline = Soon()}).status()));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(50));
  }
}

TEST_F(ReferenceProcessTest, AReferenceThatFailsOrIsTooSlowHasNone) {
  const auto broken =
      Run("result['outcome'] = 'reference_error'\nresult['message'] = 'no'\n"
          "job['host'] = False");
  EXPECT_EQ(broken->run.outcome().reason(), Outcome::REFERENCE_FAILED);
  EXPECT_EQ(broken->session, nullptr);
  EXPECT_FALSE(broken->out_of_memory);
  const auto full =
      Run("result.update(outcome='reference_error', out_of_memory=True)\n"
          "job['host'] = False");
  EXPECT_TRUE(full->out_of_memory);
  const auto slow = Run("import time; time.sleep(60)", 0.5);
  EXPECT_EQ(slow->run.outcome().reason(), Outcome::REFERENCE_FAILED)
      << slow->run.ShortDebugString();
  EXPECT_NE(slow->run.outcome().message().find("0.5"), std::string::npos)
      << slow->run.outcome().message();
}

TEST_F(ReferenceProcessTest, NoMoreAreKeptThanThereAreWorkers) {
  ReferenceCache cache(1 << 20, /*max_sessions=*/2);
  const auto get = [&](const std::string& key) {
    bool cached = false;
    auto reference_result = cache.Get(
        key, Soon(), [&] { return Run("pass"); }, &cached);
    EXPECT_TRUE(reference_result->ok()) << reference_result->run.outcome().message();
    return std::pair(std::move(reference_result), cached);
  };
  get("a");
  get("b");
  EXPECT_TRUE(get("a").second);
  get("c");  // evicts b
  EXPECT_TRUE(get("a").second);
  EXPECT_FALSE(get("b").second);  // evicts c
  EXPECT_EQ(cache.counts().entries, 2);
  // A result in use stays, even as the least recently used one.
  const auto used = get("a").first;
  get("b");
  get("c");
  EXPECT_TRUE(used->session->alive());
  cache.DropIdleSessions();
  EXPECT_EQ(cache.counts().entries, 1);
  EXPECT_TRUE(get("a").second);
  cache.Forget("a", nullptr);
  EXPECT_TRUE(get("a").second);
  cache.Forget("a", used);
  EXPECT_FALSE(get("a").second);
}

TEST_F(ReferenceProcessTest, AProcessGoesOnToTheNextTask) {
  reference_processes_->EndIdle();
  const std::string count =
      "import fake_runner\nfake_runner.count = getattr(fake_runner, 'count', 0) + 1\n"
      "result['device_name'] = str(fake_runner.count)\n";
  EXPECT_EQ(Run(count)->run.device_name(), "1");
  EXPECT_EQ(Run(count)->run.device_name(), "2");
  {
    const auto used = Run(count);
    EXPECT_EQ(used->run.device_name(), "3");
    EXPECT_EQ(Run(count)->run.device_name(), "1");  // the first is in use, so a second starts
  }
  reference_processes_->EndIdle();
  EXPECT_EQ(Run(count)->run.device_name(), "1");
  // A job that fails in a process with earlier tasks is retried in a new one.
  const auto picky = Run(count +
                         "if fake_runner.count > 1:\n  job['host'] = False\n"
                         "  result['outcome'] = 'reference_error'\n");
  EXPECT_TRUE(picky->ok()) << picky->run.outcome().message();
  EXPECT_EQ(picky->run.device_name(), "1");
}

TEST_F(ReferenceProcessTest, ConcurrentTasksLeaveAWorkerFree) {
  WorkerPoolOptions options = FakePoolOptions(2);
  options.sandbox = SandboxKind::kNone;  // so that process ids are distinct
  auto pool = WorkerPool::Start(options);
  ASSERT_TRUE(pool.ok()) << pool.status();
  const auto processes = std::make_shared<ReferenceProcessPool>(pool->get());
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> missing{2};
    std::string pids[2];
    std::vector<std::thread> callers;
    for (std::string& pid : pids) {
      callers.emplace_back([&] {
        // Spins, so that both calls begin within microseconds.
        for (--missing; missing > 0;) continue;
        const auto result =
            Run("import os; result['device_name'] = str(os.getpid())", 10, processes, pool->get());
        EXPECT_TRUE(result->ok()) << result->run.outcome().message();
        pid = result->run.device_name();
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(pids[0], pids[1]);
    processes->EndIdle();
  }
}

TEST_F(ReferenceProcessTest, ADeadOneIsMadeAgain) {
  ReferenceCache cache(1 << 20, 2);
  bool cached = false;
  const auto make = [&] { return Run("import os\norder = lambda m: os._exit(1)"); };
  const auto first = cache.Get("a", Soon(), make, &cached);
  EXPECT_FALSE(first->session->Ask({{"fill", true}}, "filled", {.deadline = Soon()}).ok());
  const auto second = cache.Get("a", Soon(), make, &cached);
  EXPECT_FALSE(cached);
  EXPECT_TRUE(second->session->alive());
  // The ended process occupies no worker, although `first` still holds its session, so another
  // process can start.
  const absl::Time begin = absl::Now();
  const auto third = Run("pass");
  EXPECT_TRUE(third->ok()) << third->run.outcome().message();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

TEST_F(ReferenceProcessTest, TimeInTheQueueDoesNotCountAsAnswerTime) {
  WorkerPoolOptions options = FakePoolOptions(2);
  options.sandbox = SandboxKind::kNone;
  auto pool = WorkerPool::Start(options);
  ASSERT_TRUE(pool.ok()) << pool.status();
  JobEvent busy, go_on;
  const auto reference_result =
      Run(absl::StrCat("def order(message):\n  ", busy.PythonNotify(), "\n  ", go_on.PythonWait(),
                       "\n"),
          10, std::make_shared<ReferenceProcessPool>(pool->get()), pool->get());
  ASSERT_TRUE(reference_result->ok()) << reference_result->run.outcome().message();
  std::vector<std::thread> callers;
  const auto ask = [&](AskOptions options) {
    const auto answer = reference_result->session->Ask({{"fill", true}}, "filled", options);
    EXPECT_TRUE(answer.ok()) << answer.status();
  };
  callers.emplace_back(ask, AskOptions{.deadline = Soon()});
  EXPECT_TRUE(busy.Wait());
  // A caller whose deadline passes while it waits does not harm the process.
  const auto late =
      reference_result->session->Ask({{"fill", true}}, "filled", {.deadline = Soon(0.02)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  FakeClock clock;
  WaitedTime queued(&clock);
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back(
        ask, AskOptions{
                 .deadline = Soon(), .answer_timeout = absl::Milliseconds(10), .queued = &queued});
  }
  while (queued.Total() == absl::ZeroDuration()) {  // until a caller waits
    clock.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  go_on.Notify();
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(reference_result->session->alive());
}

}  // namespace
}  // namespace tritonrl
