// What each folder that cannot be loaded is told, and how weights correct config.json.

#include "model/weights/model_folder.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "model/testing/test_util.h"
#include "model/weights/safetensors.h"
#include "model/weights/weights_load.h"

namespace tritonrl {
namespace {

constexpr char kHead[] = "lm_head.weight";
constexpr char kEmbedding[] = "model.embed_tokens.weight";
constexpr char kPointer[] =
    "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 16381516776\n";

class ModelFolderTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = MakeTempDirectory("folder").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string Path(const char* name) const { return JoinPath(dir_, name); }
  void Write(const char* name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(Path(name), text).ok());
  }
  void Remove(const char* name) { ASSERT_TRUE(RemoveTree(Path(name)).ok()); }
  // Replaces text of config.json.
  void Edit(const char* from, const char* to) {
    const std::string text = ReadFile(Path("config.json")).value();
    const std::string edited = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(edited, text);
    Write("config.json", edited);
  }

  // Saves a model with some tensors added or replaced.
  void Save(const ModelConfig& config, const std::map<std::string, at::Tensor>& changes = {},
            const std::string& strip = "") {
    const auto weights = SmallWeights(config, 1);
    ASSERT_TRUE(weights->Save(dir_).ok());
    std::map<std::string, at::Tensor> tensors = changes;
    for (const ParameterInfo& info : weights->layout().parameters) {
      tensors.emplace(info.name, weights->Get(info.name));
    }
    std::vector<std::pair<std::string, at::Tensor>> list;
    for (const auto& [name, tensor] : tensors) {
      list.emplace_back(name.substr(name.find(strip) == 0 ? strip.size() : 0), tensor);
    }
    ASSERT_TRUE(WriteSafetensors(Path("model.safetensors"), list).ok());
  }

  std::string LoadError() const {
    const auto loaded = LoadWeights(dir_, at::kCPU, at::kFloat);
    return loaded.ok() ? "no error" : std::string(loaded.status().message());
  }
  void ExpectError(const std::vector<std::string>& parts) const {
    const std::string error = LoadError();
    for (const std::string& part : parts) EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }

  std::string dir_;
};

TEST_F(ModelFolderTest, GitLfsPointersAreNamed) {
  Save(SmallConfig());
  Write("model.safetensors", kPointer);
  ExpectError({"model.safetensors: is a Git LFS pointer", "git lfs pull"});
  Write("config.json", kPointer);
  ExpectError({"config.json: is a Git LFS pointer"});
}

TEST_F(ModelFolderTest, AnAdapterNamesItsBaseModel) {
  Write("adapter_config.json", R"({"peft_type": "LORA", "base_model_name_or_path": "Q/Qwen3-8B"})");
  ExpectError({dir_, "holds a LoRA adapter for Q/Qwen3-8B", "merge"});
  Save(SmallConfig());
  Remove("model.safetensors");
  ExpectError({dir_, "holds a LoRA adapter for Q/Qwen3-8B"});
  Write("adapter_config.json", "damaged");
  ExpectError({dir_, "holds a LoRA adapter, not a model"});
}

TEST_F(ModelFolderTest, OtherFormatsAreNamed) {
  Save(SmallConfig());
  Remove("model.safetensors");
  ExpectError({dir_, "holds neither model.safetensors nor"});
  Write("pytorch_model-00001-of-00002.bin", "x");
  ExpectError({"the weights are in pytorch_model-00001-of-00002.bin", "save_pretrained"});
  Remove("pytorch_model-00001-of-00002.bin");
  Write("q4.gguf", "x");
  ExpectError({"the weights are in q4.gguf"});
}

TEST_F(ModelFolderTest, ShardsThatAreMissingOrOutsideAreNamed) {
  ASSERT_TRUE(SmallWeights(SmallConfig(), 1)->Save(dir_, at::kFloat, 40000).ok());
  const std::string index = ReadFile(Path("model.safetensors.index.json")).value();
  Write("model.safetensors.index.json",
        absl::StrReplaceAll(index, {{"\"model-00001", "\"../model-00001"}}));
  ExpectError({"model.safetensors.index.json: places tensor", "in \"../model-00001",
               "no file of the folder"});
  Write("model.safetensors.index.json",
        absl::StrReplaceAll(index, {{"\"model-00001", "\"shard-00001"}}));
  ExpectError({"shard-00001", "is missing, though model.safetensors.index.json lists it"});
}

