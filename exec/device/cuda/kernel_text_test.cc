#include "exec/device/cuda/kernel_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

TEST(KernelTextTest, KernelsWithoutLocationsAreTheSameKernels) {
  for (const ttir::CorpusText& kernel : ttir::ReadCorpus()) {
    const std::string text = WithoutLocations(kernel.text);
    EXPECT_FALSE(absl::StrContains(text, "loc(")) << kernel.name;
    const auto before = ttir::ParseTtir(kernel.text);
    const auto after = ttir::ParseTtir(text);
    ASSERT_TRUE(before.ok()) << before.status();
    ASSERT_TRUE(after.ok()) << kernel.name << ": " << after.status();
    EXPECT_EQ(ToString(*before), ToString(*after));
  }
}

TEST(KernelTextTest, TheFolderOfAProgramDoesNotCount) {
  const std::string text = ttir::CorpusTextOf("softmax.ttir");
  const std::string other = absl::StrReplaceAll(text, {{"exec/ttir", "/tmp/x (\\\") loc("}});
  EXPECT_NE(text, other);
  EXPECT_EQ(WithoutLocations(text), WithoutLocations(other));
}

TEST(KernelTextTest, TextsThatEndTooEarlyEnd) {
  for (const char* const text : {"\"", "\"\\", " loc(", " loc(\"", "#loc", " loc(()"}) {
    WithoutLocations(text);
  }
}

TEST(KernelTextTest, PrintsAreLeftOut) {
  const std::string text = WithoutLocations(ttir::CorpusTextOf("assertions.ttir"));
  const auto module = ttir::ParseTtir(text);
  ASSERT_TRUE(module.ok());
  const auto silent = WithoutPrints(text, *module);
  ASSERT_TRUE(silent.ok()) << silent.status();
  EXPECT_FALSE(absl::StrContains(*silent, "tt.print"));
  EXPECT_TRUE(ttir::ParseTtir(*silent).ok());
  const std::string joined = absl::StrReplaceAll(text, {{"\n    tt.print", " tt.print"}});
  EXPECT_FALSE(WithoutPrints(joined, *ttir::ParseTtir(joined)).ok());
}

}  // namespace
}  // namespace tritonrl::device
