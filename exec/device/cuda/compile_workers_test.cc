// Machine code for a GPU that need not be there.
#include "exec/device/cuda/compile_workers.h"

#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "base/file.h"
#include "exec/device/cuda/tag_stores.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

constexpr int kArch = 90;

std::unique_ptr<CompileWorkers> MakeWorkers(const CompileWorkers::Options& options = {}) {
  auto workers = CompileWorkers::Create(options);
  EXPECT_TRUE(workers.ok()) << workers.status();
  return workers.ok() ? *std::move(workers) : nullptr;
}

TEST(CompileWorkersTest, AKernelBecomesMachineCode) {
  const auto workers = MakeWorkers();
  const auto kernel =
      workers->Compile(ttir::CorpusTextOf("matmul.ttir"), {.num_warps = 8, .num_stages = 4}, kArch);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_TRUE(absl::StartsWith(kernel->cubin, "\177ELF"));
  EXPECT_EQ(kernel->name, "matmul");
  EXPECT_EQ(kernel->num_warps, 8);
  EXPECT_GT(kernel->shared_bytes, 0);
}

TEST(CompileWorkersTest, DescriptorsSayHowTheyAreMapped) {
  const auto workers = MakeWorkers();
  const std::string text = ttir::CorpusTextOf("host_descriptors.ttir");
  const auto kernel = workers->Compile(text, {}, kArch);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ASSERT_EQ(kernel->descriptors.size(), 2);
  EXPECT_EQ(kernel->descriptors[0].element_bytes, 2);
  EXPECT_EQ(kernel->descriptors[0].block, (std::vector<uint32_t>{32, 64}));
  // Flat, their stores can be followed.
  const auto flat = workers->Flatten(text);
  ASSERT_TRUE(flat.ok()) << flat.status();
  const auto module = ttir::ParseTtir(*flat);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_FALSE(StoresThroughDescriptors(*module));
  const auto tagged = TagStores(*flat, *module, 3, int64_t{1} << 40);
  ASSERT_TRUE(tagged.ok()) << tagged.status();
  EXPECT_TRUE(workers->Compile(*tagged, {}, kArch).ok());
}

TEST(CompileWorkersTest, TaggedKernelsCompile) {
  const auto workers = MakeWorkers();
  for (const char* const name : {"softmax.ttir", "atomics.ttir", "booleans.ttir", "scalars.ttir"}) {
    const std::string text = ttir::CorpusTextOf(name);
    const auto tagged = TagStores(text, *ttir::ParseTtir(text), 3, int64_t{1} << 40);
    ASSERT_TRUE(tagged.ok()) << tagged.status();
    const auto kernel = workers->Compile(*tagged, {}, kArch);
    EXPECT_TRUE(kernel.ok()) << name << ": " << kernel.status();
  }
}

TEST(CompileWorkersTest, AllDescriptorsOfTheCorpusCanBeFlat) {
  const auto workers = MakeWorkers();
  int flattened = 0;
  for (const ttir::CorpusText& kernel : ttir::ReadCorpus()) {
    if (!StoresThroughDescriptors(*ttir::ParseTtir(kernel.text))) continue;
    const auto flat = workers->Flatten(kernel.text);
    ASSERT_TRUE(flat.ok()) << kernel.name << ": " << flat.status();
    const auto module = ttir::ParseTtir(*flat);
    ASSERT_TRUE(module.ok()) << kernel.name << ": " << module.status();
    const auto tagged = TagStores(*flat, *module, 3, int64_t{1} << 40);
    ASSERT_TRUE(tagged.ok()) << kernel.name << ": " << tagged.status();
    EXPECT_TRUE(workers->Compile(*tagged, {}, kArch).ok()) << kernel.name;
    ++flattened;
  }
  EXPECT_GE(flattened, 3);
}

TEST(CompileWorkersTest, WhatTritonRefusesIsAnError) {
  const auto workers = MakeWorkers();
  const auto kernel = workers->Compile("module {", {}, kArch);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument) << kernel.status();
  EXPECT_TRUE(workers->Compile(ttir::CorpusTextOf("vector_add.ttir"), {}, kArch).ok());
}

TEST(CompileWorkersTest, ADeadlineEndsTheCompiler) {
  const auto workers = MakeWorkers({.deadline = absl::Milliseconds(1)});
  const auto late = workers->Compile(ttir::CorpusTextOf("attention.ttir"), {}, kArch);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(late.status().message(), "too long")) << late.status();
}

TEST(CompileWorkersTest, ResultsAreKeptOnDisk) {
  const auto folder = MakeTempDirectory("compile_workers");
  ASSERT_TRUE(folder.ok());
  const std::string text = ttir::CorpusTextOf("vector_add.ttir");
  {
    const auto workers = MakeWorkers({.cache_folder = *folder});
    EXPECT_TRUE(workers->Compile(text, {}, kArch).ok());
    EXPECT_TRUE(workers->Compile(text, {.num_warps = 8}, kArch).ok());
    EXPECT_EQ(workers->cache_hits(), 0);
  }
  const auto workers = MakeWorkers({.cache_folder = *folder});
  const auto kernel = workers->Compile(text, {}, kArch);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(workers->cache_hits(), 1);
  EXPECT_TRUE(absl::StartsWith(kernel->cubin, "\177ELF"));
  EXPECT_TRUE(RemoveTree(*folder).ok());
}

TEST(CompileWorkersTest, ManyAskAtOnce) {
  const auto workers = MakeWorkers({.workers = 2});
  const std::string text = ttir::CorpusTextOf("vector_add.ttir");
  std::vector<std::thread> threads;
  std::atomic<int> compiled = 0;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] { compiled += workers->Compile(text, {}, kArch).ok(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiled, 5);
}

}  // namespace
}  // namespace tritonrl::device
