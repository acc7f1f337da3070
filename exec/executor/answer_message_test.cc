// What an executor that was taken over may answer.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "exec/executor/answer_reader.h"
#include "exec/executor/answer_writer.h"

namespace tritonrl::executor {
namespace {

using testing::HasSubstr;
using Kind = device::Value::Kind;

// Both sides have this memory.
class AnswerMessageTest : public testing::Test, public ContentsPlacer {
 protected:
  absl::StatusOr<Contents> Place(const at::Tensor& tensor, size_t bytes) override {
    Contents contents;
    contents.set_offset(end_);
    memcpy(memory_.data() + end_, tensor.const_data_ptr(), bytes);
    end_ += (bytes + 63) / 64 * 64;
    return contents;
  }
  std::vector<Region> Regions() const { return {Region{memory_, nullptr}}; }

  static device::SessionResult Honest() {
    device::SessionResult result;
    result.outputs = {device::Value::List(
        {device::Value::Host(at::arange(6, at::kFloat).reshape({2, 3})), device::Value::Float(2)})};
    result.inputs_unchanged = {true};
    result.provenance.resize(1);
    result.provenance[0].bytes[3] = result.provenance[0].total = 24;
    result.traffic.operators["copy_"] = {1, 100};
    result.traffic.kernel_bytes = 48;
    result.counts.launches = 2;
    result.counts.refusals.push_back(
        {device::Phase::kForward, "refused", 7, absl::StatusCode::kPermissionDenied});
    result.of_weights["mul"] = 8;
    result.findings.list.push_back(
        {device::Finding::Kind::kRace, "k", "line 1", {1, 2, 3}, 4, "t"});
    return result;
  }
  SessionResult Message() {
    SessionResult message;
    EXPECT_TRUE(WriteSession(Honest(), this, &message).ok());
    return message;
  }
  // Whether a session with this change is refused, and why.
  std::string ErrorWith(const std::function<void(SessionResult*)>& change, size_t calls = 1) {
    SessionResult message = Message();
    change(&message);
    const auto result =
        ReadSession(message, {.calls = calls, .output_bytes = kMostBytes}, Regions());
    EXPECT_TRUE(result.ok() || absl::IsInvalidArgument(result.status()));
    return std::string(result.status().message());
  }
  static Value* Tensor(SessionResult* message) {
    return message->mutable_outputs(0)->mutable_items(0);
  }

