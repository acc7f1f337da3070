#include "exec/service/dispatcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/testing/fake_clock.h"
#include "exec/testing/scripted_backend.h"

namespace tritonrl {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

// Waits up to about 20 s until another thread makes `condition` true.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

class DispatcherTest : public testing::Test {
 protected:
  // Makes a dispatcher with `devices` equal backends, to which `backends_` then points.
  Dispatcher& Make(const DispatcherOptions& options, ScriptedBackend::Answer answer,
                   int devices = 1, int concurrency = 2, bool modelled = true) {
    std::vector<std::unique_ptr<DeviceBackend>> backends;
    for (int i = 0; i < devices; ++i) {
      auto backend = std::make_unique<ScriptedBackend>(answer, concurrency, modelled);
      backends_.push_back(backend.get());
      backends.push_back(std::move(backend));
    }
    dispatcher_ = std::make_unique<Dispatcher>(options, std::move(backends), &clock_);
    return *dispatcher_;
  }
  static bool Never() { return false; }
  absl::Time Soon() { return clock_.Now() + absl::Seconds(20); }

  // Runs a request in a new thread, which JoinAll or the test's end joins.
  void Start(const ExecRequest& request, int64_t bytes = 0) {
    threads_.emplace_back([this, request, bytes] {
      const auto result = dispatcher_->Run(request, bytes, Soon(), Never);
      if (result.ok() && result->outcome().reason() == Outcome::OK) ++ok_;
    });
  }
  void JoinAll() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void TearDown() override { JoinAll(); }

  FakeClock clock_;
  std::vector<ScriptedBackend*> backends_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::thread> threads_;
  std::atomic<int> ok_{0};
};

TEST_F(DispatcherTest, AFullQueueRefusesAndSaysWhenToComeAgain) {
  absl::Notification release;
  Dispatcher& d = Make({.queue = 1}, [&](const ExecRequest&, absl::Time) {
    release.WaitForNotificationWithTimeout(absl::Seconds(20));
    return ScriptedBackend::Result(Outcome::OK);
  });
  for (int i = 0; i < 3; ++i) Start(SomeRequest());
  ASSERT_TRUE(Eventually([&] { return d.Describe().running() + d.Describe().waiting() == 3; }));
  const auto refused = d.Run(SomeRequest(), 0, Soon(), Never);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_EQ(d.Describe().refused(), 1);
  EXPECT_GT(d.RetryHint(), 0);
  release.Notify();
  JoinAll();
  EXPECT_EQ(ok_, 3);
  EXPECT_EQ(d.Describe().finished(), 3);
}

TEST_F(DispatcherTest, ADeadlineInTheQueueIsAnInfraError) {
  absl::Notification release;
  Dispatcher& d = Make(
      {},
      [&](const ExecRequest&, absl::Time) {
        release.WaitForNotificationWithTimeout(absl::Seconds(20));
        return ScriptedBackend::Result(Outcome::OK);
      },
      1, 1);
  Start(SomeRequest());
  ASSERT_TRUE(backends_[0]->WaitRunning(1));
  threads_.emplace_back([&] {
    const auto late = d.Run(SomeRequest(), 0, clock_.Now() + absl::Seconds(3), Never);
    ASSERT_TRUE(late.ok());
    EXPECT_EQ(late->outcome().reason(), Outcome::DEADLINE);
    EXPECT_EQ(late->outcome().status(), Outcome::STATUS_INFRA_ERROR);
    EXPECT_EQ(late->queue_seconds(), 3);
  });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(3));
  threads_.back().join();
  threads_.pop_back();
  release.Notify();
}

TEST_F(DispatcherTest, WhoIsTimedComesToTheBackendBesideOthers) {
  absl::Notification release;
  Make(
      {},
      [&](const ExecRequest&, absl::Time) {
        release.WaitForNotificationWithTimeout(absl::Seconds(20));
        return ScriptedBackend::Result(Outcome::OK);
      },
      1, 3, /*modelled=*/false);
  for (int i = 0; i < 3; ++i) Start(SomeRequest("c", /*timing=*/i != 0));
  EXPECT_TRUE(backends_[0]->WaitRunning(3))
      << "the backend keeps its device for one when it measures";
  release.Notify();
  JoinAll();
  EXPECT_EQ(ok_, 3);
}

