#include "bench/model/step_measures.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "model/testing/test_util.h"

namespace tritonrl {
namespace {

TEST(StepBatchesTest, BatchesOfLengths) {
  const auto batches = ParseBatches("16384;4096,1,300");
  ASSERT_TRUE(batches.ok()) << batches.status();
  EXPECT_EQ(*batches, (std::vector<std::vector<int64_t>>{{16384}, {4096, 1, 300}}));
  for (const char* const wrong : {"", "12,", "5;;6", "4k", "-3", "0"}) {
    const auto refused = ParseBatches(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_TRUE(absl::StrContains(refused.status().message(), "is no length")) << wrong;
  }
}

TEST(StepBatchesTest, FlopsAreThoseOfTheProductsAndOfHalfTheSquare) {
  ModelConfig config = SmallConfig();
  config.tie_word_embeddings = false;
  const double embedding = static_cast<double>(config.vocab_size * config.hidden_size);
  const double parameters = static_cast<double>(config.NumParameters()) - embedding;
  const double heads = static_cast<double>(config.num_layers * config.query_size());
  EXPECT_DOUBLE_EQ(StepFlops(config, {10, 7}), 6 * parameters * 17 + 6 * heads * (10 * 10 + 7 * 7));
  config.tie_word_embeddings = true;  // the head's GEMM stays
  EXPECT_DOUBLE_EQ(StepFlops(config, {10, 7}), 6 * parameters * 17 + 6 * heads * (10 * 10 + 7 * 7));
}

TEST(StepProfileTest, TimeByKindAndGaps) {
  const StepProfile profile = SummarizeRuns({{"nvjet_sm90_tst_128x160", 4.0, 2.0},
                                             {"cudnn_generated_sdpa_flash_fprop", 1.0, 1.5},
                                             {"nvjet_sm90_tst_128x160", 2.0, 1.0},  // overlaps
                                             {"void cudnn::fusion::compute_dot_do_o", 8.0, 0.5},
                                             {"SwigluKernel", 7.0, 1.0}});
  EXPECT_DOUBLE_EQ(profile.gemm, 2.5);  // 2.5 to 3 and 4 to 6
  EXPECT_DOUBLE_EQ(profile.attention, 2.0);
  EXPECT_DOUBLE_EQ(profile.rest, 1.0);
  EXPECT_DOUBLE_EQ(profile.gaps, 2.0);  // 3 to 4 and 6 to 7
  EXPECT_DOUBLE_EQ(profile.seconds, 7.5);
  ASSERT_EQ(profile.kernels.size(), 4);
  EXPECT_EQ(profile.kernels[0].name, "nvjet_sm90_tst_128x160");
  EXPECT_EQ(profile.kernels[0].calls, 2);
  EXPECT_DOUBLE_EQ(SummarizeRuns({}).seconds, 0);
  EXPECT_DOUBLE_EQ(profile.communication, 0);
  EXPECT_DOUBLE_EQ(profile.exposed, 0);
}

TEST(StepProfileTest, CommunicationBesideOtherKernels) {
  const StepProfile profile =
      SummarizeRuns({{"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 1.0, 5.0},
                     {"nvjet_sm90_tst_128x160", 0.0, 2.0},
                     {"nvjet_sm90_tst_128x160", 3.0, 1.0},
                     {"ncclDevKernel_AllGather_RING_LL", 7.0, 1.0}});
  EXPECT_DOUBLE_EQ(profile.communication, 6.0);
  EXPECT_DOUBLE_EQ(profile.exposed, 4.0);  // 2 to 3, 4 to 6, 7 to 8
  EXPECT_DOUBLE_EQ(profile.gemm, 3.0);
  EXPECT_DOUBLE_EQ(profile.gaps, 1.0);  // 6 to 7
}

}  // namespace
}  // namespace tritonrl