TEST_F(ModelFolderTest, TensorsThatTheModelDoesNotHaveAreRefusedByName) {
  const std::string layer = "model.layers.0.self_attn.";
  Save(SmallConfig(),
       {{layer + "q_proj.bias", at::zeros({96})}, {layer + "k_proj.bias", at::zeros({48})}});
  ExpectError({"tensor model.layers.0.self_attn.k_proj.bias (and 1 more)", "attention_bias"});
  Save(SmallConfig(), {{layer + "q_proj.weight_scale_inv", at::zeros({1, 1})}});
  ExpectError({layer + "q_proj.weight_scale_inv is not part", "quantized", "bf16"});
  Save(SmallConfig(), {{layer + "q_proj.lora_A.weight", at::zeros({4, 40})}});
  ExpectError({layer + "q_proj.lora_A.weight is not part", "LoRA"});
  Save(SmallConfig(), {{"model.layers.3.mlp.up_proj.weight", at::zeros({72, 40})}});
  ExpectError({"model.layers.3.mlp.up_proj.weight is not part", "3 layers"});
  // Old files store RoPE's frequencies.
  Save(SmallConfig(), {{layer + "rotary_emb.inv_freq", at::zeros({12})}});
  EXPECT_EQ(LoadError(), "no error");
}

TEST_F(ModelFolderTest, MissingTensorsSayWhatTheFolderIs) {
  Save(SmallConfig(), {}, "model.");
  ExpectError({"tensor model.embed_tokens.weight is missing", "without \"model.\" before"});
  Save(SmallConfig());
  Edit("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  ExpectError({"tensor lm_head.weight is missing", "set tie_word_embeddings to true"});
}

// A head that repeats the embedding stays tied; one that differs is a parameter.
TEST_F(ModelFolderTest, AStoredHeadDecidesWhetherItIsTied) {
  const ModelConfig config = SmallConfig();
  const auto weights = SmallWeights(config, 1);
  Save(config, {{kHead, weights->Get(kEmbedding)}});
  EXPECT_TRUE(ReadModelConfig(dir_)->tie_word_embeddings);
  EXPECT_EQ(LoadError(), "no error");
  at::Tensor other = weights->Get(kEmbedding).clone();
  other.select(0, 100).select(0, 39).add_(1);  // the last element
  Save(config, {{kHead, other}});
  const auto loaded = LoadWeights(dir_, at::kCPU, at::kFloat);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_FALSE((*loaded)->config().tie_word_embeddings);
  EXPECT_TRUE(SameBits((*loaded)->Get(kHead), other));
}

TEST_F(ModelFolderTest, TheHeadsNormsGiveAMissingHeadDim) {
  Save(SmallConfig());
  Edit("\"head_dim\": 24,", "");
  const auto config = ReadModelConfig(dir_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head_dim, 24);  // hidden_size / num_attention_heads is 10
  EXPECT_EQ(LoadError(), "no error");
  ModelConfig llama = SmallConfig(ModelFamily::kLlama);
  llama.head_dim = 10;
  Save(llama);
  Edit("\"head_dim\": 10,", "");
  EXPECT_EQ(ReadModelConfig(dir_)->head_dim, 10);
  EXPECT_EQ(LoadError(), "no error");
}

TEST_F(ModelFolderTest, BiasesAreLoaded) {
  for (ModelFamily family : {ModelFamily::kQwen2, ModelFamily::kLlama, ModelFamily::kQwen3}) {
    ModelConfig config = SmallConfig(family, false);
    config.attention_bias = family != ModelFamily::kQwen2;
    config.mlp_bias = family == ModelFamily::kLlama;
    const auto weights = SmallWeights(config, 1);
    ASSERT_TRUE(weights->Save(dir_).ok());
    const auto loaded = LoadWeights(dir_, at::kCPU, at::kFloat);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(SameBits((*loaded)->flat(), weights->flat()));
  }
}

}  // namespace
}  // namespace tritonrl
