// Damaged command streams end in a result or one sentence, and nothing else happens: no crash, no
// hang, no memory that stays.
#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "exec/device/init_operators.h"
#include "exec/device/session.h"
#include "exec/device/testing/fake_compiler.h"
#include "exec/device/testing/honest_streams.h"
#include "exec/device/testing/scripted_channel.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

constexpr int kByteMutations = 6'000;
constexpr int kValueMutations = 10'000;
constexpr int kOperatorMutations = 4'000;

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {
    for (const auto& stream : HonestStreams()) {
      for (const Frame& frame : stream) Collect(Json::parse(frame.header));
    }
  }
  size_t Pick(size_t size) { return random_() % size; }

  void DamageBytes(std::vector<Frame>& stream) {
    Frame& frame = stream[Pick(stream.size())];
    std::string& bytes = frame.payload.empty() || Pick(4) > 0 ? frame.header : frame.payload;
    for (size_t changes = 1 + Pick(3); changes > 0 && !bytes.empty(); --changes) {
      const size_t at = Pick(bytes.size());
      switch (Pick(5)) {
        case 0:
          bytes[at] = static_cast<char>(Pick(256));
          break;
        case 1:
          bytes[at] = "0123456789-.eE\"[]{},:"[Pick(21)];
          break;
        case 2:
          bytes.erase(at, 1 + Pick(8));
          break;
        case 3:
          bytes.insert(at, bytes.substr(Pick(bytes.size()), Pick(20)));
          break;
        default:
          bytes.insert(at, 1, static_cast<char>('0' + Pick(10)));
      }
    }
  }

  void DamageValues(std::vector<Frame>& stream) {
    if (Pick(8) == 0) DamageOrder(stream);
    Frame& frame = stream[Pick(stream.size())];
    Json json = Json::parse(frame.header);
    for (size_t changes = 1 + Pick(2); changes > 0; --changes) DamageOne(json);
    frame.header = WriteJson(json);
  }

  // Another operator gets the arguments of this one, perhaps with others.
  void DamageOperator(std::vector<Frame>& stream) {
    static const std::vector<std::string> names = InitOperators();
    static const char* const overloads[] = {"",    "Tensor", "Scalar", "out",
                                            "dim", "int",    "self",   "default"};
    std::vector<size_t> places;
    for (size_t i = 0; i < stream.size(); ++i) {
      if (absl::StrContains(stream[i].header, R"("do":"op")")) places.push_back(i);
    }
    Json json = Json::parse(stream[places[Pick(places.size())]].header);
    json["name"] = names[Pick(names.size())] + (Pick(3) == 0 ? "_" : "");
    json["overload"] = overloads[Pick(8)];
    Json& args = json["args"];
    if (Pick(3) == 0) args = Json::array();
    for (size_t i = 0; i <= Pick(3); ++i) args.push_back(Word());
    if (Pick(2) == 0) json["kwargs"] = {{"dict", Json::array()}};
    const size_t at = Pick(2) == 0 ? 3 : stream.size() - 1;  // in init, or late in forward
    stream.insert(stream.begin() + static_cast<int64_t>(at), {WriteJson(json), ""});
  }

 private:
  void Collect(const Json& json) {
    words_.push_back(json);
    if (json.is_structured()) {
      for (const Json& item : json) Collect(item);
    }
  }
  Json Word() {
    switch (Pick(4)) {
      case 0: {
        const int64_t numbers[] = {
            0, 1, 2, 3, -1, 4, 16, 65, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN, int64_t{1} << 61};
        return numbers[Pick(13)];
      }
      case 1: {
        const double numbers[] = {0.5, -1.0, 1e300, 1e-300, 4.0};
        return numbers[Pick(5)];
      }
      default:
        return words_[Pick(words_.size())];
    }
  }
  void DamageOne(Json& json) {
    Json* at = &json;
    while (at->is_structured() && !at->empty() && Pick(6) > 0) {
      at = &*std::next(at->begin(), static_cast<int64_t>(Pick(at->size())));
    }
    if (at->is_array() && !at->empty() && Pick(2) == 0) {
      if (Pick(2) == 0) {
        at->erase(Pick(at->size()));
      } else {
        at->push_back(Word());
      }
      return;
    }
    if (at->is_object() && !at->empty() && Pick(2) == 0) {
      at->erase(std::next(at->begin(), static_cast<int64_t>(Pick(at->size()))).key());
      return;
    }
    *at = Word();
  }
  void DamageOrder(std::vector<Frame>& stream) {
    const size_t from = Pick(stream.size());
    const size_t to = Pick(stream.size());
    if (Pick(2) == 0) {
      std::swap(stream[from], stream[to]);
    } else {
      stream.insert(stream.begin() + static_cast<int64_t>(to), stream[from]);
    }
  }

  std::mt19937 random_;
  std::vector<Json> words_;
};

class MutationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    auto arena = Arena::Create();
    ASSERT_TRUE(arena.ok()) << arena.status();
    arena_ = *std::move(arena);
    CallInputs call;
    call.args = Value::List({Value::Host(at::ones({4}))});
    call.kwargs.kind = Value::Kind::kDict;
    options_.calls = {call};
    options_.limits.max_memory_bytes = 1 << 15;
    options_.deadline = absl::Now() + absl::Minutes(5);
  }

  // Runs a stream and what may follow it.
  absl::Status RunStream(const std::vector<Frame>& stream) {
    Session session(options_, arena_.get(), &compiler_);
    ScriptedChannel channel(stream);
    const auto result = session.Run(channel);
    ++(result.ok() ? finished_ : ended_);
    if (!result.ok()) ExpectOneSentence(result.status());
    ReplayOptions replay;
    for (const TensorRef& input : session.recording().call.inputs) {
      replay.inputs.push_back(at::ones(input.shape));
    }
    replay.run.skip = [](const LaunchCommand&, int64_t number) { return number == 0; };
    replay.deadline = options_.deadline;
    session.ReplayCall(replay).status().IgnoreError();
    session.ReplayConstructor(2).status().IgnoreError();
    return result.status();
  }
  static void ExpectOneSentence(const absl::Status& status) {
    EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsUnavailable(status) ||
                absl::IsResourceExhausted(status))
        << status;
    if (absl::IsInvalidArgument(status)) {
      EXPECT_TRUE(absl::StartsWith(status.message(), "the candidate's process sent ")) << status;
    }
    EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
  }
  void RunMutations(int count, void (Mutator::*damage)(std::vector<Frame>&)) {
    const auto streams = HonestStreams();
    // --gtest_shuffle --gtest_random_seed=N gives other mutations.
    Mutator mutator(27 + static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed()));
    for (int i = 0; i < count; ++i) {
      std::vector<Frame> stream = streams[mutator.Pick(streams.size())];
      (mutator.*damage)(stream);
      RunStream(stream).IgnoreError();
    }
    EXPECT_GT(finished_, 0);
    arena_->Reset();
    EXPECT_EQ(MappedBytes(), 0);
  }
  // Bytes of the arena that have memory.
  int64_t MappedBytes() {
    const uint64_t begin = reinterpret_cast<uint64_t>(*arena_->Reserve(1));
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

  std::unique_ptr<Arena> arena_;
  FakeCompiler compiler_;
  SessionOptions options_;
  int finished_ = 0;
  int ended_ = 0;
};

TEST_F(MutationTest, HonestStreamsFinish) {
  for (const auto& stream : HonestStreams()) {
    EXPECT_TRUE(RunStream(stream).ok()) << stream[1].header;
    ScriptedChannel channel(stream);
    Session session(options_, arena_.get(), &compiler_);
    ASSERT_TRUE(session.Run(channel).ok());
    for (const Frame& reply : channel.replies()) {
      EXPECT_FALSE(absl::StrContains(reply.header, "refused")) << reply.header;
    }
  }
}

TEST_F(MutationTest, DamagedBytes) { RunMutations(kByteMutations, &Mutator::DamageBytes); }
TEST_F(MutationTest, DamagedValues) { RunMutations(kValueMutations, &Mutator::DamageValues); }
TEST_F(MutationTest, OtherOperators) { RunMutations(kOperatorMutations, &Mutator::DamageOperator); }

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
