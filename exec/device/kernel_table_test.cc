#include "exec/device/kernel_table.h"

#include "exec/device/testing/fake_compiler.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

TEST(KernelTableTest, TheSameTextAndOptionsAreOneKernel) {
  FakeCompiler compiler;
  KernelTable table(&compiler, SessionLimits());
  EXPECT_EQ(*table.Add({.name = "k"}, "add"), 0);
  EXPECT_EQ(*table.Add({.name = "k", .options = {.num_warps = 8}}, "add"), 1);
  EXPECT_EQ(*table.Add({.name = "k"}, "scale"), 2);
  EXPECT_EQ(*table.Add({.name = "k"}, "add"), 0);
  EXPECT_EQ(table.Find(1)->options.num_warps, 8);
  EXPECT_EQ(table.Find(3), nullptr);
  EXPECT_EQ(table.Find(-1), nullptr);
  EXPECT_FALSE(table.Add({.name = "k"}, "other").ok());
}

TEST(KernelTableTest, LimitsHold) {
  FakeCompiler compiler;
  SessionLimits limits;
  limits.max_kernels = 1;
  limits.max_ttir_bytes = 5;
  KernelTable table(&compiler, limits);
  EXPECT_EQ(table.Add({.name = "k"}, "add...").status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.Add({.name = "k"}, "add").ok());
  EXPECT_TRUE(table.Add({.name = "k"}, "add").ok());
  EXPECT_EQ(table.Add({.name = "k"}, "scale").status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(KernelTableTest, WhatABlockCannotHaveIsOutOfResource) {
  FakeCompiler compiler;
  KernelTable table(&compiler, SessionLimits());
  const absl::Status shared = table.Add({.name = "k", .shared_bytes = 101'377}, "add").status();
  EXPECT_EQ(shared.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(shared.message(),
            "out of resource: shared memory, Required: 101377, Hardware limit: 101376");
  EXPECT_TRUE(table.Add({.name = "k", .shared_bytes = 101'376}, "add").ok());
  const absl::Status threads =
      table.Add({.name = "k", .options = {.num_warps = 64}}, "add").status();
  EXPECT_EQ(threads.message(), "out of resource: threads, Required: 2048, Hardware limit: 1024");
  EXPECT_TRUE(table.Add({.name = "k", .options = {.num_warps = 32}}, "add").ok());
}

TEST(KernelCacheTest, CompilesATextOnceForAllCandidates) {
  FakeCompiler compiler;
  KernelCache cache(&compiler, 2);
  for (int candidate = 0; candidate < 3; ++candidate) {
    KernelTable table(&cache, SessionLimits());
    EXPECT_TRUE(table.Add({.name = "k"}, "add").ok());
    EXPECT_TRUE(table.Add({.name = "k"}, "scale").ok());
  }
  EXPECT_EQ(compiler.compiled(), 2);
  EXPECT_TRUE(cache.CompileTtir("table", {}).ok());  // the least recently used one goes
  EXPECT_TRUE(cache.CompileTtir("scale", {}).ok());
  EXPECT_EQ(compiler.compiled(), 3);
  EXPECT_TRUE(cache.CompileTtir("add", {}).ok());
  EXPECT_EQ(compiler.compiled(), 4);
}

class CompilerWithOptions : public FakeCompiler {
 public:
  bool uses_options() const override { return true; }
};

TEST(KernelCacheTest, OptionsMakeAnotherKernelWhereTheyCount) {
  CompilerWithOptions compiler;
  KernelCache cache(&compiler, 8);
  EXPECT_TRUE(cache.CompileTtir("add", {}).ok());
  EXPECT_TRUE(cache.CompileTtir("add", {.num_warps = 8}).ok());
  EXPECT_TRUE(cache.CompileTtir("add", {.num_warps = 8}).ok());
  EXPECT_TRUE(cache.CompileTtir("add", {.maxnreg = 64}).ok());
  EXPECT_EQ(compiler.compiled(), 3);
}

}  // namespace
}  // namespace tritonrl::device
