// Tensor-parallel driver and workers, with threads as ranks and messages in memory.
#include "rollout/distributed/tensor_parallel_driver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/status.h"
#include "base/testing/fake_clock.h"
#include "rollout/testing/fake_model_runner.h"

namespace tritonrl {
namespace {

struct PostOffice {
  static constexpr int kRanks = 3;
  Clock* clock = Clock::Real();
  absl::Mutex mutex;
  std::map<std::pair<int, int>, std::deque<std::string>> letters;  // by sender and receiver
  std::atomic<int> beats{0};
};

// Supports messages only: FakeModelRunner computes without collectives.
class OfficeMail : public Collectives {
 public:
  OfficeMail(int rank, PostOffice* office) : rank_(rank), office_(office) {}
  int rank() const override { return rank_; }
  int size() const override { return PostOffice::kRanks; }
  absl::Status AllReduce(const at::Tensor& x) override { return NotHere(); }
  absl::Status ReduceScatter(const ZeroShardPlan& plan, int64_t bucket, const at::Tensor& full,
                             const at::Tensor& local, bool accumulate) override {
    return NotHere();
  }
  absl::Status WaitUntilRead(int64_t bucket) override { return NotHere(); }
  absl::Status AllGather(const ZeroShardPlan& plan, int64_t bucket,
                         const at::Tensor& full) override {
    return NotHere();
  }
  absl::Status Broadcast(const at::Tensor& x, int root) override { return NotHere(); }
  absl::Status Wait(const char* what) override { return NotHere(); }
  absl::Status Await(absl::FunctionRef<bool()> done, const char* what) override {
    return NotHere();
  }
  absl::Status SendToAll(const std::string& text, absl::Duration timeout) override {
    if (text == EncodeCommand(StepCommand::kHeartbeat)) ++office_->beats;
    for (int to = 0; to < size(); ++to) {
      if (to != rank_) RETURN_IF_ERROR(Send(to, text, timeout));
    }
    return absl::OkStatus();
  }
  absl::Status Send(int to, const std::string& text, absl::Duration timeout) override {
    absl::MutexLock lock(&office_->mutex);
    office_->letters[{rank_, to}].push_back(text);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Receive(int from, absl::Duration timeout) override {
    absl::MutexLock lock(&office_->mutex);
    std::deque<std::string>& box = office_->letters[{from, rank_}];
    const auto there = [&box] { return !box.empty(); };
    if (!office_->clock->AwaitWithDeadline(&office_->mutex, absl::Condition(&there),
                                           office_->clock->Now() + timeout)) {
      return absl::DeadlineExceededError("nothing came");
    }
    std::string text = std::move(box.front());
    box.pop_front();
    return text;
  }
  absl::StatusOr<std::optional<RankMessage>> Poll() override {
    for (int from = 0; from < size(); ++from) {
      {
        absl::MutexLock lock(&office_->mutex);
        if (office_->letters[{from, rank_}].empty()) continue;
      }
      ASSIGN_OR_RETURN(std::string text, Receive(from, absl::ZeroDuration()));
      return RankMessage{from, std::move(text)};
    }
    return std::nullopt;
  }

 private:
  static absl::Status NotHere() { return absl::InternalError("a collective"); }

  const int rank_;
  PostOffice* const office_;
};

class TensorParallelDriverTest : public testing::Test {
 protected:
  ~TensorParallelDriverTest() override {
    leading_.reset();
    for (std::thread& thread : threads_) thread.join();
  }

  RankChannels Links(int rank) {
    return {.collectives = std::make_unique<OfficeMail>(rank, &office_),
            .timeout = timeout_,
            .clock = office_.clock};
  }

