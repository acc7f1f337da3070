// A device for tests, and operators by their JSON arguments.
#ifndef TRITONRL_EXEC_DEVICE_TESTING_DEVICE_FIXTURE_H_
#define TRITONRL_EXEC_DEVICE_TESTING_DEVICE_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "exec/device/device.h"
#include "exec/device/json.h"
#include "exec/device/neutral_operators.h"
#include "exec/device/testing/fake_compiler.h"
#include "exec/device/testing/scripted_channel.h"
#include "exec/device/value_parser.h"
#include "gtest/gtest.h"

namespace tritonrl::device {

class DeviceFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    auto arena = Arena::Create();
    ASSERT_TRUE(arena.ok()) << arena.status();
    arena_ = *std::move(arena);
    options_.limits.max_memory_bytes = 1 << 24;
    device_ = std::make_unique<Device>(arena_.get(), &compiler_, options_);
    rules_.limits = options_.limits;
  }

  // A new storage for `count` elements. Returns its number.
  int Make(int64_t count, at::ScalarType type = at::kFloat) {
    return static_cast<int>((*device_->memory().Allocate(count * BytesOf(type), type))->number);
  }
  // The tensor of a text such as FloatTensor(1, 4).
  static TensorRef Ref(const std::string& text) { return ParseValue(*ParseJson(text), "")->tensor; }
  at::Tensor View(const std::string& text) { return device_->memory().View(Ref(text)); }
  int64_t Bytes(const std::string& text, Tag tag) {
    return device_->memory().Count(Ref(text)).bytes[static_cast<int>(tag)];
  }

  static OperatorCall Call(const std::string& name, const std::string& overload,
                           const std::string& args, const std::string& kwargs = "",
                           const std::string& payload = "") {
    OperatorCall call;
    call.name = name;
    call.overload = overload;
    const auto parsed = ParseValue(*ParseJson("[" + args + "]"), payload);
    const auto named = ParseValue(*ParseJson("{\"dict\":[" + kwargs + "]}"), payload);
    EXPECT_TRUE(parsed.ok()) << args << parsed.status();
    EXPECT_TRUE(named.ok()) << kwargs << named.status();
    call.args = *parsed;
    call.kwargs = *named;
    return call;
  }
  // Checks as in forward, and runs.
  absl::Status Forward(const OperatorCall& call) {
    const auto bound = Bind(call);
    if (!bound.ok()) return bound.status();
    const absl::Status allowed = CheckForward(*bound, device_->memory(), rules_, budget_);
    if (!allowed.ok()) return allowed;
    return RunIn(Phase::kForward, *bound);
  }
  absl::Status RunIn(Phase phase, const BoundCall& bound) {
    made_.clear();
    return device_->RunOperator(bound, phase, /*again=*/false, made_).status();
  }

  std::unique_ptr<Arena> arena_;
  FakeCompiler compiler_;
  Device::Options options_;
  std::unique_ptr<Device> device_;
  ForwardRules rules_;
  CallBudget budget_;
  std::vector<TensorRef> made_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TESTING_DEVICE_FIXTURE_H_
