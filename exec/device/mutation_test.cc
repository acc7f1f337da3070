// Damaged command streams end in a result or one sentence, and nothing else happens: no crash, no
// hang, no memory that stays.
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "exec/device/session.h"
#include "exec/device/testing/honest_streams.h"
#include "exec/device/testing/scripted_channel.h"
#include "exec/device/testing/stream_mutator.h"
#include "exec/device/testing/stream_runner.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

constexpr int kByteMutations = 6'000;
constexpr int kValueMutations = 10'000;
constexpr int kOperatorMutations = 4'000;

class MutationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto runner = StreamRunner::Create();
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }

  absl::Status RunStream(const std::vector<Frame>& stream) {
    const absl::Status end = runner_->Run(stream);
    EXPECT_TRUE(CheckEnd(end).ok()) << end;
    finished_ += end.ok() ? 1 : 0;
    return end;
  }
  void RunMutations(int count, void (StreamMutator::*damage)(std::vector<Frame>&)) {
    // --gtest_shuffle --gtest_random_seed=N gives other mutations.
    const int shuffled = ::testing::UnitTest::GetInstance()->random_seed();
    StreamMutator mutator(std::mt19937(27 + static_cast<unsigned>(shuffled)));
    for (int i = 0; i < count; ++i) {
      std::vector<Frame> stream = mutator.Stream();
      (mutator.*damage)(stream);
      RunStream(stream).IgnoreError();
    }
    EXPECT_GT(finished_, 0);
    runner_->arena()->Reset();
    EXPECT_EQ(MappedBytes(), 0);
  }
  // Bytes of the arena that have memory.
  int64_t MappedBytes() {
    const uint64_t begin = reinterpret_cast<uint64_t>(*runner_->arena()->Reserve(1));
    std::ifstream maps("/proc/self/maps");
    int64_t bytes = 0;
    for (std::string line; std::getline(maps, line);) {
      const std::vector<std::string> parts = absl::StrSplit(line, absl::ByAnyChar("- "));
      uint64_t from = 0;
      uint64_t to = 0;
      if (!absl::SimpleHexAtoi(parts[0], &from) || !absl::SimpleHexAtoi(parts[1], &to)) continue;
      const bool ours = from >= begin && to <= begin + static_cast<uint64_t>(kArenaBytes);
      if (ours && parts[2][0] == 'r') bytes += static_cast<int64_t>(to - from);
    }
    return bytes;
  }

  std::unique_ptr<StreamRunner> runner_;
  int finished_ = 0;
};

TEST_F(MutationTest, HonestStreamsFinish) {
  for (const auto& stream : HonestStreams()) {
    EXPECT_TRUE(RunStream(stream).ok()) << stream[1].header;
    ScriptedChannel channel(stream);
    Session session(runner_->options(), runner_->arena(), runner_->compiler());
    ASSERT_TRUE(session.Run(channel).ok());
    for (const Frame& reply : channel.replies()) {
      EXPECT_FALSE(absl::StrContains(reply.header, "refused")) << reply.header;
    }
  }
}

TEST_F(MutationTest, DamagedBytes) { RunMutations(kByteMutations, &StreamMutator::DamageBytes); }
TEST_F(MutationTest, DamagedValues) { RunMutations(kValueMutations, &StreamMutator::DamageValues); }
TEST_F(MutationTest, OtherOperators) {
  RunMutations(kOperatorMutations, &StreamMutator::DamageOperator);
}

TEST_F(MutationTest, StreamsCutAnywhere) {
  for (const auto& stream : HonestStreams()) {
    for (size_t length = 0; length < stream.size(); ++length) {
      const std::vector<Frame> cut(stream.begin(), stream.begin() + static_cast<int64_t>(length));
      EXPECT_EQ(RunStream(cut).code(), absl::StatusCode::kUnavailable);
    }
  }
}

}  // namespace
}  // namespace tritonrl::device
