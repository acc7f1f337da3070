#include "exec/device/window.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/device/session.h"
#include "exec/device/testing/fake_compiler.h"
#include "exec/device/testing/scripted_channel.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kBytes = 8192;

// Memory of another process's, as far as a window knows.
class Shared {
 public:
  Shared() : fd_(memfd_create("window", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_, kBytes), 0);
    floats_ =
        static_cast<float*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
  }
  ~Shared() {
    munmap(floats_, kBytes);
    close(fd_);
  }
  int fd() const { return fd_; }
  float* floats() const { return floats_; }

 private:
  int fd_;
  float* floats_;
};

TEST(WindowTest, HasMemoryWhileItIsMapped) {
  Shared shared;
  shared.floats()[3] = 7;
  auto window = OpenHostWindow(shared.fd(), kBytes);
  ASSERT_TRUE(window.ok()) << window.status();
  const auto* const floats = reinterpret_cast<const float*>((*window)->base());
  {
    const MappedWindow outer(window->get());
    { const MappedWindow inner(window->get()); }
    ASSERT_TRUE(outer.status().ok());
    EXPECT_EQ(floats[3], 7);
  }
  unsigned char present = 0;
  EXPECT_EQ(mincore((*window)->base(), kBytes, &present), 0);  // the addresses stay its own
  EXPECT_TRUE((*window)->Contains(floats + 3));
  EXPECT_FALSE((*window)->Contains((*window)->base() + kBytes));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenHostWindow(shared.fd(), kBytes + 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenHostWindow(shared.fd(), 0).status()));
}

TEST(WindowTest, OneOfOthersCannotBeMapped) {
  Shared shared;
  auto window = ReserveWindow(dup(shared.fd()), int64_t{1} << 40);
  ASSERT_TRUE(window.ok()) << window.status();
  EXPECT_FALSE(MappedWindow(window->get()).status().ok());
}

// Storage 1: the input; 2: the output of a kernel that adds it to itself.
class SessionWithWindowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    arena_ = *Arena::Create();
    auto exchange = std::make_shared<Exchange>();
    exchange->inputs = *OpenHostWindow(inputs_.fd(), kBytes);
    exchange->outputs = *OpenHostWindow(outputs_.fd(), kBytes);
    exchange->provide = [this](size_t call) {
      for (int i = 0; i < 8; ++i) inputs_.floats()[i] = static_cast<float>(call + 1);
      told_ += absl::StrCat("provide ", call, ";");
      return absl::OkStatus();
    };
    exchange->take = [this](size_t call, const Value& output, bool on_device) {
      told_ += absl::StrCat("take ", call, on_device ? " " : " host ", outputs_.floats()[0], " ",
                            output.host.is_meta() ? "meta" : "there", ";");
      return taken_;
    };
    options_.exchange = exchange;
    options_.deadline = absl::Now() + absl::Seconds(60);
    options_.limits.max_memory_bytes = 1 << 24;
    const at::Tensor input = at::from_blob(exchange->inputs->base(), {4}, at::kFloat);
    for (int call = 0; call < 2; ++call) {
      CallInputs& inputs = options_.calls.emplace_back();
      inputs.args = Value::List({Value::Host(input)});
      inputs.kwargs.kind = Value::Kind::kDict;
    }
    input_ = input;
  }
  absl::StatusOr<SessionResult> Run(const std::string& output = FloatTensor(2, 4)) {
    const std::string launch = LaunchText(
        0, absl::StrCat(FloatTensor(1, 4), ",", FloatTensor(1, 4), ",", FloatTensor(2, 4), ",4"));
    const std::string again = LaunchText(
        0, absl::StrCat(FloatTensor(3, 4), ",", FloatTensor(3, 4), ",", FloatTensor(4, 4), ",4"));
    session_ = std::make_unique<Session>(options_, arena_.get(), &compiler_);
    ScriptedChannel channel(Script(
        {R"({"do":"begin"})", R"({"do":"constructed","state":[]})", EmptyText(4), KernelText("add"),
         launch, absl::StrCat(R"({"do":"output","value":)", output, "}"), EmptyText(4), again,
         absl::StrCat(R"({"do":"output","value":)", FloatTensor(4, 4), "}")}));
    return session_->Run(channel);
  }

  Shared inputs_, outputs_;
  at::Tensor input_;
  std::string told_;
  absl::Status taken_;
  std::unique_ptr<Arena> arena_;
  FakeCompiler compiler_;
  SessionOptions options_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionWithWindowsTest, CallsTakeTurns) {
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(told_, "provide 0;take 0 2 there;provide 1;take 1 4 there;");
  EXPECT_EQ(result->inputs_unchanged, std::vector<bool>({true, true}));
  EXPECT_EQ(result->provenance[0].bytes[static_cast<int>(Tag::kKernel)], 16);
}

TEST_F(SessionWithWindowsTest, ReplaysScaleInputsAndKeepTheWindow) {
  ASSERT_TRUE(Run().ok());
  for (int i = 0; i < 8; ++i) inputs_.floats()[i] = 5;
  ReplayOptions options;
  options.inputs = {input_};
  auto replay = session_->ReplayCall(options);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->inputs_unchanged);
  EXPECT_EQ(outputs_.floats()[0], 10);
  EXPECT_TRUE(options_.exchange->outputs->Contains(replay->output.host.const_data_ptr()));
  options.scale = -3;
  ASSERT_TRUE(session_->ReplayCall(options).ok());
  EXPECT_EQ(outputs_.floats()[3], -30);
  EXPECT_EQ(inputs_.floats()[0], 5);
}

TEST_F(SessionWithWindowsTest, WhatDoesNotFitIsSaid) {
  options_.calls.resize(1);
  const auto result =
      Run(R"({"t":{"s":2,"dtype":"float32","shape":[1000,4],"stride":[0,1],"offset":0}})");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(told_, "provide 0;take 0 0 meta;");
}

TEST_F(SessionWithWindowsTest, AnErrorEndsTheSession) {
  taken_ = absl::InternalError("nobody compares");
  EXPECT_EQ(Run().status().message(), "nobody compares");
}

}  // namespace
}  // namespace tritonrl::device
