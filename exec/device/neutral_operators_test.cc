#include "exec/device/neutral_operators.h"

#include <ATen/ops/arange.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/device/testing/device_fixture.h"

namespace tritonrl::device {
namespace {

class NeutralOperatorsTest : public DeviceFixture {
 protected:
  absl::Status Copy(const std::string& target, const std::string& source,
                    const std::string& payload = "") {
    return Forward(Call("copy_", "", target + "," + source, "", payload));
  }
  void ExpectRefused(const absl::Status& status, absl::string_view text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  }
};

std::string Doubles(int storage, int count) {
  return TensorText(storage, "float64", absl::StrCat(count), "1");
}

TEST_F(NeutralOperatorsTest, ComputingOnManyElementsIsRefused) {
  const int x = Make(1 << 20);
  ExpectRefused(Forward(Call("mm", "",
                             TensorText(x, "float32", "1024,1024", "1024,1") + "," +
                                 TensorText(x, "float32", "1024,1024", "1024,1"))),
                "aten::mm computes on 1048576 elements");
  ExpectRefused(Forward(Call("relu_", "", FloatTensor(x, 17))), "computes on 17 elements");
  ExpectRefused(Forward(Call("flip", "", FloatTensor(x, 17) + ",[0]")), "aten::flip computes");
}

TEST_F(NeutralOperatorsTest, SmallOperatorsMayNotMakeLargeTensors) {
  const int x = Make(4);
  ExpectRefused(Forward(Call("constant_pad_nd", "", FloatTensor(x, 4) + ",[0,1000],0")),
                "aten::constant_pad_nd computes");
  EXPECT_TRUE(Forward(Call("sum", "", FloatTensor(x, 4))).ok());
  EXPECT_EQ(budget_.small_elements, 4);
}

TEST_F(NeutralOperatorsTest, RangesBetweenTensorsAreRefused) {
  const int x = Make(2);
  const std::string ends = FloatTensor(x, 1) + "," + FloatTensor(x, 1, 1);
  ExpectRefused(Forward(Call("linspace", "Tensor_Tensor", ends + ",3")), "aten::linspace computes");
  ExpectRefused(Forward(Call("logspace", "Tensor_Tensor", ends + ",3")), "aten::logspace computes");
}

TEST_F(NeutralOperatorsTest, SmallCastsHaveABudgetTogether) {
  const int f = Make(16);
  const int i = Make(16, at::kInt);
  const std::string ints = TensorText(i, "int32", "16", "1");
  for (int k = 0; k < 4; ++k) EXPECT_TRUE(Copy(ints, FloatTensor(f, 16)).ok());
  ExpectRefused(Copy(ints, FloatTensor(f, 16)), "a cast from float32 to int32 rounds");
  EXPECT_TRUE(Copy(FloatTensor(f, 16), ints).ok());
}

TEST_F(NeutralOperatorsTest, InternalOperatorsAreNeverRun) {
  const int x = Make(4);
  ExpectRefused(Forward(Call("set_", "source_Tensor", FloatTensor(x, 4) + "," + FloatTensor(x, 4))),
                "aten::set_ is never run");
  ExpectRefused(Forward(Call("_local_scalar_dense", "", FloatTensor(x, 1))), "is never run");
  ExpectRefused(Forward(Call("from_file", "", "\"/etc/passwd\"")), "aten::from_file is never run");
}

TEST_F(NeutralOperatorsTest, FloatsAreNotRoundedToIntegers) {
  const int f = Make(17);
  const int i = Make(17, at::kInt);
  const std::string ints = TensorText(i, "int32", "17", "1");
  ExpectRefused(Copy(ints, FloatTensor(f, 17)), "a cast from float32 to int32 rounds");
  EXPECT_TRUE(Copy(TensorText(i, "int32", "16", "1"), FloatTensor(f, 16)).ok());
  EXPECT_TRUE(Copy(FloatTensor(f, 17), ints).ok());
}

TEST_F(NeutralOperatorsTest, CastsThatChangeIntegersAreRefused) {
  const int i = Make(17, at::kInt);
  const int b = Make(17, at::kByte);
  const std::string ints = TensorText(i, "int32", "17", "1");
  const std::string bytes = TensorText(b, "uint8", "17", "1");
  at::Tensor view = View(ints);
  view.fill_(255);
  EXPECT_TRUE(Copy(bytes, ints).ok());
  view[3] = 256;
  ExpectRefused(Copy(bytes, ints), "a cast from int32 to uint8 changes values");
  EXPECT_TRUE(Copy(ints, bytes).ok());
}

TEST_F(NeutralOperatorsTest, CastsToBoolCompareWithZero) {
  const int f = Make(17);
  const int m = Make(17, at::kBool);
  const std::string mask = TensorText(m, "bool", "17", "1");
  at::Tensor view = View(FloatTensor(f, 17));
  view.fill_(1);
  view[3] = 0;
  EXPECT_TRUE(Copy(mask, FloatTensor(f, 17)).ok());
  view[4] = 0.5;
  ExpectRefused(Copy(mask, FloatTensor(f, 17)), "a cast from float32 to bool changes values");
}

TEST_F(NeutralOperatorsTest, BitsOfAnotherTypeAreNotCast) {
  const int f = Make(17);
  const int h = Make(17, at::kHalf);
  const int d = Make(17, at::kDouble);
  ExpectRefused(Copy(Doubles(d, 17), TensorText(f, "int32", "17", "1")),
                "a cast from int32, bits of float32, computes");
  ExpectRefused(Copy(Doubles(d, 17), TensorText(h, "bfloat16", "17", "1")),
                "bits of float16, computes");
  EXPECT_TRUE(Copy(Doubles(d, 17), TensorText(h, "float16", "17", "1")).ok());
  // The bits themselves may be copied.
  EXPECT_TRUE(Copy(TensorText(d, "int32", "17", "1"), TensorText(f, "int32", "17", "1")).ok());
}

TEST_F(NeutralOperatorsTest, ComplexNumbersKeepTheirParts) {
  const int c = Make(17, at::kComplexFloat);
  const int f = Make(17);
  ExpectRefused(Copy(FloatTensor(f, 17), TensorText(c, "complex64", "17", "1")), "drops a part");
  std::string conjugate = TensorText(c, "complex64", "17", "1");
  conjugate.insert(conjugate.size() - 2, ",\"conj\":true");
  const int to = Make(17, at::kComplexFloat);
  ExpectRefused(Copy(TensorText(to, "complex64", "17", "1"), conjugate), "conjugate view computes");
}

TEST_F(NeutralOperatorsTest, CopiesMayNotOverlap) {
  const int x = Make(64);
  View(FloatTensor(x, 64)).copy_(at::arange(64));
  ExpectRefused(Copy(FloatTensor(x, 4, 1), FloatTensor(x, 4)), "overlap");
  ExpectRefused(Copy(TensorText(x, "float32", "4", "0"), FloatTensor(x, 4, 8)), "overlaps itself");
  ExpectRefused(
      Copy(TensorText(x, "float32", "4,4", "1,1"), TensorText(x, "float32", "4,4", "4,1", 32)),
      "overlaps itself");
  EXPECT_TRUE(Copy(FloatTensor(x, 4), FloatTensor(x, 4, 4)).ok());
  EXPECT_TRUE(Copy(FloatTensor(x, 4), FloatTensor(x, 4)).ok());
  // Even elements from odd ones.
  EXPECT_TRUE(
      Copy(TensorText(x, "float32", "32", "2"), TensorText(x, "float32", "32", "2", 1)).ok());
  EXPECT_EQ(View(FloatTensor(x, 1, 62)).item<float>(), 63);
}

TEST_F(NeutralOperatorsTest, JoinedTensorsHaveOneType) {
  const int f = Make(20);
  const int d = Make(20, at::kDouble);
  const std::string mixed = "[" + FloatTensor(f, 20) + "," + Doubles(d, 20) + "]";
  ExpectRefused(Forward(Call("cat", "", mixed)), "aten::cat computes on 20 elements");
  const int g = Make(20);
  const std::string same = "[" + FloatTensor(f, 20) + "," + FloatTensor(g, 10) + "]";
  ASSERT_TRUE(Forward(Call("cat", "", same)).ok());
  EXPECT_EQ(made_[0].shape, std::vector<int64_t>({30}));
}

TEST_F(NeutralOperatorsTest, PartsOfOneTensorAreNotPutInAnotherOrder) {
  const int f = Make(40);
  const std::string rolled = "[" + FloatTensor(f, 20, 20) + "," + FloatTensor(f, 20) + "]";
  ExpectRefused(Forward(Call("cat", "", rolled)),
                "aten::cat puts parts of one tensor in another order");
  const std::string few = "[" + FloatTensor(f, 8, 8) + "," + FloatTensor(f, 8) + "]";
  EXPECT_TRUE(Forward(Call("cat", "", few)).ok());
}

TEST_F(NeutralOperatorsTest, UploadsAreFew) {
  const int x = Make(2000);
  const std::string host = R"({"host":{"dtype":"float32","shape":[1025],"at":0}})";
  ExpectRefused(Copy(FloatTensor(x, 1025), host, std::string(4100, 'x')),
                "forward sends 4100 bytes from the host");
}

TEST_F(NeutralOperatorsTest, FactoriesMayNotExhaustMemory) {
  const std::string options = R"(["dtype",{"dtype":"float32"}],["device",{"device":"cuda"}])";
  EXPECT_EQ(Forward(Call("arange", "", "1000000000000", options)).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Forward(Call("empty", "memory_format", "[1000000000000]", options)).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(Forward(Call("empty", "memory_format", "[4611686018427387904,4]", options)).ok());
  EXPECT_FALSE(Forward(Call("empty", "memory_format", "[-1]", options)).ok());
  ASSERT_TRUE(Forward(Call("arange", "", "10", options)).ok());
  EXPECT_EQ(device_->memory().View(made_[0])[9].item<float>(), 9);
}

TEST_F(NeutralOperatorsTest, MasksAreDrawnOnlyAsTheReferenceDoes) {
  const int x = Make(100);
  const OperatorCall dropout = Call("native_dropout", "", FloatTensor(x, 100) + ",0.5,true");
  const OperatorCall scaling = Call("mul_", "Scalar", FloatTensor(x, 100) + ",2");
  ASSERT_TRUE(Forward(Call("fill_", "Scalar", FloatTensor(x, 100) + ",1")).ok());
  ExpectRefused(Forward(dropout), "aten::native_dropout computes");
  ExpectRefused(Forward(scaling), "aten::mul_ computes");
  rules_.also_allowed = {"native_dropout", "bernoulli_", "mul_"};
  ASSERT_TRUE(Forward(dropout).ok());
  EXPECT_EQ(made_.size(), 2u);
  ASSERT_TRUE(Forward(Call("bernoulli_", "float", FloatTensor(x, 100) + ",0.5")).ok());
  ASSERT_TRUE(Forward(scaling).ok());
  EXPECT_EQ(Bytes(FloatTensor(x, 100), Tag::kRandom), 400);
}

TEST_F(NeutralOperatorsTest, WhatIsNoMaskIsAKernelsWork) {
  const int x = Make(100);
  rules_.also_allowed = {"native_dropout", "bernoulli_", "mul_", "mul"};
  ExpectRefused(Forward(Call("native_dropout", "", FloatTensor(x, 100) + ",0.5,true")),
                "aten::native_dropout computes");
  const int mask = Make(100);
  ASSERT_TRUE(Forward(Call("bernoulli_", "float", FloatTensor(mask, 100) + ",0.5")).ok());
  ExpectRefused(Forward(Call("mul", "Tensor", FloatTensor(mask, 100) + "," + FloatTensor(x, 100))),
                "aten::mul computes");
  const int p = Make(100);
  ExpectRefused(
      Forward(Call("bernoulli_", "Tensor", FloatTensor(x, 100) + "," + FloatTensor(p, 100))),
      "computes");
}

TEST_F(NeutralOperatorsTest, WrongCallsAreErrors) {
  const int x = Make(4);
  EXPECT_FALSE(Forward(Call("no_such_operator", "", "")).ok());
  EXPECT_FALSE(Forward(Call("fill_", "Scalar", "")).ok());
  EXPECT_FALSE(Forward(Call("fill_", "Scalar", FloatTensor(x, 4) + ",\"one\"")).ok());
  EXPECT_FALSE(Forward(Call("fill_", "Scalar", FloatTensor(x, 4) + ",1,2,3")).ok());
  EXPECT_FALSE(Forward(Call("fill_", "Scalar", FloatTensor(x, 4) + ",1", "[\"value\",1]")).ok());
  EXPECT_FALSE(Forward(Call("copy_", "", FloatTensor(x, 4) + "," + FloatTensor(x, 3))).ok());
  EXPECT_FALSE(Forward(Call("uniform_", "", FloatTensor(x, 4) + ",2.0,1.0")).ok());
}

}  // namespace
}  // namespace tritonrl::device
