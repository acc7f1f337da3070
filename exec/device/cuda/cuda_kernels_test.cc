// Kernels on a GPU: tensor cores, launch attributes, descriptors, arguments.
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "exec/device/cuda/cuda_kernel.h"
#include "exec/device/cuda/testing/cuda_fixture.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/testing/corpus.h"

namespace tritonrl::device {
namespace {

class CudaKernelsTest : public CudaFixture {};

TEST_F(CudaKernelsTest, AHistogramOfNumbersThatHaveNoBin) {
  const int x = Make(256, at::kInt);
  const int out = Make(32, at::kInt);
  View(x, at::kInt).copy_(at::arange(256).remainder(40));
  ASSERT_TRUE(Launch(Kernel("histogram.ttir"), {1, 1, 1},
                     {Argument(x, at::kInt), Argument(out, at::kInt), Value::Integer(100)})
                  .ok());
  const at::Tensor counts = View(out, at::kInt).cpu();
  for (int i = 0; i < 32; ++i) printf("%d ", counts[i].item<int>());
  printf(": bins of i %% 40, i < 256\n");
}

TEST_F(CudaKernelsTest, ClustersCooperativeAndDependentLaunches) {
  const int x = Make(3000);
  const int out = Make(3000);
  View(x).copy_(at::arange(3000));
  std::vector<KernelOptions> all = {{.cooperative = true}, {.maxnreg = 32}, {.fp_fusion = false}};
  if (Gpu().context->arch() >= 90) {
    all.push_back({.num_ctas = 2});
    all.push_back({.num_warps = 8, .num_ctas = 4});
    all.push_back({.pdl = true});
  }
  for (const KernelOptions& options : all) {
    View(out).zero_();
    const absl::Status status =
        Launch(Kernel("vector_add.ttir", options), {3, 1, 1},
               {Argument(x), Argument(x), Argument(out), Value::Integer(3000)});
    EXPECT_TRUE(status.ok()) << status << options.num_ctas;
    EXPECT_TRUE(View(out).equal(View(x).mul(2)));
    EXPECT_EQ(Bytes(out, Tag::kKernel), 12000);
  }
}

TEST_F(CudaKernelsTest, PrintsAreLeftOut) {
  const int x = Make(32, at::kInt);
  View(x, at::kInt).copy_(at::arange(32));
  testing::internal::CaptureStdout();
  const absl::Status status = Launch(Kernel("assertions.ttir"), {1, 1, 1},
                                     {Argument(x, at::kInt), Value::Integer(100), Value::Float(1)});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(View(x, at::kInt).cpu()[31].item<int>(), 131);
}

// With sizes that are multiples of 16 loads can be pipelined.
std::string AlignedMatmul() {
  return absl::StrReplaceAll(ttir::CorpusTextOf("matmul.ttir"),
                             {{"%N: i32 loc", "%N: i32 {tt.divisibility = 16 : i32} loc"},
                              {"%K: i32 loc", "%K: i32 {tt.divisibility = 16 : i32} loc"}});
}

TEST_F(CudaKernelsTest, MatmulWithTensorCoresAndAllOptions) {
  constexpr int64_t kSize = 1024;
  const int a = Make(kSize * kSize, at::kHalf);
  const int b = Make(kSize * kSize, at::kHalf);
  const int c = Make(kSize * kSize);
  View(a, at::kHalf).copy_(at::randn({kSize * kSize}));
  View(b, at::kHalf).copy_(at::randn({kSize * kSize}));
  const auto square = [&](int storage) {
    return View(storage, at::kHalf).view({kSize, kSize}).to(at::kFloat);
  };
  const at::Tensor expected = at::matmul(square(a), square(b)).view({-1});
  for (const int64_t warps : {4, 8}) {
    std::vector<int64_t> shared;
    for (const int64_t stages : {1, 3, 4}) {
      View(c).zero_();
      const auto added = device_->kernels().Add(
          {.name = "k", .options = {.num_warps = warps, .num_stages = stages}}, AlignedMatmul());
      ASSERT_TRUE(added.ok()) << added.status();
      const int64_t kernel = *added;
      const absl::Status status =
          Launch(kernel, {kSize / 64, kSize / 32, 1},
                 {Argument(a, at::kHalf), Argument(b, at::kHalf), Argument(c),
                  Value::Integer(kSize), Value::Integer(kSize), Value::Integer(kSize)});
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_LT(View(c).sub(expected).abs().max().item<double>(), 0.2);
      EXPECT_EQ(Bytes(c, Tag::kKernel), kSize * kSize * 4);
      const auto& loaded =
          dynamic_cast<const CudaKernel&>(*device_->kernels().Find(kernel)->kernel).plain();
      shared.push_back(loaded.compiled().shared_bytes);
      printf("matmul: %ld warps, %ld stages: %ld shared bytes, %d registers\n", warps, stages,
             loaded.compiled().shared_bytes, loaded.registers());
    }
    EXPECT_LT(shared[0], shared[1]);
    EXPECT_LT(shared[1], shared[2]);
  }
}

TEST_F(CudaKernelsTest, SoftmaxOfManyRows) {
  constexpr int64_t kRows = 4096;
  constexpr int64_t kColumns = 1024;
  const int x = Make(kRows * kColumns);
  const int out = Make(kRows * kColumns);
  View(x).copy_(at::randn({kRows * kColumns}));
  const absl::Status status = Launch(Kernel("softmax.ttir"), {kRows, 1, 1},
                                     {Argument(x), Argument(out), Value::Integer(kColumns)});
  ASSERT_TRUE(status.ok()) << status;
  const at::Tensor expected = at::softmax(View(x).view({kRows, kColumns}), 1).view({-1});
  EXPECT_LT(View(out).sub(expected).abs().max().item<double>(), 1e-6);
}

TEST_F(CudaKernelsTest, DescriptorsAsArgumentsBecomeTensorMaps) {
  if (Gpu().context->arch() < 90) GTEST_SKIP() << "no tensor maps before sm_90";
  const auto module = ttir::ParseTtir(ttir::CorpusTextOf("host_descriptors.ttir"));
  ASSERT_TRUE(module.ok());
  const ttir::Function& kernel = module->functions[0];
  std::vector<std::string> types;
  for (const ttir::Argument& argument : kernel.arguments) {
    types.push_back(kernel.TypeOf(argument.value).ToString());
  }
  printf("host_descriptors(%s)\n", absl::StrJoin(types, ", ").c_str());
  const int x = Make(64 * 128, at::kHalf);
  const int y = Make(64 * 128, at::kHalf);
  View(x, at::kHalf).copy_(at::arange(64 * 128).remainder(512));
  std::vector<Value> arguments;
  for (const int storage : {x, y}) {
    arguments.push_back(Argument(storage, at::kHalf));
    for (const int64_t number : {64, 128, 128, 1, 0, 64, 128, 128, 1}) {
      arguments.push_back(Value::Integer(number));
    }
  }
  arguments.push_back(Value::Integer(0));
  const absl::Status status = Launch(Kernel("host_descriptors.ttir"), {1, 1, 1}, arguments);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(Bytes(y, Tag::kKernel), 0);
}

TEST_F(CudaKernelsTest, ArgumentsThatDoNotFitAreRefused) {
  const int x = Make(100);
  const int64_t kernel = Kernel("vector_add.ttir");
  EXPECT_EQ(Launch(kernel, {1, 1, 1}, {Argument(x)}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Launch(kernel, {1, 1, 1}, {Argument(x), Argument(x), Value::Float(1), Value::Integer(100)})
          .code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Gpu().context->poisoned());
  const auto assembly = Gpu().compiler->CompileTtir(ttir::CorpusTextOf("inline_assembly.ttir"), {});
  EXPECT_EQ(assembly.status().code(), absl::StatusCode::kUnimplemented) << assembly.status();
}

}  // namespace
}  // namespace tritonrl::device