TEST_F(DispatcherTest, AllDevicesWorkAndResultsNameTheirs) {
  absl::Notification release;
  Dispatcher& d = Make(
      {.gpus = {"3", "GPU-5"}},
      [&](const ExecRequest&, absl::Time) {
        release.WaitForNotificationWithTimeout(absl::Seconds(20));
        return ScriptedBackend::Result(Outcome::OK);
      },
      2, 1);
  absl::Mutex mutex;
  std::multiset<std::string> gpus;
  for (int i = 0; i < 2; ++i) {
    threads_.emplace_back([&] {
      const auto result = d.Run(SomeRequest(), 0, Soon(), Never);
      absl::MutexLock lock(&mutex);
      gpus.insert(result.ok() ? result->gpu() : "none");
    });
  }
  for (const ScriptedBackend* backend : backends_) EXPECT_TRUE(backend->WaitRunning(1));
  release.Notify();
  JoinAll();
  EXPECT_EQ(gpus, (std::multiset<std::string>{"3", "GPU-5"}));
}

TEST_F(DispatcherTest, TheTimingRoleRunsOneAtATimeOnEachDevice) {
  absl::Notification release;
  Dispatcher& d = Make(
      {.role = SERVER_ROLE_TIME},
      [&](const ExecRequest&, absl::Time) {
        release.WaitForNotificationWithTimeout(absl::Seconds(20));
        return ScriptedBackend::Result(Outcome::OK);
      },
      2, 4);
  EXPECT_EQ(d.Describe().concurrency(), 2);
  for (int i = 0; i < 20; ++i) Start(SomeRequest("c", true));
  clock_.AwaitWaiters(18);
  for (const ScriptedBackend* backend : backends_) EXPECT_TRUE(backend->WaitRunning(1));
  release.Notify();
  JoinAll();
  EXPECT_EQ(ok_, 20);
  for (const ScriptedBackend* backend : backends_) {
    EXPECT_EQ(backend->max_running(), 1);
    EXPECT_GT(backend->calls(), 0);
  }
}

TEST_F(DispatcherTest, TheCheckingRoleTakesNoTimes) {
  Dispatcher& d = Make({.role = SERVER_ROLE_CHECK}, [](const ExecRequest&, absl::Time) {
    return ScriptedBackend::Result(Outcome::OK);
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(d.Run(SomeRequest("c", true), 0, Soon(), Never).status()));
  EXPECT_TRUE(d.Run(SomeRequest("c", false), 0, Soon(), Never).ok());
  EXPECT_FALSE(ParseServerRole("clock").ok());
}

TEST_F(DispatcherTest, EstimatesAreHeldToTheBudget) {
  absl::Notification release;
  std::atomic<int64_t> used{0}, most{0};
  Dispatcher& d = Make(
      {.memory_budget_bytes = 10 * kGib},
      [&](const ExecRequest& request, absl::Time) {
        const int64_t mine = request.candidate_source() == "large" ? 6 : 2;
        const int64_t now = used += mine;
        int64_t seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        release.WaitForNotificationWithTimeout(absl::Seconds(20));
        used -= mine;
        return ScriptedBackend::Result(Outcome::OK);
      },
      1, 8);
  for (int i = 0; i < 30; ++i) {
    Start(SomeRequest(i % 3 == 0 ? "large" : "small"), (i % 3 == 0 ? 6 : 2) * kGib);
    if (i < 3) {  // one large and two small jobs fit
      ASSERT_TRUE(backends_[0]->WaitRunning(i + 1));
    }
  }
  clock_.AwaitWaiters(27);
  EXPECT_EQ(backends_[0]->running(), 3);
  release.Notify();
  JoinAll();
  EXPECT_EQ(ok_, 30);
  EXPECT_EQ(most, 10);
  EXPECT_EQ(d.Describe().finished(), 30);
}

TEST_F(DispatcherTest, OutOfMemoryInCompanyIsTriedAgainAlone) {
  // The device's memory holds two small jobs or one large one.
  std::atomic<int> used{0};
  absl::Notification both_in, large_failed;
  Dispatcher& d = Make({}, [&](const ExecRequest& request, absl::Time) {
    const int mine = request.candidate_source() == "large" ? 2 : 1;
    used += mine;
    if (used == 3 && !both_in.HasBeenNotified()) both_in.Notify();
    both_in.WaitForNotificationWithTimeout(absl::Seconds(20));
    const bool lacks = mine == 2 && backends_[0]->running() > 1;
    if (lacks) large_failed.Notify();
    if (mine == 1) large_failed.WaitForNotificationWithTimeout(absl::Seconds(20));
    used -= mine;
    ExecResult result = ScriptedBackend::Result(lacks ? Outcome::OUT_OF_MEMORY : Outcome::OK);
    result.mutable_outcome()->set_device_memory(lacks);
    return result;
  });
  Start(SomeRequest("small"));
  const auto large = d.Run(SomeRequest("large"), 0, Soon(), Never);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->outcome().reason(), Outcome::OK) << "it had only lacked what the other held";
  EXPECT_EQ(large->attempts(), 2);
  JoinAll();
  EXPECT_EQ(backends_[0]->calls(), 3);
}

