// Results, tags and generators of single commands.
#include "exec/device/device.h"

#include <ATen/ops/ones.h>

#include "absl/strings/str_cat.h"
#include "exec/device/testing/device_fixture.h"

namespace tritonrl::device {
namespace {

class DeviceTest : public DeviceFixture {
 protected:
  void Mark(const std::string& tensor, Tag tag) {
    device_->memory().Fill(Ref(tensor), static_cast<uint8_t>(tag));
  }
  absl::Status Init(const OperatorCall& call) {
    const auto bound = Bind(call);
    if (!bound.ok()) return bound.status();
    return RunIn(Phase::kInit, *bound);
  }
};

TEST_F(DeviceTest, CopiesCarryTags) {
  const int x = Make(4);
  const int y = Make(4);
  Mark(FloatTensor(x, 2), Tag::kKernel);
  Mark(FloatTensor(x, 2, 2), Tag::kInput);
  ASSERT_TRUE(Forward(Call("copy_", "", FloatTensor(y, 4) + "," + FloatTensor(x, 4))).ok());
  EXPECT_EQ(Bytes(FloatTensor(y, 4), Tag::kKernel), 8);
  EXPECT_EQ(Bytes(FloatTensor(y, 4), Tag::kInput), 8);
}

TEST_F(DeviceTest, CastsAreMarked) {
  const int x = Make(4);
  const int y = Make(4, at::kDouble);
  const std::string doubles = TensorText(y, "float64", "4", "1");
  Mark(FloatTensor(x, 4), Tag::kKernel);
  ASSERT_TRUE(Forward(Call("copy_", "", doubles + "," + FloatTensor(x, 4))).ok());
  EXPECT_EQ(Bytes(doubles, Tag::kKernel), 32);
  EXPECT_EQ(device_->memory().Count(Ref(doubles)).converted, 32);
}

TEST_F(DeviceTest, JoinsCarryTags) {
  const int x = Make(4);
  const int y = Make(2);
  Mark(FloatTensor(x, 4), Tag::kKernel);
  Mark(FloatTensor(y, 2), Tag::kInput);
  ASSERT_TRUE(Forward(Call("cat", "",
                           "[" + FloatTensor(x, 4) + "," + FloatTensor(y, 2) +
                               R"(,{"host":{"dtype":"float32","shape":[3],"at":0}}])",
                           "", std::string(12, 'x')))
                  .ok());
  const TagCounts counts = device_->memory().Count(made_[0]);
  EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kKernel)], 16);
  EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kInput)], 8);
  EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kHost)], 12);
}

TEST_F(DeviceTest, FillsDrawsAndSmallOperatorsHaveTheirTags) {
  const int x = Make(4);
  ASSERT_TRUE(Forward(Call("zero_", "", FloatTensor(x, 4))).ok());
  EXPECT_EQ(Bytes(FloatTensor(x, 4), Tag::kConstant), 16);
  ASSERT_TRUE(Forward(Call("normal_", "", FloatTensor(x, 2))).ok());
  EXPECT_EQ(Bytes(FloatTensor(x, 4), Tag::kRandom), 8);
  ASSERT_TRUE(Forward(Call("add_", "Tensor", FloatTensor(x, 1) + ",1")).ok());
  EXPECT_EQ(Bytes(FloatTensor(x, 4), Tag::kSmall), 4);
}

TEST_F(DeviceTest, FillsOverKernelBytesAreCounted) {
  const int x = Make(4);
  Mark(FloatTensor(x, 1, 3), Tag::kKernel);
  ASSERT_TRUE(Forward(Call("zero_", "", FloatTensor(x, 3))).ok());
  EXPECT_EQ(device_->traffic().fills_over_kernel_bytes, 0);
  ASSERT_TRUE(Forward(Call("zero_", "", FloatTensor(x, 4))).ok());
  EXPECT_EQ(device_->traffic().fills_over_kernel_bytes, 1);
  EXPECT_EQ(device_->traffic().neutral_bytes, 28);
}

TEST_F(DeviceTest, OutArgumentsOfAnotherShapeMove) {
  const int x = Make(4);
  const int out = Make(4);
  const OperatorCall call =
      Call("exp", "out", FloatTensor(x, 4), "[\"out\"," + FloatTensor(out, 4) + "]");
  View(FloatTensor(x, 4)).zero_();
  ASSERT_TRUE(Init(call).ok());
  EXPECT_TRUE(made_.empty());
  EXPECT_TRUE(View(FloatTensor(out, 4)).eq(1).all().item<bool>());
  const OperatorCall other =
      Call("exp", "out", FloatTensor(x, 3), "[\"out\"," + FloatTensor(out, 4) + "]");
  ASSERT_TRUE(Init(other).ok());
  ASSERT_EQ(made_.size(), 1u);
  EXPECT_EQ(made_[0].shape, std::vector<int64_t>({3}));
}

TEST_F(DeviceTest, PythonNumbersDoNotPromote) {
  const int x = Make(4, at::kHalf);
  ASSERT_TRUE(Init(Call("mul", "Tensor", TensorText(x, "float16", "4", "1") + ",2.5")).ok());
  EXPECT_EQ(made_[0].dtype, at::kHalf);
}

TEST_F(DeviceTest, GeneratorsDrawAsTorchsDo) {
  const int x = Make(8);
  device_->generators().Seed(0, 3);
  ASSERT_TRUE(Forward(Call("normal_", "", FloatTensor(x, 8))).ok());
  Generators own(2);
  own.Seed(0, 3);
  const at::Tensor expected = at::ones({8}).normal_(0, 1, own.Get(0));
  EXPECT_TRUE(View(FloatTensor(x, 8)).equal(expected));
  ASSERT_TRUE(device_->generators().Create().ok());
  device_->generators().Seed(1, 3);
  ASSERT_TRUE(
      Forward(Call("normal_", "", FloatTensor(x, 8), R"(["generator",{"generator":1}])")).ok());
  EXPECT_TRUE(View(FloatTensor(x, 8)).equal(expected));
}

