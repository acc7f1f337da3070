#include "rollout/engine/engine_config.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

TEST(ValidateEngineConfig, NamesTheFieldAndItsRange) {
  EngineConfig config;
  EXPECT_TRUE(ValidateEngineConfig(config).ok());
  config.set_num_speculative_tokens(65);
  EXPECT_EQ(ValidateEngineConfig(config, "--").message(),
            "--num_speculative_tokens is 65; it must lie between 0 and 64");
  config.set_max_num_batched_tokens(-1);
  EXPECT_EQ(ValidateEngineConfig(config, "sampling.engine.").message(),
            "sampling.engine.max_num_batched_tokens is -1; it must be at least 0");
}

TEST(ValidateEngineConfig, DraftTokensNeedBatchSlots) {
  EngineConfig config;
  config.set_num_speculative_tokens(4);
  EXPECT_TRUE(ValidateEngineConfig(config).ok());
  config.set_max_num_seqs(1);
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateEngineConfig(config)));
}

TEST(ResolveEngineConfig, FillsInTheDefaultsOfTheDevice) {
  for (const bool cuda : {false, true}) {
    EngineConfig config;
    EngineContext context;
    ASSERT_TRUE(ResolveEngineConfig(cuda, 0, 4096, &config, &context).ok());
    EXPECT_EQ(config.max_num_seqs(), cuda ? 256 : 64);
    EXPECT_EQ(config.max_num_batched_tokens(), cuda ? 8192 : 1024);
    EXPECT_EQ(context.max_length, 4096);
  }
}

TEST(ResolveEngineConfig, AStepHoldsAllDecodesAndAChunk) {
  EngineConfig config;
  EngineContext context = {.max_length = 100};
  config.set_max_num_seqs(30);
  config.set_max_num_batched_tokens(10);
  ASSERT_TRUE(ResolveEngineConfig(true, 128, 4096, &config, &context).ok());
  EXPECT_EQ(config.max_num_batched_tokens(), 158);
  EXPECT_EQ(context.max_length, 100);
}

TEST(ResolveEngineConfig, RefusesMoreThanTheModelsPositions) {
  EngineConfig config;
  EngineContext context = {.max_length = 129};
  EXPECT_EQ(ResolveEngineConfig(false, 0, 128, &config, &context).message(),
            "max_length is 129, but the model's max_position_embeddings is 128");
}

}  // namespace
}  // namespace tritonrl