  // Makes a runner for each rank; all ranks except 0 run their worker loop in a thread.
  void Start(const FakeModelRunner::Options& options = {.num_pages = 40, .in_flight = 2}) {
    std::vector<std::unique_ptr<FakeModelRunner>> runners;
    for (int rank = 0; rank < PostOffice::kRanks; ++rank) {
      runners.push_back(std::make_unique<FakeModelRunner>(options));
      runners_.push_back(runners.back().get());
    }
    served_.resize(PostOffice::kRanks);
    for (int rank = 1; rank < PostOffice::kRanks; ++rank) {
      threads_.emplace_back([this, rank, runner = std::move(runners[rank])]() mutable {
        served_[rank] = RunWorkerLoop(std::move(runner), Links(rank));
      });
    }
    leading_ = std::make_unique<TensorParallelDriver>(std::move(runners[0]), Links(0), 35);
  }

  void End() {
    leading_.reset();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  const absl::Duration timeout_ = absl::Seconds(20);
  PostOffice office_;
  std::vector<FakeModelRunner*> runners_;  // valid while the runners exist
  std::vector<absl::Status> served_;
  std::vector<std::thread> threads_;
  std::unique_ptr<ModelRunner> leading_;
};

// Two steps are in flight; the second one reads the tokens of the first from slots only.
TEST_F(TensorParallelDriverTest, AllRanksRunTheEnginesSteps) {
  Start();
  EXPECT_EQ(leading_->num_pages(), 35);
  EXPECT_EQ(leading_->max_in_flight(), 2);
  FakeModelRunner* const first = runners_[0];
  std::map<uint64_t, GenerateRequest> requests;
  for (uint64_t id = 0; id < 6; ++id) requests[id] = Request(id, 2, 40);
  {
    BatchedEngine engine(std::move(leading_), {});
    for (const auto& [id, request] : requests) ASSERT_TRUE(engine.Submit(request).ok());
    while (engine.Outstanding() > 0) {
      const absl::StatusOr<Sample> sample = engine.Next(Soon());
      ASSERT_TRUE(sample.ok()) << sample.status();
      ExpectSame(*sample, Reference(requests.at(sample->request_id), sample->index));
    }
    EXPECT_GT(first->speculated, 0);
    // The other ranks may still be behind, but must reach the same step.
    const absl::Time deadline = absl::Now() + timeout_;
    for (int rank = 1; rank < PostOffice::kRanks; ++rank) {
      while (runners_[rank]->collected < first->collected && absl::Now() < deadline) {
        absl::SleepFor(absl::Milliseconds(1));
      }
      EXPECT_EQ(runners_[rank]->collected, first->collected);
      EXPECT_EQ(runners_[rank]->launched, first->launched);
    }
  }
  End();
  EXPECT_TRUE(served_[1].ok()) << served_[1];
  EXPECT_TRUE(served_[2].ok()) << served_[2];
}

TEST_F(TensorParallelDriverTest, AnErrorOfAnotherRankIsThatOfEveryLaterCall) {
  Start();
  runners_[2]->fail_after = 0;
  // The error may arrive after the first steps.
  absl::Status status;
  const absl::Time deadline = absl::Now() + timeout_;
  while (status.ok() && absl::Now() < deadline) {
    status = leading_->Launch({});
    if (status.ok()) status = leading_->Collect().status();
  }
  EXPECT_EQ(status, absl::ResourceExhaustedError("rank 2: a step ran out of memory"));
  EXPECT_EQ(leading_->Launch({}), status);
  EXPECT_EQ(leading_->Collect().status(), status);
  EXPECT_EQ(leading_->Wake(), status);
  End();
  EXPECT_TRUE(served_[2].ok()) << "rank 0 knows: " << served_[2];
}

TEST_F(TensorParallelDriverTest, MemoryIsTakenByAllOrNone) {
  Start();
  EXPECT_TRUE(leading_->Sleep().ok());
  for (const FakeModelRunner* runner : runners_) EXPECT_FALSE(runner->held);
  runners_[1]->taken_by_others = -1;
  EXPECT_EQ(leading_->Wake(), absl::ResourceExhaustedError("rank 1: others have it"));
  for (const FakeModelRunner* runner : runners_) EXPECT_FALSE(runner->held);
  runners_[1]->taken_by_others = 0;
  EXPECT_TRUE(leading_->Wake().ok());
  for (const FakeModelRunner* runner : runners_) EXPECT_TRUE(runner->held);
}

TEST_F(TensorParallelDriverTest, AfterARankThatDoesNotSleepNoCallSucceeds) {
  Start();
  runners_[1]->fail_release = true;
  const absl::Status status = leading_->Sleep();
  EXPECT_EQ(status, absl::InternalError("rank 1: the memory cannot be given back"));
  EXPECT_EQ(leading_->Launch({}), status);
  EXPECT_EQ(leading_->Wake(), status);
}

// Through an engine, whose thread makes all calls; once a rank's memory is not free at the first
// attempt.
TEST_F(TensorParallelDriverTest, AllRanksReleaseMemoryForAnUpdate) {
  Start();
  const GenerateRequest request = Request(1, 3, 40);
  {
    BatchedEngine engine(std::move(leading_), MakeEngineConfig("enable_sleep_mode: true"));
    const auto take_all = [&] {
      while (engine.Outstanding() > 0) {
        const absl::StatusOr<Sample> sample = engine.Next(Soon());
        ASSERT_TRUE(sample.ok()) << sample.status();
        ExpectSame(*sample, Reference(request, sample->index));
      }
    };
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(engine.Submit(request).ok());
      const bool under_samples = round == 1;
      if (!under_samples) take_all();
      ASSERT_TRUE(under_samples ? engine.PauseForWeightUpdate(Engine::KvPolicy::kInvalidate).ok()
                                : engine.BeginWeightUpdate().ok());
      for (const FakeModelRunner* runner : runners_) EXPECT_FALSE(runner->held);
      if (under_samples) runners_[2]->taken_by_others = 1;
      engine.EndWeightUpdate(round + 1);
      for (const FakeModelRunner* runner : runners_) EXPECT_TRUE(runner->held);
      take_all();
    }
  }
  End();
  EXPECT_TRUE(served_[1].ok()) << served_[1];
  EXPECT_TRUE(served_[2].ok()) << served_[2];
}

TEST_F(TensorParallelDriverTest, RanksThatRestHearOfTheFirst) {
  FakeClock clock;
  office_.clock = &clock;
  Start();
  constexpr int kWaiters = 6;  // heartbeat thread, each rank's watchdog, each worker's receiver
  for (int beats = 0; beats < 10; ++beats) {
    clock.AwaitWaiters(kWaiters);
    EXPECT_EQ(office_.beats, beats);
    clock.Advance(timeout_ / 4);
  }
  clock.AwaitWaiters(kWaiters);
  EXPECT_TRUE(leading_->Sleep().ok());
  End();
  EXPECT_TRUE(served_[1].ok()) << served_[1];
}

TEST_F(TensorParallelDriverTest, ARankThatHearsNothingOrNonsenseGivesUp) {
  FakeClock clock;
  office_.clock = &clock;
  const auto serve_until_timeout = [&] {
    absl::Status status;
    std::thread worker([&] {
      status =
          RunWorkerLoop(std::make_unique<FakeModelRunner>(FakeModelRunner::Options{}), Links(1));
    });
    clock.AwaitWaiters(2);  // its watchdog and its receiver
    clock.Advance(timeout_);
    worker.join();
    return status;
  };
  EXPECT_EQ(serve_until_timeout(), absl::DeadlineExceededError("nothing came"));
  OfficeMail mail(0, &office_);
  ASSERT_TRUE(mail.Send(1, "nonsense", timeout_).ok());
  const absl::Status damaged = serve_until_timeout();
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  const auto told = mail.Receive(1, timeout_);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(DecodeStatus(*told), damaged);
}

}  // namespace
}  // namespace tritonrl
