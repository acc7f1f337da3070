// Candidates on executors that are processes of their own.
#include "exec/executor/executor_pool.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "exec/device/frame.h"
#include "exec/device/json.h"
#include "exec/device/testing/scripted_channel.h"
#include "exec/executor/testing/scripted_client.h"

namespace tritonrl {
namespace {

using device::FloatTensor;
using device::Frame;
using testing::HasSubstr;

std::unique_ptr<ExecutorPool> MakePool(int max_candidates = 500) {
  ExecutorPoolOptions options;
  options.max_candidates = max_candidates;
  options.process.grace = absl::Seconds(1);
  auto pool = ExecutorPool::Create(options);
  EXPECT_TRUE(pool.ok()) << pool.status();
  return pool.ok() ? *std::move(pool) : nullptr;
}

class ExecutorPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = MakePool();
    ASSERT_NE(pool_, nullptr);
  }
  // Makes `session_` run the script on an input.
  absl::StatusOr<device::SessionResult> Run(const at::Tensor& input,
                                            const ScriptedClient::Before& before = nullptr,
                                            const SharedMemory* shared = nullptr,
                                            absl::Duration limit = absl::Seconds(60)) {
    return RunScript(pool_.get(), input,
                     {.script = AddScript(static_cast<int>(input.numel())),
                      .limit = limit,
                      .before = before,
                      .shared = shared},
                     &session_);
  }
  // Signals the process that serves a candidate when that is about to launch.
  ScriptedClient::Before AtLaunch(int signal) {
    return [this, signal](size_t message) {
      if (message == kLaunchOfScript) kill(pool_->busy().at(0), signal);
    };
  }
  void ExpectToWork() {
    const auto result = Run(at::arange(3000, at::kFloat));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->outputs[0].host.equal(at::arange(3000, at::kFloat).add(0.5)));
  }
  std::string OfProcess(const std::string& file) {
    return *ReadFile(absl::StrCat("/proc/", pool_->busy().at(0), "/", file));
  }

  std::unique_ptr<ExecutorPool> pool_;
  std::unique_ptr<ExecutorSession> session_;
};

TEST_F(ExecutorPoolTest, ACandidateIsServedAndReplayed) {
  const at::Tensor input = at::arange(3000, at::kFloat);
  const auto result = Run(input);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->outputs.size(), 1);
  EXPECT_TRUE(result->outputs[0].host.equal(input.add(0.5)));
  EXPECT_TRUE(result->inputs_unchanged[0]);
  EXPECT_EQ(result->state_matched, 1);
  EXPECT_EQ(result->counts.launches, 1);
  EXPECT_EQ(result->provenance.at(0).bytes[static_cast<int>(device::Tag::kKernel)], 12'000);

  const RecordingSummary& recording = session_->recording();
  ASSERT_EQ(recording.launches.size(), 1);
  EXPECT_EQ(recording.launches[0].kernel, "add");
  EXPECT_EQ(recording.launches[0].line, 9);
  EXPECT_EQ(recording.launches[0].grid, (std::array<int32_t, 3>{3, 1, 1}));
  EXPECT_EQ(recording.launches[0].num_stages, 3);
  ASSERT_EQ(recording.inputs.size(), 1);
  EXPECT_EQ(recording.inputs[0].storage, 2);
  EXPECT_EQ(recording.outputs.at(0).storage, 3);
  EXPECT_EQ(recording.state_tensors, 1);

  ReplayRequest request = ReplayOn(at::full({3000}, 2.0f));
  request.count = true;
  const auto replay = session_->ReplayCall(request);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->output.host.equal(at::full({3000}, 2.5f)));
  ASSERT_EQ(replay->run.counts.size(), 1);
  EXPECT_EQ(replay->run.counts[0].store_bytes, 12'000);
  EXPECT_FALSE(session_->ReplayCall(ReplayOn(at::full({4}, 2.0f))).ok());

  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  const auto state = session_->ReplayConstructor(5, deadline);
  ASSERT_TRUE(state.ok()) << state.status();
  const at::Tensor drawn = state->at(0).clone();
  EXPECT_LT(drawn.max().item<float>(), 1);
  EXPECT_FALSE(session_->ReplayConstructor(6, deadline)->at(0).equal(drawn));
  EXPECT_TRUE(session_->lost().ok());
}

