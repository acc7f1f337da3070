// Whole runs of candidates under whose feet the executor goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "exec/backend/local_backend.h"
#include "exec/client_run/client_job.h"
#include "exec/executor/executor_pool.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

constexpr char kReference[] = R"py(
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.randn(8, 64)]
def get_init_inputs():
    return []
)py";

// Slow enough that a signal meets it.
constexpr char kCandidate[] = R"py(
import time
import torch, triton, triton.language as tl
@triton.jit
def add(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) + 1)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(1)
        y = torch.empty_like(x)
        add[(8,)](x, y, BLOCK=64)
        return y
)py";

class ExecutorLossTest : public testing::Test {
 protected:
  void SetUp() override {
    WorkerPoolOptions options;
    options.workers = 1;
    auto clients = ClientPoolOptions(options);
    ASSERT_TRUE(clients.ok()) << clients.status();
    auto pools = StartPools(*clients, /*cache_bytes=*/1 << 20, /*reference_processes=*/false);
    ASSERT_TRUE(pools.ok()) << pools.status();
    ExecutorPoolOptions executor_options;
    executor_options.process.grace = absl::Seconds(1);
    auto executors = ExecutorPool::Create(executor_options);
    ASSERT_TRUE(executors.ok()) << executors.status();
    executors_ = executors->get();
    pools->executors = *std::move(executors);
    backend_ = std::make_unique<LocalBackend>("cpu", *std::move(pools));
  }

  // Sends `signal` to the first `count` executors that serve the candidate.
  ExecResult RunWith(int signal, size_t count, double seconds = 30) {
    std::atomic<bool> done{false};
    std::thread sender([&] {
      std::set<pid_t> met;
      while (!done && met.size() < count) {
        for (const pid_t pid : executors_->busy()) {
          if (met.insert(pid).second) kill(pid, signal);
        }
        absl::SleepFor(absl::Milliseconds(1));
      }
    });
    const ExecResult result =
        RunOrFail(backend_.get(), MakeExecRequest(kCandidate, kReference, seconds));
    done = true;
    sender.join();
    return result;
  }

  ExecutorPool* executors_ = nullptr;
  std::unique_ptr<LocalBackend> backend_;
};

TEST_F(ExecutorLossTest, OneIsForgivenTwoAreTheCandidates) {
  const ExecResult once = RunWith(SIGKILL, 1);
  EXPECT_EQ(once.outcome().reason(), Outcome::OK) << once.ShortDebugString();
  EXPECT_EQ(once.attempts(), 2);
  const ExecResult twice = RunWith(SIGSEGV, 2);
  EXPECT_EQ(twice.outcome().reason(), Outcome::KILLED_WORKER) << twice.ShortDebugString();
  EXPECT_THAT(twice.outcome().message(), HasSubstr("twice: the executor ended with signal 11"));
  EXPECT_EQ(RunWith(0, 0).outcome().reason(), Outcome::OK);
  EXPECT_EQ(executors_->counts().lost, 3);
}

TEST_F(ExecutorLossTest, AHangIsATimeout) {
  const absl::Time began = absl::Now();
  const ExecResult result = RunWith(SIGSTOP, 1, /*seconds=*/2);
  EXPECT_EQ(result.outcome().reason(), Outcome::TIMEOUT) << result.ShortDebugString();
  EXPECT_LT(absl::Now() - began, absl::Seconds(60));
  EXPECT_EQ(RunWith(0, 0).outcome().reason(), Outcome::OK);
}

}  // namespace
}  // namespace tritonrl
