#include "model/weights/model_config.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "model/testing/test_util.h"

namespace tritonrl {
namespace {

const char kQwen[] = R"({
  "model_type": "qwen3", "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 480, "vocab_size": 768,
  "max_position_embeddings": 1024, "rope_theta": 10000.0, "rms_norm_eps": 1e-06,
  "tie_word_embeddings": true, "hidden_act": "silu", "attention_bias": false,
  "use_sliding_window": false, "rope_scaling": null, "bos_token_id": null, "eos_token_id": [3, 5]
})";

// Compares NumParameters with a formula of the shapes and with the published sizes.
TEST(ConfigTest, CommittedShapesHaveTheModelsSizes) {
  const std::pair<const char*, int64_t> shapes[] = {
      {"qwen3_0p6b", 596049920}, {"qwen3_1p7b", 1720574976}, {"qwen3_4b", 4022468096},
      {"qwen3_8b", 8190735360},  {"qwen3_14b", 14768307200}, {"qwen3_32b", 32762123264},
  };
  for (const auto& [name, parameters] : shapes) {
    const auto path = Runfile(absl::StrCat("model/configs/", name, ".json"));
    ASSERT_TRUE(path.ok()) << path.status();
    const auto text = ReadFile(*path);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto config = ParseModelConfig(*text, *path);
    ASSERT_TRUE(config.ok()) << config.status();
    const int64_t hidden = config->hidden_size, dim = config->head_dim;
    const int64_t heads = config->num_heads, keys = config->num_kv_heads;
    const int64_t layer = hidden * (heads + 2 * keys) * dim + heads * dim * hidden +
                          3 * hidden * config->intermediate_size + 2 * hidden + 2 * dim;
    const int64_t tables = config->tie_word_embeddings ? 1 : 2;
    EXPECT_EQ(tables * config->vocab_size * hidden + config->num_layers * layer + hidden,
              parameters)
        << name;
    EXPECT_EQ(config->NumParameters(), parameters) << name;
    EXPECT_EQ(dim, 128) << name;
    EXPECT_EQ(config->max_positions, 40960) << name;
  }
}

TEST(ConfigTest, ReadsQwen3) {
  const auto config = ParseModelConfig(kQwen, "c.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->qk_norm());
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->group_size(), 2);
  EXPECT_EQ(config->eos_token_ids, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(config->bos_token_id, -1);
  // 768 * 128 + 4 * (128 * 256 + 128 * 128 + 3 * 128 * 480 + 2 * 128 + 2 * 32) + 128
  EXPECT_EQ(config->NumParameters(), 98304 + 4 * 233792 + 128);
}

TEST(ConfigTest, WritesWhatItReads) {
  const std::string dir = MakeTempDirectory("config").value();
  for (ModelFamily family : {ModelFamily::kQwen3, ModelFamily::kLlama}) {
    ModelConfig config = SmallConfig(family, false);
    config.eos_token_ids = {7};
    config.rope_theta = 500000.0;
    if (family == ModelFamily::kLlama) config.rope_scaling = {RopeType::kLlama3, 8.0, 1.0, 4.0, 64};
    ASSERT_TRUE(WriteModelConfig(config, dir).ok());
    const auto again = ReadModelConfig(dir);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->family, family);
    EXPECT_EQ(again->NumParameters(), config.NumParameters());
    EXPECT_EQ(again->rope_theta, config.rope_theta);
    EXPECT_EQ(again->rope_scaling.factor, config.rope_scaling.factor);
    EXPECT_EQ(again->rope_scaling.original_max_positions,
              config.rope_scaling.original_max_positions);
    EXPECT_EQ(again->eos_token_ids, config.eos_token_ids);
    EXPECT_EQ(again->tie_word_embeddings, false);
    EXPECT_EQ(again->max_positions, config.max_positions);
  }
}

TEST(ConfigTest, WritesBiasesAndScalingsThatItReads) {
  const std::string dir = MakeTempDirectory("config").value();
  for (ModelFamily family : {ModelFamily::kQwen3, ModelFamily::kLlama, ModelFamily::kQwen2}) {
    ModelConfig config = SmallConfig(family, false);
    const bool qwen2 = family == ModelFamily::kQwen2;
    config.attention_bias = !qwen2;
    config.mlp_bias = family == ModelFamily::kLlama;
    config.rope_scaling = {.type = RopeType::kYarn,
                           .factor = 4,
                           .original_max_positions = 64,
                           .beta_fast = 20,
                           .beta_slow = 2,
                           .truncate = false,
                           .attention_factor = 1.25};
    ASSERT_TRUE(WriteModelConfig(config, dir).ok());
    const auto again = ReadModelConfig(dir);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->family, family);
    EXPECT_EQ(again->NumParameters(), config.NumParameters());
    EXPECT_TRUE(again->qkv_bias());
    EXPECT_EQ(again->o_bias(), !qwen2);
    EXPECT_EQ(again->mlp_bias, config.mlp_bias);
    EXPECT_EQ(RopeScalingJson(again->rope_scaling), RopeScalingJson(config.rope_scaling));
  }
  EXPECT_TRUE(RemoveTree(dir).ok());
}

TEST(ConfigTest, EachMistakeNamesFileAndField) {
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } cases[] = {
      {"\"hidden_size\": 128,", "", "field hidden_size is missing"},
      {"\"vocab_size\": 768", "\"vocab_size\": \"many\"", "field vocab_size must be a whole"},
      {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "num_key_value_heads 3"},
      {"\"head_dim\": 32", "\"head_dim\": 33", "head_dim 33 must be even"},
      {"\"qwen3\"", "\"gpt2\"", "field model_type is \"gpt2\""},
      {"\"silu\"", "\"gelu\"", "field hidden_act"},
      {"\"use_sliding_window\": false",
       "\"layer_types\": [\"full_attention\", \"sliding_attention\"]",
       "field layer_types names \"sliding_attention\""},
      {"\"attention_bias\": false", "\"quantization_config\": {\"quant_method\": \"fp8\"}",
       "field quantization_config says that the weights are quantized (quant_method \"fp8\")"},
      {"\"attention_bias\": false", "\"partial_rotary_factor\": 0.5",
       "field partial_rotary_factor is 0.5"},
      {"\"num_hidden_layers\": 4", "\"num_hidden_layers\": 0", "field num_hidden_layers is 0"},
      {"\"vocab_size\": 768", "\"vocab_size\": 3000000000",
       "vocab_size is 3000000000, must be from 1 to 2147483648"},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"rope_type\": \"longrope\"}", "\"longrope\""},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"yarn\"}",
       "field factor is missing"},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0}",
       "rope_scaling: field factor must be positive"},
      {"\"rope_scaling\": null", "\"rope_parameters\": {\"full_attention\": {}}",
       "field rope_parameters has values of its own for \"full_attention\""},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"rope_type\": \"llama3\"}", "factor"},
      {"[3, 5]", "\"stop\"", "field eos_token_id"},
      {"{\n", "[\n", "not a JSON object"},
  };
  for (const auto& c : cases) {
    const std::string text = absl::StrReplaceAll(kQwen, {{c.from, c.to}});
    ASSERT_NE(text, kQwen) << c.from;
    const absl::Status status = ParseModelConfig(text, "some/config.json").status();
    const std::string message(status.message());
    EXPECT_NE(message.find("some/config.json"), std::string::npos) << message;
    EXPECT_NE(message.find(c.message), std::string::npos) << message;
  }
  EXPECT_NE(ReadModelConfig("/nowhere").status().message().find("/nowhere/config.json"),
            std::string::npos);
}

}  // namespace
}  // namespace tritonrl
