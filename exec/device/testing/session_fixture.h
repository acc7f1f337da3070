// A session on the CPU with a scripted candidate that adds its weight to its input.
#ifndef TRITONRL_EXEC_DEVICE_TESTING_SESSION_FIXTURE_H_
#define TRITONRL_EXEC_DEVICE_TESTING_SESSION_FIXTURE_H_

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/device/session.h"
#include "exec/device/testing/fake_compiler.h"
#include "exec/device/testing/scripted_channel.h"

namespace tritonrl::device {

class SessionTest : public ::testing::Test {
 protected:
  using Texts = std::vector<std::string>;

  void SetUp() override {
    auto arena = Arena::Create();
    ASSERT_TRUE(arena.ok()) << arena.status();
    arena_ = *std::move(arena);
    options_.source = "class ModelNew: ...";
    options_.init_seed = 5;
    options_.calls.push_back(CallOf(1));
    options_.limits.max_memory_bytes = 1 << 24;
    options_.deadline = absl::Now() + absl::Seconds(60);
  }
  static CallInputs CallOf(float x) {
    CallInputs call;
    call.args = Value::List({Value::Host(at::full({4}, x, at::kFloat))});
    call.kwargs.kind = Value::Kind::kDict;
    call.seed = 11;
    return call;
  }
  absl::StatusOr<SessionResult> RunScript(std::vector<Frame> frames) {
    session_.reset();
    session_ = std::make_unique<Session>(options_, arena_.get(), &compiler_);
    channel_ = std::make_unique<ScriptedChannel>(std::move(frames));
    return session_->Run(*channel_);
  }
  // Storage 1: the weight; 2: the input; 3: the result of `forward`, which is the output.
  static Texts Init() {
    return {R"({"do":"begin"})", EmptyText(4), OperatorText("uniform_", "", FloatTensor(1, 4)),
            absl::StrCat(R"({"do":"constructed","state":[["w",)", FloatTensor(1, 4), "]]}")};
  }
  static std::string OutputText(const std::string& value = FloatTensor(3, 4)) {
    return absl::StrCat(R"({"do":"output","value":)", value, "}");
  }
  static std::string AddText() {
    return LaunchText(
        0, absl::StrCat(FloatTensor(2, 4), ",", FloatTensor(1, 4), ",", FloatTensor(3, 4), ",4"));
  }
  absl::StatusOr<SessionResult> RunForward(const Texts& forward,
                                           const std::string& output = FloatTensor(3, 4)) {
    Texts texts = Init();
    texts.insert(texts.end(), forward.begin(), forward.end());
    texts.push_back(OutputText(output));
    return RunScript(Script(texts));
  }
  absl::StatusOr<SessionResult> RunHonest() {
    return RunForward({EmptyText(4), KernelText("add"), AddText()});
  }
  absl::StatusOr<ReplayResult> ReplayWith(float x, std::optional<int64_t> skipped = std::nullopt,
                                          Poison poison = Poison::kOnes) {
    ReplayOptions options;
    options.inputs = {at::full({4}, x, at::kFloat)};
    options.run.skip = [skipped](const LaunchCommand&, int64_t number) {
      return number == skipped;
    };
    options.poison = poison;
    return session_->ReplayCall(options);
  }
  at::Tensor Weight() { return session_->ReplayConstructor(5)->at(0); }

  std::unique_ptr<Arena> arena_;
  FakeCompiler compiler_;
  SessionOptions options_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<ScriptedChannel> channel_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TESTING_SESSION_FIXTURE_H_