  static constexpr int64_t kMostBytes = 2000;
  std::string memory_ = std::string(4096, '\0');
  size_t end_ = 0;
};

TEST_F(AnswerMessageTest, AResultComesBack) {
  const auto result = ReadSession(Message(), {.calls = 1, .output_bytes = kMostBytes}, Regions());
  ASSERT_TRUE(result.ok()) << result.status();
  const device::Value& output = result->outputs[0];
  ASSERT_EQ(output.kind, Kind::kList);
  EXPECT_TRUE(output.items[0].host.equal(at::arange(6, at::kFloat).reshape({2, 3})));
  EXPECT_EQ(output.items[1].number, 2);
  EXPECT_EQ(result->provenance[0].bytes[3], 24);
  EXPECT_EQ(result->traffic.operators.at("copy_").bytes, 100);
  EXPECT_EQ(result->counts.refusals[0].text, "refused");
  EXPECT_EQ(result->counts.refusals[0].phase, device::Phase::kForward);
  EXPECT_EQ(result->findings.list[0].program[2], 3);
  EXPECT_EQ(result->of_weights.at("mul"), 8);
}

TEST_F(AnswerMessageTest, ListsHaveToFit) {
  const auto nothing = [](SessionResult*) {};
  EXPECT_EQ(ErrorWith(nothing), "");
  EXPECT_THAT(ErrorWith(nothing, 2), HasSubstr("number of outputs"));
  EXPECT_THAT(ErrorWith(nothing, 0), HasSubstr("number of outputs"));
  // A candidate that failed has fewer.
  EXPECT_EQ(ErrorWith([](SessionResult* m) { m->mutable_failure(); }, 2), "");
  EXPECT_NE(ErrorWith([](SessionResult* m) { m->clear_inputs_unchanged(); }), "");
  EXPECT_NE(ErrorWith([](SessionResult* m) { m->mutable_provenance(0)->add_bytes(1); }), "");
  EXPECT_NE(
      ErrorWith([](SessionResult* m) { m->mutable_findings()->mutable_list(0)->set_kind(9); }), "");
}

TEST_F(AnswerMessageTest, NumbersAreBounded) {
  for (const int64_t number : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_NE(ErrorWith([=](SessionResult* m) { m->mutable_provenance(0)->set_total(number); }),
              "");
    EXPECT_NE(ErrorWith([=](SessionResult* m) { m->mutable_counts()->set_reads(number); }), "");
    EXPECT_NE(ErrorWith([=](SessionResult* m) { m->mutable_of_weights(0)->set_count(number); }),
              "");
    EXPECT_NE(ErrorWith([=](SessionResult* m) { m->set_host_output_bytes(number); }), "");
  }
  ReplayResult replay;
  ASSERT_TRUE(WriteReplayResult(device::ReplayResult(), this, &replay).ok());
  EXPECT_TRUE(ReadReplayResult(replay, {.launches = 1}, Regions()).ok());
  EXPECT_FALSE(ReadReplayResult(replay, {.launches = 1, .counted = true}, Regions()).ok());
  for (int i = 0; i < 8; ++i) replay.add_counts(1);
  EXPECT_TRUE(ReadReplayResult(replay, {.launches = 1, .counted = true}, Regions()).ok());
  EXPECT_FALSE(ReadReplayResult(replay, {.launches = 2, .counted = true}, Regions()).ok());
  for (const double number :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    replay.set_counts(3, number);
    EXPECT_FALSE(ReadReplayResult(replay, {.launches = 1, .counted = true}, Regions()).ok());
  }
}

TEST_F(AnswerMessageTest, ContentsLieInTheirRegion) {
  const auto with_form = [&](int64_t size, int64_t stride) {
    return ErrorWith([=](SessionResult* m) {
      TensorForm* const form = Tensor(m)->mutable_host()->mutable_form();
      form->set_shape(0, size);
      form->set_stride(0, stride);
    });
  };
  EXPECT_EQ(with_form(2, 3), "");
  EXPECT_EQ(with_form(100, 3), "");
  EXPECT_THAT(with_form(200, 3), HasSubstr("larger output than was allowed"));
  EXPECT_THAT(with_form(1 << 30, 0), HasSubstr("not dense"));
  EXPECT_THAT(with_form(2, 4), HasSubstr("not dense"));
  EXPECT_THAT(with_form(1000, 3), HasSubstr("outside of their region"));
  EXPECT_THAT(with_form(2, 5000), HasSubstr("outside of their region"));
  EXPECT_NE(with_form(-1, 3), "");
  EXPECT_NE(with_form(2, -3), "");
  EXPECT_NE(with_form(int64_t{1} << 62, int64_t{1} << 62), "");
  const auto with_offset = [&](uint64_t offset, uint32_t region) {
    return ErrorWith([=](SessionResult* m) {
      Contents* const contents = Tensor(m)->mutable_host()->mutable_contents();
      contents->set_offset(offset);
      contents->set_region(region);
    });
  };
  EXPECT_EQ(with_offset(4072, 0), "");
  EXPECT_NE(with_offset(4076, 0), "");
  EXPECT_NE(with_offset(2, 0), "");
  EXPECT_NE(with_offset(~uint64_t{0}, 0), "");
  EXPECT_NE(with_offset(~uint64_t{0} - 7, 0), "");
  EXPECT_NE(with_offset(0, 1), "");
  EXPECT_NE(ErrorWith([](SessionResult* m) {
              Tensor(m)->mutable_host()->mutable_form()->set_dtype("float31");
            }),
            "");
}

TEST_F(AnswerMessageTest, ValuesAreOfTheirKind) {
  const auto with_kind = [&](uint32_t kind) {
    return ErrorWith([=](SessionResult* m) { m->mutable_outputs(0)->set_kind(kind); });
  };
  EXPECT_EQ(with_kind(static_cast<uint32_t>(Kind::kTuple)), "");
  EXPECT_NE(with_kind(static_cast<uint32_t>(Kind::kFloat)), "");  // with items
  EXPECT_NE(with_kind(static_cast<uint32_t>(Kind::kDict)), "");   // without keys
  EXPECT_NE(with_kind(99), "");
  for (const Kind kind : {Kind::kDType, Kind::kBool, Kind::kMemoryFormat}) {
    EXPECT_NE(ErrorWith([=](SessionResult* m) {
                Value* const value = m->mutable_outputs(0)->mutable_items(1);
                value->set_kind(static_cast<uint32_t>(kind));
                value->set_integer(77);
              }),
              "");
  }
}

TEST_F(AnswerMessageTest, RecordingsAreWhole) {
  Recording recording;
  recording.add_kernels()->set_name("k");
  recording.add_kernel(0);
  recording.add_line(3);
  for (int i = 0; i < 3; ++i) recording.add_grid(1);
  EXPECT_TRUE(ReadRecording(recording, 1).ok());
  EXPECT_FALSE(ReadRecording(recording, 0).ok());
  recording.set_kernel(0, 1);
  EXPECT_FALSE(ReadRecording(recording, 1).ok());
  recording.set_kernel(0, -1);
  EXPECT_FALSE(ReadRecording(recording, 1).ok());
  recording.set_kernel(0, 0);
  recording.add_grid(1);
  EXPECT_FALSE(ReadRecording(recording, 1).ok());
}

TEST_F(AnswerMessageTest, OnlyStatusesOfSessionsAreBelieved) {
  Answer answer;
  EXPECT_TRUE(ReadStatus(answer).ok());
  for (const auto& [code, expected] :
       {std::pair(absl::StatusCode::kOutOfRange, absl::StatusCode::kOutOfRange),
        std::pair(absl::StatusCode::kAborted, absl::StatusCode::kInternal),
        std::pair(static_cast<absl::StatusCode>(-5), absl::StatusCode::kInternal)}) {
    answer.set_code(static_cast<int32_t>(code));
    answer.set_error(std::string(100'000, 'x'));
    EXPECT_EQ(ReadStatus(answer).code(), expected);
    EXPECT_LT(ReadStatus(answer).message().size(), 10'000u);
  }
}

TEST_F(AnswerMessageTest, TimesAreBounded) {
  const device::Value output = device::Value::Host(at::arange(6, at::kFloat));
  TimedReplays message;
  ASSERT_TRUE(WriteTimed({1.5, 2}, &output, this, &message).ok());
  const AnswerBounds bounds = {.output_bytes = kMostBytes};
  const TimeRequest asked = {.count = 2, .output = true};
  const auto timed = ReadTimed(message, asked, bounds, Regions());
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_THAT(timed->seconds, testing::ElementsAre(1.5e-3, 2e-3));
  EXPECT_TRUE(timed->output.host.equal(output.host));
  EXPECT_FALSE(ReadTimed(message, {.count = 3, .output = true}, bounds, Regions()).ok());
  EXPECT_FALSE(ReadTimed(message, {.count = 2}, bounds, Regions()).ok());
  EXPECT_FALSE(
      ReadTimed(message, {.count = 2, .with_launches = true, .output = true}, bounds, Regions())
          .ok());
  EXPECT_FALSE(ReadTimed(message, asked, {.output_bytes = 8}, Regions()).ok());
  for (const double seconds : {0.0, -1.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    message.set_seconds(1, seconds);
    EXPECT_FALSE(ReadTimed(message, asked, bounds, Regions()).ok()) << seconds;
  }
}

TEST_F(AnswerMessageTest, TheGpuOfAnExecutor) {
  Ready message;
  EXPECT_FALSE(ReadGpu(message)->has_value());
  WriteGpu({"NVIDIA H200", 9, 0, 132, 232'448, int64_t{140} << 30}, &message);
  const auto gpu = ReadGpu(message);
  ASSERT_TRUE(gpu.ok() && gpu->has_value()) << gpu.status();
  EXPECT_EQ((*gpu)->name, "NVIDIA H200");
  EXPECT_EQ((*gpu)->capability_major, 9);
  EXPECT_EQ((*gpu)->total_bytes, int64_t{140} << 30);
  message.set_device_numbers(2, -1);
  EXPECT_FALSE(ReadGpu(message).ok());
  message.clear_device_numbers();
  message.add_device_numbers(1);
  EXPECT_FALSE(ReadGpu(message).ok());
}

// No bytes make the reader crash.
TEST_F(AnswerMessageTest, MutatedBytes) {
  std::mt19937 random(1);
  const std::string bytes = Message().SerializeAsString();
  int parsed = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string mutated = bytes;
    for (int j = 0; j <= static_cast<int>(random() % 4); ++j) {
      mutated[random() % mutated.size()] = static_cast<char>(random());
    }
    SessionResult message;
    if (!message.ParseFromString(mutated)) continue;
    ++parsed;
    const auto result = ReadSession(message, {.calls = 1, .output_bytes = kMostBytes}, Regions());
    if (!result.ok() || result->outputs.empty()) continue;
    for (const device::Value& item : result->outputs[0].items) {
      if (item.kind == Kind::kHost) (void)item.host.clone();
    }
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace tritonrl::executor