TEST_F(DeviceTest, OperatorsWithoutGeneratorUseTheDefaultOne) {
  rules_.also_allowed = {"native_dropout"};
  const int x = Make(100);
  ASSERT_TRUE(Forward(Call("fill_", "Scalar", FloatTensor(x, 100) + ",1")).ok());
  const OperatorCall dropout = Call("native_dropout", "", FloatTensor(x, 100) + ",0.5,true");
  device_->generators().Seed(0, 3);
  ASSERT_TRUE(Forward(dropout).ok());
  const at::Tensor first = device_->memory().View(made_[0]).clone();
  ASSERT_TRUE(Forward(dropout).ok());
  EXPECT_FALSE(device_->memory().View(made_[0]).equal(first));
  device_->generators().Seed(0, 3);
  ASSERT_TRUE(Forward(dropout).ok());
  EXPECT_TRUE(device_->memory().View(made_[0]).equal(first));
}

TEST_F(DeviceTest, BareCommandsPoisonAndTagNothing) {
  const int x = Make(4);
  View(FloatTensor(x, 4)).fill_(3);
  const OperatorCall join =
      Call("cat", "", absl::StrCat("[", FloatTensor(x, 4), ",", FloatTensor(x, 4), "],0"));
  ASSERT_TRUE(Forward(join).ok());
  device_->memory().Fill(made_[0], static_cast<uint8_t>(Tag::kInput));
  View(FloatTensor(x, 4)).fill_(5);
  device_->set_mode(RunMode::kBare);
  ASSERT_TRUE(device_->Revive(x).ok());
  const auto bound = Bind(join);
  ASSERT_TRUE(bound.ok());
  ASSERT_TRUE(device_->RunOperator(*bound, Phase::kForward, /*again=*/true, made_).ok());
  device_->set_mode(RunMode::kFull);
  EXPECT_TRUE(device_->memory().View(made_[0]).eq(5).all().item<bool>());
  EXPECT_EQ(device_->memory().Count(made_[0]).bytes[static_cast<int>(Tag::kInput)], 32);
}

TEST_F(DeviceTest, AReplayedResultMayStayInMemoryOfTorch) {
  const int x = Make(4);
  View(FloatTensor(x, 4)).fill_(3);
  const OperatorCall copy = Call("clone", "", FloatTensor(x, 4));
  ASSERT_TRUE(Forward(copy).ok());
  const auto bound = Bind(copy);
  ASSERT_TRUE(bound.ok());
  View(FloatTensor(x, 4)).fill_(5);
  device_->set_mode(RunMode::kTimed);
  ASSERT_TRUE(device_->RunOperator(*bound, Phase::kForward, /*again=*/true, made_).ok());
  const Storage* const storage = device_->memory().Find(made_[0].storage);
  EXPECT_NE(storage->data, storage->place);
  EXPECT_TRUE(device_->memory().View(made_[0]).eq(5).all().item<bool>());
  device_->set_mode(RunMode::kFull);
  ASSERT_TRUE(device_->Revive(made_[0].storage).ok());  // poisoned, at its place
  EXPECT_EQ(storage->data, storage->place);
  EXPECT_TRUE(device_->memory().View(made_[0]).isnan().all().item<bool>());
}

TEST_F(DeviceTest, AResultWhoseAddressIsANumberStaysAtItsPlace) {
  const int x = Make(4);
  const OperatorCall copy = Call("clone", "", FloatTensor(x, 4));
  ASSERT_TRUE(Forward(copy).ok());
  Storage* const storage = device_->memory().Find(made_[0].storage);
  LaunchCommand launch;
  launch.arguments = {
      Value::Integer(static_cast<int64_t>(reinterpret_cast<uint64_t>(storage->data)))};
  ASSERT_EQ(device_->StoragesOf(launch).size(), 1);
  device_->set_mode(RunMode::kTimed);
  ASSERT_TRUE(device_->RunOperator(*Bind(copy), Phase::kForward, /*again=*/true, made_).ok());
  device_->set_mode(RunMode::kFull);
  EXPECT_EQ(storage->data, storage->place);
}

TEST_F(DeviceTest, StoresAreSeen) {
  for (int i = 0; i < 3; ++i) Make(4);
  ASSERT_TRUE(device_->kernels().Add({.name = "k"}, "add").ok());
  View(FloatTensor(1, 4)).fill_(1);
  View(FloatTensor(2, 4)).fill_(1);
  View(FloatTensor(3, 4)).fill_(2);  // what the kernel stores
  LaunchCommand launch;
  launch.arguments =
      ParseValue(*ParseJson(absl::StrCat("[", FloatTensor(1, 4), ",", FloatTensor(2, 4), ",",
                                         FloatTensor(3, 4), ",3]")),
                 "")
          ->items;
  ASSERT_TRUE(device_->CheckLaunch(launch).ok());
  ASSERT_TRUE(device_->RunLaunch(launch).ok());
  EXPECT_EQ(Bytes(FloatTensor(3, 4), Tag::kKernel), 12);
  EXPECT_EQ(Bytes(FloatTensor(1, 4), Tag::kUnwritten), 16);
  EXPECT_EQ(device_->traffic().kernel_bytes, 48);
}

}  // namespace
}  // namespace tritonrl::device
