#include "exec/device/session.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/device/testing/fake_compiler.h"
#include "exec/device/testing/scripted_channel.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

using Texts = std::vector<std::string>;

class SessionTest : public ::testing::Test {
 protected:
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

TEST_F(SessionTest, AnHonestCandidateGetsItsOutput) {
  const auto result = RunHonest();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->failure.has_value());
  ASSERT_EQ(result->outputs.size(), 1u);
  const at::Tensor weight = Weight();
  EXPECT_TRUE(result->outputs[0].host.equal(weight.add(1)));
  EXPECT_EQ(result->provenance[0].bytes[static_cast<int>(Tag::kKernel)], 16);
  EXPECT_EQ(result->counts.launches, 1);
  EXPECT_EQ(result->counts.init_operators.at("uniform_"), 1);
  EXPECT_EQ(result->traffic.neutral_bytes, 0);
  EXPECT_GE(result->traffic.kernel_bytes, 48);
}

TEST_F(SessionTest, RepliesDescribeMemoryOfTheArena) {
  ASSERT_TRUE(RunHonest().ok());
  EXPECT_EQ(channel_->reply(0)["source"], options_.source);
  EXPECT_EQ(channel_->reply(0)["device"]["capability"], Json({8, 9}));
  const Json made = channel_->reply(1)["out"]["new"];
  EXPECT_EQ(made["storage"], 1);
  EXPECT_EQ(made["nbytes"], 16);
  if (kArenaBase != 0) {
    EXPECT_EQ(made["address"], kArenaBase);
  }
  EXPECT_EQ(channel_->reply(2)["out"], Json({{"arg", 0}}));
  EXPECT_EQ(channel_->reply(3)["args"][0]["new"]["storage"], 2);
  EXPECT_EQ(channel_->reply(5)["kernel"], 0);
  EXPECT_EQ(channel_->reply(7)["end"], true);
}

TEST_F(SessionTest, WeightsAreThoseOfTorchUnderTheSeed) {
  ASSERT_TRUE(RunHonest().ok());
  at::Tensor expected = at::ones({4});
  Generators generators(1);
  generators.Seed(0, 5);
  expected.uniform_(0, 1, generators.Get(0));
  EXPECT_TRUE(Weight().equal(expected));
  EXPECT_FALSE(session_->ReplayConstructor(6)->at(0).equal(expected));
}

TEST_F(SessionTest, TheProcessMayBeToldAnotherSeed) {
  ASSERT_TRUE(RunHonest().ok());
  const at::Tensor weight = Weight();
  options_.told_seed = 99;
  const auto result = RunHonest();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(channel_->reply(0)["seed"], 99);
  EXPECT_TRUE(result->outputs[0].host.equal(weight.add(1)));
}

TEST_F(SessionTest, ResultsAreBounded) {
  options_.limits.max_output_bytes = 15;
  const auto result = RunHonest();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
}

// Storage 1: the weight; 2: what a kernel of the constructor made of it.
TEST_F(SessionTest, KernelsOfTheConstructorOnWeightsAreNoted) {
  for (const bool freed : {false, true}) {
    Texts texts = Init();
    const std::string launch =
        absl::StrCat(FloatTensor(1, 4), ",", FloatTensor(1, 4), ",", FloatTensor(2, 4), ",4");
    Texts more = {EmptyText(4), KernelText("add"), LaunchText(0, launch)};
    if (freed) more.push_back(R"({"do":"generator","free":[2]})");
    texts.insert(texts.end() - 1, more.begin(), more.end());
    texts.push_back(OutputText(FloatTensor(1, 4)));
    const auto result = RunScript(Script(texts));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->of_weights.size(), freed ? 0u : 1u);
    if (freed) continue;
    EXPECT_TRUE(absl::StartsWith(result->of_weights.begin()->first, "kernel "));
  }
}

TEST_F(SessionTest, WeightsReadByTheConstructorAreNoted) {
  for (const int count : {64, 65}) {
    Texts texts = {R"({"do":"begin"})",
                   EmptyText(count),
                   OperatorText("uniform_", "", FloatTensor(1, count)),
                   absl::StrCat(R"({"do":"read","tensor":)", FloatTensor(1, count), "}"),
                   R"({"do":"constructed","state":[]})",
                   OutputText(FloatTensor(1, count))};
    const auto result = RunScript(Script(texts));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->of_weights.count("the host"), count > 64 ? 1u : 0u);
  }
}