// Some operators of LibTorch take memory of their own, and write machine code.
TEST_F(ExecutorPoolTest, AProductOfBfloat16) {
  const std::string matrix = device::TensorText(2, "bfloat16", "64,64", "64,1");
  const std::string product = device::TensorText(3, "bfloat16", "64,64", "64,1");
  const ScriptedClient client({R"({"do":"begin"})", R"({"do":"constructed","state":[]})",
                               device::EmptyText(4096, "bfloat16"),
                               device::OperatorText("fill_", "Scalar", absl::StrCat(matrix, ",1")),
                               device::OperatorText("mm", "", absl::StrCat(matrix, ",", matrix)),
                               absl::StrCat(R"({"do":"output","value":)", product, "}")});
  auto session = pool_->Acquire(absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(session.ok()) << session.status();
  device::SessionOptions options = OptionsOf(at::full({8}, 1.0f));
  options.may_compute = true;
  const auto result = (*session)->Run(options, nullptr, client.socket());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->outputs[0].host.equal(at::full({64, 64}, 64, at::kBFloat16)));
}

TEST_F(ExecutorPoolTest, LaunchesAreLeftOut) {
  const at::Tensor input = at::full({8}, 2.0f);
  ASSERT_TRUE(Run(input).ok());
  const auto left_out = [&](const SkippedLaunches& skipped) {
    ReplayRequest request = ReplayOn(input);
    request.skipped = skipped;
    const auto replay = session_->ReplayCall(request);
    EXPECT_TRUE(replay.ok()) << replay.status();
    EXPECT_EQ(replay->run.left_out == 0, replay->output.host.equal(at::full({8}, 2.5f)));
    return replay->run.left_out;
  };
  EXPECT_EQ(left_out({}), 0);
  EXPECT_EQ(left_out({.all = true}), 1);
  EXPECT_EQ(left_out({.kernels = {"add"}}), 1);
  EXPECT_EQ(left_out({.kernels = {"other"}}), 0);
  EXPECT_EQ(left_out({.numbers = {0}}), 1);
  EXPECT_EQ(left_out({.numbers = {1}}), 0);
}

// Inputs in sealed memory are read where they lie.
TEST_F(ExecutorPoolTest, LargeTensors) {
  constexpr int kCount = 3 << 20;
  auto shared = SharedMemory::Create("inputs", kCount * sizeof(float));
  ASSERT_TRUE(shared.ok());
  const at::Tensor numbers = at::arange(kCount, at::kFloat);
  ASSERT_EQ(pwrite(shared->fd(), numbers.data_ptr(), numbers.nbytes(), 0), numbers.nbytes());
  ASSERT_TRUE(shared->Seal().ok());
  const absl::string_view memory = *shared->Map(shared->bytes());
  const at::Tensor input =
      at::from_blob(const_cast<char*>(memory.data()), {kCount}, at::TensorOptions(at::kFloat));
  const auto result = Run(input, nullptr, &*shared);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->outputs[0].host.equal(numbers.add(0.5)));
  for (const at::Tensor& other : {input, numbers.mul(2)}) {
    const auto replay = session_->ReplayCall(ReplayOn(other));
    ASSERT_TRUE(replay.ok()) << replay.status();
    EXPECT_TRUE(replay->output.host.equal(other.add(0.5)));
  }
}

TEST_F(ExecutorPoolTest, ACrashIsToldAndAnotherProcessServes) {
  const auto result = Run(at::full({8}, 2.0f), AtLaunch(SIGKILL));
  EXPECT_TRUE(absl::IsAborted(result.status())) << result.status();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("signal 9"));
  EXPECT_EQ(session_->lost(), result.status());
  EXPECT_EQ(session_->ReplayCall(ReplayOn(at::full({8}, 2.0f))).status(), result.status());
  ExpectToWork();
  kill(pool_->busy().at(0), SIGSEGV);
  const auto replay = session_->ReplayCall(ReplayOn(at::full({3000}, 2.0f)));
  EXPECT_TRUE(absl::IsAborted(replay.status())) << replay.status();
  EXPECT_THAT(std::string(replay.status().message()), HasSubstr("signal 11"));
  ExpectToWork();
  EXPECT_EQ(pool_->counts().lost, 2);
}

TEST_F(ExecutorPoolTest, AProcessThatHangsIsKilled) {
  const auto result = Run(at::full({8}, 2.0f), AtLaunch(SIGSTOP), nullptr, absl::Seconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_TRUE(session_->lost().ok());  // another would hang as well
  ExpectToWork();
  kill(pool_->busy().at(0), SIGSTOP);
  ReplayRequest request = ReplayOn(at::full({3000}, 2.0f));
  request.deadline = absl::Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(session_->ReplayCall(request).status()));
  ExpectToWork();
  EXPECT_EQ(pool_->counts().lost, 2);
}

