#include "exec/device/session.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/device/testing/session_fixture.h"

namespace tritonrl::device {
namespace {

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

TEST_F(SessionTest, TheReferencesWeightsTakeTheirPlace) {
  options_.state = {{"w", at::full({4}, 7.0, at::kFloat)}, {"other", at::ones({2})}};
  const auto result = RunHonest();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->state_matched, 1);
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

TEST_F(SessionTest, ACandidateMayFail) {
  const auto result = RunScript(
      Script({R"({"do":"begin"})",
              R"({"do":"failed","phase":"forward","kind":"ValueError","text":"no","line":3})"}));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failure->kind, "ValueError");
  EXPECT_EQ(result->failure->phase, "init");  // where it really was
  EXPECT_EQ(result->failure->line, 3);
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