// Storages 3: a copy of the input; 4: zeros; 5: their sum by a kernel, which is the copy again.
TEST_F(SessionTest, ReplaysFollowKernelsThatOnlyCopy) {
  const std::string launch =
      absl::StrCat(FloatTensor(3, 4), ",", FloatTensor(4, 4), ",", FloatTensor(5, 4), ",4");
  const auto result = RunForward(
      {EmptyText(4),
       OperatorText("copy_", "", absl::StrCat(FloatTensor(3, 4), ",", FloatTensor(2, 4))),
       EmptyText(4), OperatorText("zero_", "", FloatTensor(4, 4)), EmptyText(4), KernelText("add"),
       LaunchText(0, launch)},
      FloatTensor(5, 4));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const bool follow : {false, true}) {
    ReplayOptions options;
    options.inputs = {at::full({4}, 3, at::kFloat)};
    options.follow_copies = follow;
    const auto replay = session_->ReplayCall(options);
    ASSERT_TRUE(replay.ok()) << replay.status();
    const TagCounts& counts = replay->provenance[0];
    EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kKernel)], follow ? 0 : 16);
    EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kInput)], follow ? 16 : 0);
  }
}

// The kernel adds the weight to itself.
TEST_F(SessionTest, AReplayMayFindWhatTheLastOneLeft) {
  const std::string launch =
      absl::StrCat(FloatTensor(1, 4), ",", FloatTensor(1, 4), ",", FloatTensor(1, 4), ",4");
  ASSERT_TRUE(RunForward({KernelText("add"), LaunchText(0, launch)}, FloatTensor(1, 4)).ok());
  ReplayOptions options;
  options.inputs = {at::full({4}, 1, at::kFloat)};
  const auto first = session_->ReplayCall(options);
  ASSERT_TRUE(first.ok()) << first.status();
  options.keeps_state = true;
  const auto second = session_->ReplayCall(options);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->output.host.equal(first->output.host.mul(2)));
}

TEST_F(SessionTest, AReplayComputesOnOtherInputsInTheSameMemory) {
  const auto result = RunHonest();
  ASSERT_TRUE(result.ok()) << result.status();
  for (const Poison poison : {Poison::kOnes, Poison::kPattern}) {
    const auto replay = ReplayWith(3, std::nullopt, poison);
    ASSERT_TRUE(replay.ok()) << replay.status();
    EXPECT_TRUE(replay->output.host.allclose(result->outputs[0].host.add(2)));
    EXPECT_EQ(replay->run.launches, 1);
    EXPECT_EQ(replay->provenance[0].bytes[static_cast<int>(Tag::kKernel)], 16);
  }
}

TEST_F(SessionTest, AReplayWithoutALaunchShowsPoison) {
  ASSERT_TRUE(RunHonest().ok());
  const auto replay = ReplayWith(1, 0);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->output.host.isnan().all().item<bool>());
  EXPECT_EQ(replay->provenance[0].bytes[static_cast<int>(Tag::kUnwritten)], 16);
}

TEST_F(SessionTest, ReplaysNeedTheRecordedInputs) {
  ASSERT_TRUE(RunHonest().ok());
  ReplayOptions options;
  EXPECT_FALSE(session_->ReplayCall(options).ok());
  options.inputs = {at::ones({5})};
  EXPECT_FALSE(session_->ReplayCall(options).ok());
}

TEST_F(SessionTest, OperatorsThatComputeAreRefusedByName) {
  const auto result = RunForward(
      {EmptyText(4), OperatorText("mm", "",
                                  absl::StrCat(TensorText(2, "float32", "128,128", "0,0"), ",",
                                               TensorText(2, "float32", "128,128", "0,0")))});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(channel_->reply(5)["refused"], "aten::mm computes on 16384 elements");
  ASSERT_EQ(result->counts.refusals.size(), 1u);
  EXPECT_EQ(result->counts.refusals[0].line, 7);
  EXPECT_EQ(result->counts.refusals[0].phase, Phase::kForward);
}

TEST_F(SessionTest, SmallOperatorsHaveABudget) {
  Texts forward = {EmptyText(4)};
  const std::string add =
      OperatorText("add_", "Tensor", absl::StrCat(FloatTensor(2, 4), ",", FloatTensor(1, 4)));
  for (int i = 0; i < 9; ++i) forward.push_back(add);
  ASSERT_TRUE(RunForward(forward).ok());
  EXPECT_EQ(channel_->reply(12)["out"], Json({{"arg", 0}}));  // 64 elements so far
  EXPECT_EQ(channel_->reply(13)["refused"], "aten::add_ computes on 4 elements");
}

