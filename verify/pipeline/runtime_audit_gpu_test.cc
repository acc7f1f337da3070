#include <string>

#include "gtest/gtest.h"
#include "verify/pipeline/runtime_audit.h"
#include "verify/testing/honest_program.h"

namespace tritonrl {
namespace {

constexpr char kAdd[] =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
constexpr char kFill[] =
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
    "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)";
constexpr char kCast[] =
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::"
    "TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}>(int)";
constexpr char kCat[] =
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous "
    "namespace)::OpaqueType<4u>, unsigned int, 2, 64, 64>()";
constexpr char kGemm[] = "ampere_sgemm_128x64_tn";

ExecResult Measured() {
  ExecResult result = GoodResult(1);
  result.set_modelled(false);
  return result;
}

void Add(const std::string& name, double microseconds, bool own, ExecResult* result) {
  GpuKernel* kernel = result->add_gpu_kernels();
  kernel->set_name(name);
  kernel->set_calls(1);
  kernel->set_seconds(1e-6 * microseconds);
  kernel->set_own(own);
}

LayerResult Check(const ExecResult& result) {
  LayerResult functionality;
  functionality.set_reason(Outcome::OK);
  CheckGpuTimeShare(result, &functionality);
  return functionality;
}

TEST(GpuShareTest, NamesOfPlainWork) {
  for (const char* name :
       {kFill, kCast, kCat, "Memcpy DtoD (Device -> Device)", "Memset (Device)"}) {
    EXPECT_TRUE(IsNonComputeGpuKernel(name)) << name;
  }
  for (const char* name : {kAdd, kGemm, "softmax_kernel", "my_FillFunctor<", "Memset", "",
                           "void cudnn::ops::nchwToNhwcKernel<float>()"}) {
    EXPECT_FALSE(IsNonComputeGpuKernel(name)) << name;
  }
}

TEST(GpuShareTest, OwnKernelsWithCopiesPass) {
  ExecResult result = Measured();
  Add("softmax_kernel", 20, true, &result);
  Add(kFill, 10, false, &result);
  Add(kCast, 10, false, &result);
  const LayerResult f = Check(result);
  EXPECT_EQ(f.reason(), Outcome::OK);
  EXPECT_EQ(f.evidence(0).rule(), "gpu_share");
  EXPECT_DOUBLE_EQ(f.evidence(0).value(), 0.5);
}

TEST(GpuShareTest, ForeignComputationIsRefusedByName) {
  ExecResult result = Measured();
  Add(kGemm, 90, false, &result);
  Add("tiny_kernel", 10, true, &result);
  const LayerResult f = Check(result);
  EXPECT_EQ(f.reason(), Outcome::RUNTIME_COMPUTE);
  ASSERT_EQ(f.evidence_size(), 2);
  EXPECT_EQ(f.evidence(1).name(), kGemm);
  EXPECT_DOUBLE_EQ(f.evidence(1).value(), 0.9);
}

TEST(GpuShareTest, AFewPerCentAndScalarsAreLetPass) {
  ExecResult result = Measured();
  Add("sum_kernel", 5, true, &result);
  Add(kAdd, 2, false, &result);  // e.g. total[0] / n after a short kernel
  EXPECT_EQ(Check(result).reason(), Outcome::RUNTIME_COMPUTE);
  AtenOp* op = result.add_candidate_ops();
  op->set_name("aten.div");
  op->set_calls(1);
  op->set_largest(1);
  EXPECT_EQ(Check(result).reason(), Outcome::OK);

  ExecResult large = Measured();
  Add("sum_kernel", 1000, true, &large);
  Add(kAdd, 40, false, &large);
  EXPECT_EQ(Check(large).reason(), Outcome::OK);
  Add(kAdd, 40, false, &large);
  EXPECT_EQ(Check(large).reason(), Outcome::RUNTIME_COMPUTE);
}

TEST(GpuShareTest, WhatWasNotMeasuredIsSaid) {
  ExecResult result = Measured();
  result.set_gpu_profile_note("the profiler saw no work on the GPU");
  const LayerResult f = Check(result);
  EXPECT_EQ(f.reason(), Outcome::OK);
  EXPECT_NE(f.evidence(0).text().find("not measured (the profiler"), std::string::npos);
  result.set_modelled(true);
  EXPECT_EQ(Check(result).evidence_size(), 0);  // a modelled run has no GPU time
}

}  // namespace
}  // namespace tritonrl
