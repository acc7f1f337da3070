#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "verify/linter/tables.h"
#include "verify/pipeline/runtime_audit.h"

namespace tritonrl {
namespace {

bool Neutral(const std::string& name, double largest = 1000, bool view = false) {
  AtenOp op;
  op.set_name(name);
  op.set_calls(1);
  op.set_largest(largest);
  op.set_view(view);
  return IsNonComputeOp(op);
}

TEST(NonComputeOpsTest, ComputationIsNot) {
  for (const char* name : {"mm",
                           "add",
                           "add_",
                           "mul",
                           "sum",
                           "relu",
                           "convolution",
                           "softmax",
                           "where",
                           "index",
                           "gather",
                           "flip",
                           "roll",
                           "cumsum",
                           "sort",
                           "bernoulli",
                           "exponential_",
                           "tril",
                           "reflection_pad1d",
                           "max",
                           "pow"}) {
    EXPECT_FALSE(Neutral(absl::StrCat("aten.", name))) << name;
  }
  EXPECT_FALSE(Neutral("prims.add"));
  EXPECT_FALSE(Neutral("quantized.linear"));
}

TEST(NonComputeOpsTest, ScalarsViewsAndOperatorsOfTheProgramAre) {
  EXPECT_TRUE(Neutral("aten.div", 16));
  EXPECT_FALSE(Neutral("aten.div", 17));
  EXPECT_TRUE(Neutral("aten.some_view", 1000, true));
  EXPECT_TRUE(Neutral("mine.relu"));
}

TEST(NonComputeOpsTest, ManySmallPiecesAreNot) {
  AtenOp op;
  op.set_name("aten.mul");
  op.set_largest(8);
  op.set_calls(32);
  op.set_elements(256);
  EXPECT_TRUE(IsNonComputeOp(op));
  op.set_calls(33);
  op.set_elements(264);
  EXPECT_FALSE(IsNonComputeOp(op));
}

TEST(NonComputeOpsTest, PiecesOfSeveralOperatorsAddUp) {
  google::protobuf::RepeatedPtrField<AtenOp> ops;
  for (const char* name : {"aten.mul", "aten.add", "aten.copy_", "aten.mm"}) {
    AtenOp* op = ops.Add();
    op->set_name(name);
    op->set_calls(20);
    op->set_largest(name == std::string("aten.mm") ? 100 : 8);
    op->set_elements(160);
  }
  EXPECT_EQ(CountScalarElements(ops),
            320);  // of mul and add: copy_ is neutral at any size, mm is above kScalarElements
}

TEST(NonComputeOpsTest, ElementsReadIntoPythonAreNeutralWhileFew) {
  EXPECT_TRUE(Neutral("python.tolist", 16));
  EXPECT_FALSE(Neutral("python.tolist", 17));
  AtenOp op;
  op.set_name("aten._local_scalar_dense");
  op.set_largest(1);
  op.set_calls(kMaxReadBack);
  EXPECT_TRUE(IsNonComputeOp(op));
  op.set_calls(kMaxReadBack + 1);
  EXPECT_FALSE(IsNonComputeOp(op));
}

TEST(NonComputeOpsTest, ViewsThatChangeSignsAreNot) {
  EXPECT_FALSE(Neutral("aten._neg_view", 1000, true));
  EXPECT_FALSE(Neutral("aten._conj", 1000, true));
}

// An operator is neutral at run time if and only if the linter does not count it as computation.
TEST(NonComputeOpsTest, AgreesWithTheLinterOnFunctions) {
  for (const char* name : {"cat",
                           "stack",
                           "clone",
                           "empty",
                           "empty_like",
                           "empty_strided",
                           "empty_permuted",
                           "zeros",
                           "zeros_like",
                           "ones",
                           "ones_like",
                           "full",
                           "full_like",
                           "arange",
                           "linspace",
                           "logspace",
                           "eye",
                           "rand",
                           "rand_like",
                           "randn",
                           "randn_like",
                           "randint",
                           "randperm",
                           "scalar_tensor",
                           "mm",
                           "relu",
                           "sum",
                           "where",
                           "flip",
                           "roll",
                           "cumsum",
                           "tril",
                           "softmax",
                           "bernoulli",
                           "add",
                           "sort",
                           "gather",
                           "einsum",
                           "bmm",
                           "clamp"}) {
    const lint::TorchUse use = lint::TorchUseOf(absl::StrCat("torch.", name));
    EXPECT_EQ(Neutral(absl::StrCat("aten.", name)), use != lint::TorchUse::kCompute) << name;
  }
}

TEST(NonComputeOpsTest, AgreesWithTheLinterOnMethods) {
  for (const char* name : {"clone",     "repeat",     "contiguous",  "new_empty",
                           "new_zeros", "new_ones",   "new_full",    "new_empty_strided",
                           "copy_",     "fill_",      "zero_",       "uniform_",
                           "normal_",   "random_",    "bernoulli_",  "resize_",
                           "set_",      "resize_as_", "squeeze_",    "unsqueeze_",
                           "t_",        "transpose_", "as_strided_", "detach_",
                           "item",      "add_",       "mul_",        "relu_",
                           "exp_",      "sum",        "cumsum",      "masked_fill_",
                           "clamp_",    "index_add_", "scatter_",    "addmm_"}) {
    const lint::TensorUse use = lint::TensorUseOf(name);
    EXPECT_EQ(Neutral(absl::StrCat("aten.", name)), use != lint::TensorUse::kCompute) << name;
  }
}

}  // namespace
}  // namespace tritonrl