// An idle process that died serves nobody.
TEST_F(ExecutorPoolTest, AProcessThatDiedBetweenCandidates) {
  ExpectToWork();
  const pid_t pid = pool_->busy().at(0);
  session_.reset();
  kill(pid, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
  ExpectToWork();
  EXPECT_EQ(pool_->counts().lost, 1);
}

// Empty if this machine does not let us look into the process.
std::vector<std::string> DescriptorsOf(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid, "/fd");
  std::vector<std::string> targets;
  const auto names = ListDirectory(folder);
  if (!names.ok()) return {};
  for (const std::string& name : *names) {
    char target[256] = {};
    if (readlink(JoinPath(folder, name).c_str(), target, sizeof(target) - 1) > 0) {
      targets.emplace_back(target);
    }
  }
  return targets;
}

// The process itself may have 48.
TEST_F(ExecutorPoolTest, NoDescriptorStaysBehind) {
  ExpectToWork();
  const pid_t pid = pool_->busy().at(0);
  session_.reset();
  const size_t theirs = DescriptorsOf(pid).size(), ours = DescriptorsOf(getpid()).size();
  for (int i = 0; i < 100; ++i) ExpectToWork();
  EXPECT_EQ(pool_->busy().at(0), pid);
  session_.reset();
  EXPECT_EQ(DescriptorsOf(pid).size(), theirs);
  EXPECT_EQ(DescriptorsOf(getpid()).size(), ours);
  EXPECT_EQ(pool_->counts().started, 1);
}

// It has two memories, sockets, and nothing else of those who judge.
TEST_F(ExecutorPoolTest, TheProcessIsConfined) {
  ExpectToWork();
  for (const std::string& target : DescriptorsOf(pool_->busy().at(0))) {
    EXPECT_TRUE(target == "/dev/null" || target.starts_with("socket:") ||
                target.starts_with("/memfd:executor_inbox") ||
                target.starts_with("/memfd:executor_outbox"))
        << target;
  }
  const std::string status = OfProcess("status");
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
  EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
#endif
  EXPECT_THAT(OfProcess("limits"), testing::ContainsRegex("Max core file size *0 *0"));
}

TEST(ExecutorPool, ProcessesAreReplacedAfterTheirShare) {
  const auto pool = MakePool(/*max_candidates=*/2);
  ASSERT_NE(pool, nullptr);
  std::set<pid_t> pids;
  for (int i = 0; i < 4; ++i) {
    const auto session = pool->Acquire(absl::Now() + absl::Seconds(60));
    ASSERT_TRUE(session.ok()) << session.status();
    pids.insert(pool->busy().at(0));
    const ScriptedClient client(AddScript(8));
    EXPECT_TRUE((*session)->Run(OptionsOf(at::full({8}, 1.0f)), nullptr, client.socket()).ok());
  }
  EXPECT_EQ(pids.size(), 2);
  EXPECT_EQ(pool->counts().replaced, 2);
  EXPECT_EQ(pool->counts().lost, 0);
}

TEST(ExecutorPool, WhatCannotStartIsSaid) {
  ExecutorPoolOptions options;
  options.process.device = "abacus";
  EXPECT_THAT(std::string(ExecutorPool::Create(options).status().message()),
              HasSubstr("executors run kernels on the cpu or on cuda"));
  options.process.program = "/no/such/program";
  EXPECT_FALSE(ExecutorPool::Create(options).ok());
  options.count = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(ExecutorPool::Create(options).status()));
}

TEST_F(ExecutorPoolTest, ACpuTakesNoTimes) {
  EXPECT_FALSE(pool_->gpu().has_value());
  const at::Tensor input = at::arange(3000, at::kFloat);
  ASSERT_TRUE(Run(input).ok());
  const auto begun = session_->BeginTiming(ReplayOn(input), /*direct=*/false);
  EXPECT_EQ(begun.status().code(), absl::StatusCode::kUnimplemented) << begun.status();
  // What was refused leaves the process as it was.
  EXPECT_TRUE(session_->ReplayCall(ReplayOn(input)).ok());
  // One that asks for times of nothing is not one of ours.
  EXPECT_FALSE(session_->TimeReplays({}).ok());
  EXPECT_FALSE(session_->lost().ok() && session_->ReplayCall(ReplayOn(input)).ok());
}

TEST(ExecutorPool, OneCandidateAtATime) {
  const auto pool = MakePool();
  ASSERT_NE(pool, nullptr);
  const auto session = pool->Acquire(absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(pool->Acquire(absl::Now()).status()));
}

}  // namespace
}  // namespace tritonrl