TEST_F(SessionTest, InitMayComputeAndIsCounted) {
  Texts texts = Init();
  texts.insert(texts.end() - 1,
               {OperatorText("mul", "Tensor", absl::StrCat(FloatTensor(1, 4), ",2.5")),
                OperatorText("linalg_qr", "", TensorText(1, "float32", "2,2", "2,1"))});
  texts.push_back(OutputText(FloatTensor(2, 4)));
  const auto result = RunScript(Script(texts));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(channel_->reply(3)["out"]["new"]["storage"], 2) << channel_->reply(3);
  EXPECT_EQ(channel_->reply(4)["out"]["tuple"].size(), 2u) << channel_->reply(4);
  EXPECT_EQ(result->of_weights.at("mul"), 4);  // elements
  EXPECT_EQ(result->of_weights.at("linalg_qr"), 4);
}

TEST_F(SessionTest, WhatABenchmarkDoesIsUndone) {
  const std::string scale = LaunchText(1, absl::StrCat(FloatTensor(2, 4), ",4,{\"float\":2.0}"));
  const auto result =
      RunForward({EmptyText(4), KernelText("add"), KernelText("scale"),
                  R"({"do":"bench","begin":true})", scale, scale, EmptyText(8),
                  OperatorText("fill_", "Scalar", absl::StrCat(FloatTensor(1, 4), ",9")),
                  R"({"do":"bench","begin":false})", AddText()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(channel_->reply(12)["ms"].is_number()) << channel_->reply(12);
  EXPECT_TRUE(result->outputs[0].host.lt(2).all().item<bool>());
  EXPECT_TRUE(result->outputs[0].host.ge(1).all().item<bool>());
  const auto replay = ReplayWith(1);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->run.launches, 1);
  EXPECT_TRUE(replay->output.host.equal(result->outputs[0].host));
}

TEST_F(SessionTest, AGraphIsARangeOfCommands) {
  const auto result =
      RunForward({EmptyText(4), KernelText("add"), R"({"do":"graph","begin":true})", AddText(),
                  R"({"do":"graph","begin":false})", R"({"do":"replay","graph":0})"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(channel_->reply(8)["graph"], 0);
  EXPECT_EQ(result->counts.launches, 1);
  EXPECT_EQ(result->provenance[0].bytes[static_cast<int>(Tag::kKernel)], 16);
  const auto replay = ReplayWith(4);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->output.host.allclose(result->outputs[0].host.add(3)));
  EXPECT_TRUE(ReplayWith(4, 0)->output.host.isnan().all().item<bool>());
}

TEST_F(SessionTest, CapturingAloneComputesNothing) {
  const auto result = RunForward({EmptyText(4), KernelText("add"), R"({"do":"graph","begin":true})",
                                  AddText(), R"({"do":"graph","begin":false})"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->outputs[0].host.isnan().all().item<bool>());
}

TEST_F(SessionTest, ReadsAreRecordedAndCompared) {
  const std::string read = absl::StrCat(R"({"do":"read","tensor":)", FloatTensor(2, 1, 3), "}");
  const auto result = RunForward({EmptyText(4), KernelText("add"), read, AddText()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(channel_->replies()[6].payload.size(), 4u);
  EXPECT_EQ(ReplayWith(1)->run.reads_that_differ, 0);
  EXPECT_EQ(ReplayWith(2)->run.reads_that_differ, 1);
}

TEST_F(SessionTest, ForwardReadsFewElements) {
  const std::string large =
      absl::StrCat(R"({"do":"read","tensor":)", TensorText(2, "float32", "17", "0"), "}");
  ASSERT_TRUE(RunForward({EmptyText(4), large}).ok());
  EXPECT_EQ(channel_->reply(5)["refused"], "forward reads 17 elements back");
}

TEST_F(SessionTest, TheReferencesWeightsTakeTheirPlace) {
  options_.state = {{"w", at::full({4}, 7.0, at::kFloat)}, {"other", at::ones({2})}};
  const auto result = RunHonest();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->state_matched, 1);
  EXPECT_EQ(result->state_equal, 0);
  EXPECT_TRUE(result->outputs[0].host.eq(8).all().item<bool>());
}

TEST_F(SessionTest, WhatWasConstantIsFoundUnderAnotherName) {
  Texts texts = Init();
  texts[2] = OperatorText("fill_", "Scalar", FloatTensor(1, 4) + ",1");
  texts.insert(texts.end(), {EmptyText(4), KernelText("add"), AddText(), OutputText()});
  options_.state = {{"wide", at::full({8}, 5.0, at::kFloat)},
                    {"zero", at::full({4}, 6.0, at::kFloat)},
                    {"one", at::full({2, 2}, 7.0, at::kFloat)}};
  options_.varied = {{"one", 1}, {"wide", 1}, {"zero", 0}};
  auto result = RunScript(Script(texts));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->state_matched, 0);
  EXPECT_TRUE(result->outputs[0].host.eq(8).all().item<bool>());
  options_.varied.erase("one");
  result = RunScript(Script(texts));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->outputs[0].host.eq(2).all().item<bool>());
}

TEST_F(SessionTest, EachLiveCallBeginsWithTheSameWeights) {
  options_.calls.push_back(CallOf(2));
  Texts texts = Init();
  const std::string scale = LaunchText(1, absl::StrCat(FloatTensor(1, 4), ",4,0.5"));
  texts.insert(texts.end(), {EmptyText(4), KernelText("add"), KernelText("scale"), scale, AddText(),
                             OutputText()});
  const std::string second = LaunchText(
      0, absl::StrCat(FloatTensor(4, 4), ",", FloatTensor(1, 4), ",", FloatTensor(3, 4), ",4"));
  texts.insert(texts.end(), {scale, second, OutputText()});
  const auto result = RunScript(Script(texts));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->outputs.size(), 2u);
  EXPECT_TRUE(result->outputs[1].host.equal(result->outputs[0].host.add(1)));
  EXPECT_TRUE(ReplayWith(1)->output.host.equal(result->outputs[0].host));
}

TEST_F(SessionTest, FreedMemoryIsGoneAndComesBackInReplays) {
  std::string add = AddText();
  add.insert(add.size() - 1, R"(,"free":[2])");
  const auto result = RunForward({EmptyText(4), KernelText("add"), add});
  ASSERT_TRUE(result.ok()) << result.status();
  const auto replay = ReplayWith(1);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->output.host.equal(result->outputs[0].host));
  EXPECT_FALSE(RunForward({EmptyText(4), KernelText("add"), add, AddText()}).ok());
}

