#include "exec/device/init_operators.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/device/testing/device_fixture.h"

namespace tritonrl::device {
namespace {

class InitOperatorsTest : public DeviceFixture {
 protected:
  absl::Status Init(const OperatorCall& call) {
    const auto bound = Bind(call);
    if (!bound.ok()) return bound.status();
    const absl::Status allowed = CheckInit(*bound, device_->memory(), 1 << 20);
    if (!allowed.ok()) return allowed;
    return RunIn(Phase::kInit, *bound);
  }
};

TEST_F(InitOperatorsTest, InitialisersOfTorchRun) {
  const int x = Make(64);
  const std::string w = TensorText(x, "float32", "8,8", "8,1");
  EXPECT_TRUE(Init(Call("uniform_", "", w + ",-0.5,0.5")).ok());
  EXPECT_TRUE(Init(Call("erfinv_", "", w)).ok());
  EXPECT_TRUE(Init(Call("mul_", "Tensor", w + ",1.4")).ok());
  EXPECT_TRUE(Init(Call("clamp_", "", w, "[\"min\",-2.0],[\"max\",2.0]")).ok());
  EXPECT_TRUE(Init(Call("linalg_qr", "", w)).ok());
  EXPECT_EQ(made_.size(), 2u);
  EXPECT_TRUE(Init(Call("linalg_vector_norm", "", w + ",2,[1],true")).ok());
  EXPECT_TRUE(
      Init(Call("index", "Tensor", w + R"(,[null,{"host":{"dtype":"int64","shape":[1],"at":0}}])",
                "", std::string(8, '\0')))
          .ok());
  EXPECT_TRUE(Init(Call("nonzero", "", w)).ok());
  EXPECT_TRUE(Init(Call("max", "dim", w + ",1")).ok());
}

TEST_F(InitOperatorsTest, OthersAreRefusedByName) {
  const int x = Make(64);
  const auto refused = [&](const OperatorCall& call, absl::string_view text) {
    const absl::Status status = Init(call);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  };
  refused(Call("convolution", "", FloatTensor(x, 4)), "is not an operator of constructors");
  refused(Call("from_file", "", "\"/etc/passwd\""), "aten::from_file is never run");
  refused(Call("_index_put_impl_", "", FloatTensor(x, 4) + ",[],1"), "is never run");
  refused(Call("resize_", "", FloatTensor(x, 4) + ",[1000]"), "is never run");
}

TEST_F(InitOperatorsTest, IntegerDivisionsThatTrapAreErrors) {
  const int x = Make(4, at::kLong);
  const std::string ints = TensorText(x, "int64", "4", "1");
  device_->memory().View(Ref(ints)).fill_(INT64_MIN);
  EXPECT_FALSE(Init(Call("floor_divide", "", ints + ",-1")).ok());
  EXPECT_FALSE(Init(Call("remainder", "Scalar", ints + ",0")).ok());
  EXPECT_FALSE(
      Init(Call("div_", "Tensor_mode", ints + ",-1", "[\"rounding_mode\",\"trunc\"]")).ok());
  EXPECT_FALSE(
      Init(Call("floor_divide", "", ints + R"(,{"host":{"dtype":"int64","shape":[1],"at":0}})", "",
                std::string(8, '\xFF')))
          .ok());
  EXPECT_TRUE(Init(Call("floor_divide", "", ints + ",2")).ok());
  EXPECT_TRUE(Init(Call("div", "Tensor", ints + ",-1")).ok());
}

TEST_F(InitOperatorsTest, RangesThatTrapAreErrors) {
  const auto range = [&](const std::string& numbers, const std::string& dtype) {
    return Init(Call("arange", "start_step", numbers,
                     "[\"dtype\"," + (dtype.empty() ? "null" : "{\"dtype\":\"" + dtype + "\"}") +
                         "],[\"device\",{\"device\":\"cuda\"}]"));
  };
  EXPECT_FALSE(range("0,8,0.5", "int64").ok());
  EXPECT_FALSE(range("0,8,0", "").ok());
  EXPECT_FALSE(range("-9223372036854775808,0,-1", "int64").ok());
  EXPECT_TRUE(range("0,8,2", "").ok());
  EXPECT_TRUE(range("0.0,1.0,0.25", "").ok());
  EXPECT_TRUE(range("0,1,0.25", "float32").ok());
}

TEST_F(InitOperatorsTest, ResultsMustFit) {
  const int x = Make(4);
  EXPECT_EQ(Init(Call("constant_pad_nd", "", FloatTensor(x, 4) + ",[0,1000000000000],0")).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Init(Call("nonzero", "", TensorText(x, "float32", "1048576", "0"))).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(InitOperatorsTest, FactoriesMustFit) {
  const std::string options = R"(["dtype",{"dtype":"int64"}],["device",{"device":"cuda"}])";
  for (const OperatorCall& call :
       {Call("randperm", "", "1000000000000", options),
        Call("eye", "m", "1000000,1000000", options),
        Call("tril_indices", "", "1000000,1000000", options),
        Call("linspace", "", "0,1,1000000000000",
             R"(["dtype",{"dtype":"float32"}],["device",{"device":"cuda"}])")}) {
    EXPECT_EQ(Init(call).code(), absl::StatusCode::kResourceExhausted) << call.name;
  }
  EXPECT_TRUE(Init(Call("randperm", "", "100", options)).ok());
  EXPECT_TRUE(Init(Call("tril_indices", "", "10,10", options)).ok());
}

TEST_F(InitOperatorsTest, WeightNormsFit) {
  const int v = Make(64);
  const int g = Make(8);
  const std::string weight = TensorText(v, "float32", "8,8", "8,1");
  const auto norm = [&](const std::string& scale, int axis) {
    return Init(Call("_weight_norm_interface", "", absl::StrCat(weight, ",", scale, ",", axis)));
  };
  EXPECT_TRUE(norm(TensorText(g, "float32", "8,1", "1,1"), 0).ok());
  EXPECT_FALSE(norm(FloatTensor(g, 1), 0).ok());
  EXPECT_FALSE(norm(FloatTensor(g, 8), 2).ok());
  EXPECT_FALSE(norm(FloatTensor(g, 8), -1).ok());
}

TEST_F(InitOperatorsTest, ErrorsOfTorchAreOneLine) {
  const int x = Make(4);
  const absl::Status status = Init(Call("mm", "", FloatTensor(x, 4) + "," + FloatTensor(x, 4)));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
}

}  // namespace
}  // namespace tritonrl::device