TEST_F(DispatcherTest, OutOfMemoryAloneCounts) {
  Dispatcher& d = Make({}, [](const ExecRequest&, absl::Time) {
    ExecResult result = ScriptedBackend::Result(Outcome::OUT_OF_MEMORY);
    result.mutable_outcome()->set_device_memory(true);
    return result;
  });
  const auto result = d.Run(SomeRequest(), 0, Soon(), Never);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome().reason(), Outcome::OUT_OF_MEMORY);
  EXPECT_EQ(backends_[0]->calls(), 1);
}

TEST_F(DispatcherTest, WhoFillsHisOwnLimitKeepsNobodyWaiting) {
  absl::Notification done;
  Dispatcher& d = Make({}, [&](const ExecRequest& request, absl::Time) {
    if (request.candidate_source() == "small") {
      done.WaitForNotificationWithTimeout(absl::Seconds(20));
      return ScriptedBackend::Result(Outcome::OK);
    }
    return ScriptedBackend::Result(Outcome::OUT_OF_MEMORY);
  });
  Start(SomeRequest("small"));
  ASSERT_TRUE(backends_[0]->WaitRunning(1));
  const auto result = d.Run(SomeRequest("fills"), 0, Soon(), Never);
  done.Notify();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome().reason(), Outcome::OUT_OF_MEMORY);
  JoinAll();
  EXPECT_EQ(backends_[0]->calls(), 2);
}

TEST_F(DispatcherTest, DrainingFinishesAndRefuses) {
  absl::Notification release;
  Dispatcher& d = Make({}, [&](const ExecRequest&, absl::Time) {
    release.WaitForNotificationWithTimeout(absl::Seconds(20));
    return ScriptedBackend::Result(Outcome::OK);
  });
  Start(SomeRequest());
  ASSERT_TRUE(backends_[0]->WaitRunning(1));
  d.Drain();
  EXPECT_TRUE(absl::IsUnavailable(d.Run(SomeRequest(), 0, Soon(), Never).status()));
  EXPECT_FALSE(d.WaitIdle(clock_.Now()));
  release.Notify();
  EXPECT_TRUE(d.WaitIdle(Soon()));
  JoinAll();
  EXPECT_EQ(ok_, 1);
}

TEST_F(DispatcherTest, WhoHasGoneIsNotRun) {
  Dispatcher& d =
      Make({}, [](const ExecRequest&, absl::Time) { return ScriptedBackend::Result(Outcome::OK); });
  EXPECT_TRUE(absl::IsCancelled(d.Run(SomeRequest(), 0, Soon(), [] { return true; }).status()));
  EXPECT_EQ(backends_[0]->calls(), 0);
}

TEST_F(DispatcherTest, ItCountsWhatBecameOfItsJobs) {
  Dispatcher& d = Make({.queue = 0, .gpus = {"3"}}, [&](const ExecRequest& request, absl::Time) {
    clock_.Advance(absl::Milliseconds(250));
    return ScriptedBackend::Result(request.candidate_source() == "wrong"  ? Outcome::MISMATCH
                                   : request.candidate_source() == "lost" ? Outcome::WORKER_LOST
                                                                          : Outcome::OK);
  });
  for (const char* candidate : {"right", "wrong", "wrong", "lost"}) {
    EXPECT_TRUE(d.Run(SomeRequest(candidate), 0, Soon(), Never).ok());
  }
  EXPECT_FALSE(d.Run(SomeRequest(), 0, Soon(), [] { return true; }).ok());
  clock_.Advance(absl::Seconds(2));
  const ServerDescription told = d.Describe();
  EXPECT_EQ(told.finished(), 5);
  EXPECT_EQ(told.outcomes().at("ok"), 1);
  EXPECT_EQ(told.outcomes().at("mismatch"), 2);
  EXPECT_EQ(told.outcomes().at("worker_lost"), 1);
  EXPECT_EQ(told.outcomes().at("no_result"), 1);
  EXPECT_EQ(told.infra_errors(), 1);
  EXPECT_EQ(told.busy_seconds(), 1);
  EXPECT_EQ(told.uptime_seconds(), 3);
  EXPECT_EQ(d.RetryHint(), 200);
  EXPECT_EQ(told.refused(), 0);
  ASSERT_EQ(told.devices_size(), 1);
  EXPECT_EQ(told.devices(0).gpu(), "3");
}

}  // namespace
}  // namespace tritonrl
