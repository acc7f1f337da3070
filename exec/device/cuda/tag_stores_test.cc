#include "exec/device/cuda/tag_stores.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kDistance = int64_t{1} << 40;

absl::StatusOr<std::string> Tagged(const std::string& text) {
  const auto module = ttir::ParseTtir(text);
  if (!module.ok()) return module.status();
  return TagStores(text, *module, 3, kDistance);
}

int CountOf(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(TagStoresTest, AStoreIsFollowedByOneOfItsTag) {
  const auto text = Tagged(ttir::CorpusTextOf("vector_add.ttir"));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, "tt.store"), 2);
  EXPECT_TRUE(absl::StrContains(
      *text, "tt.bitcast %1 : tensor<1024x!tt.ptr<f32>> -> tensor<1024x!tt.ptr<i32>>"));
  EXPECT_TRUE(absl::StrContains(*text, "dense<274877906944> : tensor<1024xi64>"));
  EXPECT_TRUE(absl::StrContains(*text, "dense<50529027> : tensor<1024xi32>"));
  EXPECT_TRUE(absl::StrContains(*text, "_v, %mask_4 : tensor<1024x!tt.ptr<i32>>"));
}

TEST(TagStoresTest, AllKernelsOfTheCorpusCanBeFollowed) {
  int followed = 0;
  for (const ttir::CorpusText& kernel : ttir::ReadCorpus()) {
    const auto module = ttir::ParseTtir(kernel.text);
    ASSERT_TRUE(module.ok()) << kernel.name;
    if (StoresThroughDescriptors(*module)) continue;
    const auto text = TagStores(kernel.text, *module, 3, kDistance);
    EXPECT_TRUE(text.ok()) << kernel.name << ": " << text.status();
    ++followed;
  }
  EXPECT_GE(followed, 50);
}

TEST(TagStoresTest, TextsThatCouldMisleadAreRefused) {
  const std::string text = ttir::CorpusTextOf("vector_add.ttir");
  const auto named = Tagged(absl::StrReplaceAll(text, {{"%offsets_0", "%tritonrl_tag0_a"}}));
  EXPECT_EQ(named.status().code(), absl::StatusCode::kUnimplemented) << named.status();
  const auto joined = Tagged(absl::StrReplaceAll(text, {{"\n    tt.store", " tt.store"}}));
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kUnimplemented) << joined.status();
}

}  // namespace
}  // namespace tritonrl::device