TEST_F(SessionTest, TablesOfAddressesReachTheCandidatesStorages) {
  at::Tensor table = at::ones({3}, at::kLong);
  const Texts init = Init();
  std::vector<Frame> frames = Script(init);
  ASSERT_TRUE(RunHonest().ok());
  const auto address = [&](size_t reply, const char* field) {
    const Json json = channel_->reply(reply);
    return (json.contains("out") ? json["out"] : json["args"][0])["new"][field].get<int64_t>();
  };
  const int64_t addresses[] = {address(3, "address"), address(1, "address"), address(4, "address")};
  for (const Frame& frame : Script({EmptyText(4), EmptyText(3, "int64")})) frames.push_back(frame);
  frames.push_back({OperatorText("copy_", "",
                                 absl::StrCat(TensorText(4, "int64", "3", "1"),
                                              R"(,{"host":{"dtype":"int64","shape":[3],"at":0}})")),
                    std::string(reinterpret_cast<const char*>(addresses), sizeof(addresses))});
  for (const Frame& frame : Script(
           {KernelText("table"),
            LaunchText(0, absl::StrCat(TensorText(4, "int64", "3", "1"), ",4")), OutputText()})) {
    frames.push_back(frame);
  }
  const auto result = RunScript(frames);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->provenance[0].bytes[static_cast<int>(Tag::kKernel)], 16)
      << channel_->replies().back().header;
}

TEST_F(SessionTest, AfterAWildAccessNothingWorks) {
  const auto result = RunForward(
      {EmptyText(4), KernelText("wild"), AddText(), OperatorText("zero_", "", FloatTensor(3, 4))});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(absl::StrContains(channel_->reply(6)["error"].get<std::string>(), "out of bounds"));
  EXPECT_TRUE(absl::StrContains(channel_->reply(7)["error"].get<std::string>(), "out of bounds"));
  EXPECT_EQ(result->counts.kernel_errors.size(), 1u);
}

