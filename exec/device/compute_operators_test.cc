#include "exec/device/compute_operators.h"

#include "absl/strings/match.h"
#include "exec/device/testing/device_fixture.h"

namespace tritonrl::device {
namespace {

class ComputeOperatorsTest : public DeviceFixture {
 protected:
  void SetUp() override {
    DeviceFixture::SetUp();
    rules_.may_compute = true;
  }
  // Floating point operations of all calls of an operator.
  double Flops(const std::string& name) { return device_->traffic().operators[name].flops; }
};

TEST_F(ComputeOperatorsTest, LayersRunAndAreCounted) {
  const std::string x = TensorText(Make(2 * 3 * 8 * 8), "float32", "2,3,8,8", "192,64,8,1");
  const std::string w = TensorText(Make(4 * 3 * 3 * 3), "float32", "4,3,3,3", "27,9,3,1");
  View(x).fill_(1);
  View(w).fill_(1);
  const absl::Status ran =
      Forward(Call("convolution", "", x + "," + w + ",null,[1,1],[0,0],[1,1],false,[0,0],1"));
  ASSERT_TRUE(ran.ok()) << ran;
  ASSERT_EQ(made_.size(), 1u);
  EXPECT_EQ(made_[0].shape, (std::vector<int64_t>{2, 4, 6, 6}));
  EXPECT_TRUE(device_->memory().View(made_[0]).eq(27).all().item<bool>());
  EXPECT_EQ(Flops("convolution"), 2.0 * 27 * 2 * 4 * 6 * 6);
  EXPECT_TRUE(Forward(Call("max_pool2d_with_indices", "", x + ",[2,2]")).ok());
  EXPECT_EQ(made_.size(), 2u);
  const std::string norm = x + ",null,null,null,null,true,0.1,0.00001,false";
  EXPECT_TRUE(Forward(Call("batch_norm", "", norm)).ok());
}

TEST_F(ComputeOperatorsTest, ProductsAreCounted) {
  const std::string a = TensorText(Make(32), "float32", "4,8", "8,1");
  const std::string b = TensorText(Make(16), "float32", "8,2", "2,1");
  ASSERT_TRUE(Forward(Call("mm", "", a + "," + b)).ok());
  EXPECT_EQ(Flops("mm"), 2.0 * 4 * 8 * 2);
  ASSERT_TRUE(Forward(Call("relu", "", a)).ok());
  EXPECT_EQ(Flops("relu"), 32);
}

TEST_F(ComputeOperatorsTest, OthersAreRefusedByName) {
  const std::string a = FloatTensor(Make(4), 4);
  const auto refused = [&](const OperatorCall& call, absl::string_view text) {
    const absl::Status status = Forward(call);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  };
  refused(Call("from_file", "", "\"/etc/passwd\""), "aten::from_file is never run");
  refused(Call("_index_put_impl_", "", a + ",[],1"), "is never run");
  refused(Call("sparse_resize_", "", a + ",[4],1,0"), "is not executed here");
}

TEST_F(ComputeOperatorsTest, WithoutPermissionNothingComputes) {
  rules_.may_compute = false;
  const std::string a = TensorText(Make(64), "float32", "8,8", "8,1");
  const absl::Status status = Forward(Call("mm", "", a + "," + a));
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
}

TEST_F(ComputeOperatorsTest, ResultsMustFit) {
  const std::string a = TensorText(Make(1 << 16), "float32", "65536,1", "1,1");
  const std::string b = TensorText(Make(1 << 16), "float32", "1,65536", "65536,1");
  const absl::Status status = Forward(Call("mm", "", a + "," + b));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace
}  // namespace tritonrl::device
