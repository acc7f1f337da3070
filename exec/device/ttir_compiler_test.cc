// Kernels of Triton IR on the storages of a candidate.
#include "exec/device/ttir_compiler.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <string.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/device/testing/device_fixture.h"
#include "exec/ttir/testing/corpus.h"

namespace tritonrl::device {
namespace {

class TtirCompilerTest : public DeviceFixture {
 protected:
  void SetUp() override {
    DeviceFixture::SetUp();
    options_.threads = 2;
    device_ = std::make_unique<Device>(arena_.get(), &ttir_, options_);
  }
  absl::Status Launch(const std::string& corpus_text, const std::string& arguments, int programs,
                      LaunchCounts* counts = nullptr) {
    const auto kernel = device_->kernels().Add({.name = "k"}, ttir::CorpusTextOf(corpus_text));
    if (!kernel.ok()) return kernel.status();
    LaunchCommand launch;
    launch.kernel = *kernel;
    launch.grid = {programs, 1, 1};
    launch.arguments = ParseValue(*ParseJson("[" + arguments + "]"), "")->items;
    const absl::Status status = device_->CheckLaunch(launch);
    return status.ok() ? device_->RunLaunch(launch, counts) : status;
  }

  TtirCompiler ttir_;
};

TEST_F(TtirCompilerTest, AKernelComputesOnStorages) {
  const int x = Make(3000);
  const int y = Make(3000);
  const int out = Make(3000);
  View(FloatTensor(x, 3000)).copy_(at::arange(3000));
  View(FloatTensor(y, 3000)).fill_(0.5);
  const absl::Status status = Launch("vector_add.ttir",
                                     absl::StrCat(FloatTensor(x, 2999), ",", FloatTensor(y, 2999),
                                                  ",", FloatTensor(out, 2999), ",2999"),
                                     3);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(View(FloatTensor(out, 2999)).equal(at::arange(2999).add(0.5)));
  EXPECT_EQ(Bytes(FloatTensor(out, 3000), Tag::kKernel), 2999 * 4);
  EXPECT_EQ(Bytes(FloatTensor(out, 3000), Tag::kUnwritten), 4);
}

TEST_F(TtirCompilerTest, CountedLaunchesSayWhatTheyMoved) {
  const int x = Make(3000);
  const int out = Make(3000);
  View(FloatTensor(x, 3000)).fill_(0);
  View(FloatTensor(out, 3000)).fill_(0);  // what the kernel stores
  LaunchCounts counts;
  const std::string input = FloatTensor(x, 3000);
  ASSERT_TRUE(Launch("vector_add.ttir",
                     absl::StrCat(input, ",", input, ",", FloatTensor(out, 3000), ",1025"), 3,
                     &counts)
                  .ok());
  EXPECT_EQ(counts.load_bytes, 2 * 1025 * 4);
  EXPECT_EQ(counts.store_bytes, 1025 * 4);
  EXPECT_EQ(counts.flops, 3 * 1024);
  EXPECT_EQ(device_->traffic().kernel_bytes, 3 * 1025 * 4);
  EXPECT_EQ(Bytes(FloatTensor(out, 3000), Tag::kKernel), 1025 * 4);
}

TEST_F(TtirCompilerTest, AnAccessBehindTheStorageIsAnError) {
  const int x = Make(3000);
  const std::string tensor = FloatTensor(x, 3000);
  const absl::Status status =
      Launch("vector_add.ttir", absl::StrCat(tensor, ",", tensor, ",", tensor, ",3001"), 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), "kernel k: ")) << status;
}

// The bound of a launch is the storage, as on a GPU; that of a check is the tensor.
TEST_F(TtirCompilerTest, AnAccessBehindTheTensorIsAFinding) {
  options_.check = true;
  device_ = std::make_unique<Device>(arena_.get(), &ttir_, options_);
  const int x = Make(3000);
  const int out = Make(3000);
  View(FloatTensor(x, 3000)).fill_(1);
  memset(device_->memory().Find(x)->shadow.get(), static_cast<int>(Tag::kInput), 12'000);
  const std::string tensor = FloatTensor(x, 2000);
  const std::string target = FloatTensor(out, 3000);
  ASSERT_TRUE(
      Launch("vector_add.ttir", absl::StrCat(tensor, ",", tensor, ",", target, ",2000"), 3).ok());
  EXPECT_TRUE(device_->findings().list.empty()) << device_->findings().list[0].text;
  ASSERT_TRUE(
      Launch("vector_add.ttir", absl::StrCat(tensor, ",", tensor, ",", target, ",2001"), 3).ok());
  ASSERT_EQ(device_->findings().list.size(), 2u);
  EXPECT_EQ(device_->findings().list[0].kind, Finding::Kind::kOutsideView);
  EXPECT_TRUE(absl::StrContains(device_->findings().list[0].text, "(a view of 2000 elements)"));
}

TEST_F(TtirCompilerTest, TextsThatAreNoTritonIrAreErrors) {
  EXPECT_EQ(ttir_.CompileTtir("module {", {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ttir_.CompileTtir("", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tritonrl::device