TEST_F(SessionTest, ACandidateMayFail) {
  const auto result = RunScript(
      Script({R"({"do":"begin"})",
              R"({"do":"failed","phase":"forward","kind":"ValueError","text":"no","line":3})"}));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failure->kind, "ValueError");
  EXPECT_EQ(result->failure->phase, "init");  // where it really was
  EXPECT_EQ(result->failure->line, 3);
}

TEST_F(SessionTest, HostileMessagesEndTheSession) {
  const std::string ref = FloatTensor(2, 4);
  const std::string texts[] = {
      "",
      "[]",
      "{\"do\":1}",
      "{\"do\":\"unknown\"}",
      "{\"do\":\"begin\"}",
      "{\"do\":\"constructed\",\"state\":[]}",
      "{\"do\":\"op\"}",
      OperatorText("add", "Tensor", FloatTensor(99, 4)),
      OperatorText("add", "Tensor", FloatTensor(2, 5)),
      OperatorText("uniform_", "", ref, R"(["generator",{"generator":5}])"),
      LaunchText(3, ref),
      LaunchText(0, "\"text\""),
      R"({"do":"launch","kernel":0,"grid":[-1],"args":[]})",
      R"({"do":"launch","kernel":0,"grid":[65536,65535,2],"args":[]})",
      R"({"do":"bench","begin":false})",
      R"({"do":"graph","begin":false})",
      R"({"do":"replay","graph":0})",
      R"({"do":"seed","seed":"x"})",
      R"({"do":"generator","free":[77]})",
      OutputText(FloatTensor(3, 400)),
  };
  for (const std::string& text : texts) {
    Texts script = Init();
    script.insert(script.end(), {EmptyText(4), KernelText("add"), text});
    const auto result = RunScript(Script(script));
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument)
        << text << result.status();
    EXPECT_TRUE(absl::StartsWith(result.status().message(), "the candidate's process sent "))
        << text << result.status();
  }
}

TEST_F(SessionTest, LimitsHold) {
  options_.limits.max_forward_commands = 3;
  EXPECT_EQ(RunForward({EmptyText(4), EmptyText(4), EmptyText(4), EmptyText(4)}).status().code(),
            absl::StatusCode::kResourceExhausted);
  options_.limits = SessionLimits();
  options_.limits.max_memory_bytes = 1 << 20;
  ASSERT_TRUE(RunForward({EmptyText(4), EmptyText(1 << 20)}).ok());
  EXPECT_TRUE(absl::StrContains(channel_->reply(5)["error"].get<std::string>(), "out of memory"));
}

TEST_F(SessionTest, WhatIsRecordedAndReturnedIsBounded) {
  std::string many = FloatTensor(2, 4);
  for (int i = 0; i < 999; ++i) absl::StrAppend(&many, ",", FloatTensor(2, 4));
  options_.limits.max_memory_bytes = 1 << 12;
  EXPECT_EQ(RunForward({EmptyText(4)}, "[" + many + "]").status().code(),
            absl::StatusCode::kResourceExhausted);
  options_.limits = SessionLimits();
  options_.limits.max_recorded_values = 1'500;
  const std::string join = OperatorText("cat", "", "[" + many + "]");
  EXPECT_TRUE(RunForward({EmptyText(4), join}).ok());
  EXPECT_EQ(RunForward({EmptyText(4), join, join}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(SessionTest, AnEndlessKernelMeetsTheDeadline) {
  options_.deadline = absl::Now() - absl::Seconds(1);
  EXPECT_EQ(RunHonest().status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(SessionTest, TalksOverASocket) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  std::thread client([&] {
    SocketChannel channel(sockets[1]);
    Texts texts = Init();
    texts.insert(texts.end(), {EmptyText(4), KernelText("add"), AddText(), OutputText()});
    for (const Frame& frame : Script(texts)) {
      if (!channel.Send(frame, options_.deadline).ok()) break;
      if (!channel.Receive(options_.deadline).ok()) break;
    }
    close(sockets[1]);
  });
  session_ = std::make_unique<Session>(options_, arena_.get(), &compiler_);
  SocketChannel channel(sockets[0]);
  const auto result = session_->Run(channel);
  client.join();
  close(sockets[0]);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs.size(), 1u);
}

}  // namespace
}  // namespace tritonrl::device
