#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "rollout/factory/make_engine.h"

namespace tritonrl {
namespace {

// A tokenizer of three ids: "a", "<|im_end|>" and "<|endoftext|>".
constexpr char kTokenizer[] = R"({
  "added_tokens": [{"id": 1, "content": "<|im_end|>", "special": true},
                   {"id": 2, "content": "<|endoftext|>", "special": true}],
  "normalizer": null, "decoder": {"type": "ByteLevel"},
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
  "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";

ModelConfig SmallConfig(int64_t vocab_size) {
  ModelConfig config;
  config.hidden_size = 16;
  config.num_layers = 1;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 8;
  config.intermediate_size = 16;
  config.vocab_size = vocab_size;
  config.max_positions = 32;
  config.tie_word_embeddings = true;
  config.eos_token_ids = {2};
  return config;
}

class LoadModelTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::string> dir = MakeTempDirectory("load_model_test_");
    ASSERT_TRUE(dir.ok()) << dir.status();
    dir_ = *dir;
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  void Write(int64_t vocab_size) {
    ASSERT_TRUE(Weights::RandomInit(SmallConfig(vocab_size), 1)->Save(dir_).ok());
    ASSERT_TRUE(WriteFileAtomic(JoinPath(dir_, "tokenizer.json"), kTokenizer).ok());
  }

  std::string dir_;
};

TEST_F(LoadModelTest, LoadsAllParts) {
  Write(8);
  absl::StatusOr<LoadedModel> model = LoadModel(dir_, at::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->weights->config().vocab_size, 8);
  EXPECT_EQ(model->tokenizer.vocab_size(), 3);
  EXPECT_EQ(model->stop_ids, std::vector<int32_t>{2});
  // The end of a chat model's turns is often in this file alone.
  const std::string generation = JoinPath(dir_, "generation_config.json");
  ASSERT_TRUE(WriteFileAtomic(generation, R"({"eos_token_id": [1]})").ok());
  EXPECT_EQ(LoadModel(dir_, at::kCPU)->stop_ids, (std::vector<int32_t>{1, 2}));
}

TEST_F(LoadModelTest, PartsThatDoNotFitAreNamed) {
  absl::Status status = LoadModel(dir_, at::kCPU).status();
  EXPECT_NE(status.message().find("tokenizer.json"), absl::string_view::npos) << status;
  Write(8);
  std::string longer = kTokenizer;
  longer.replace(longer.find("\"a\": 0"), 6, "\"a\": 0, \"b\": 8");
  ASSERT_TRUE(WriteFileAtomic(JoinPath(dir_, "tokenizer.json"), longer).ok());
  status = LoadModel(dir_, at::kCPU).status();
  EXPECT_EQ(status.message(), dir_ +
                                  ": tokenizer.json has ids up to 8, but vocab_size in "
                                  "config.json is 8; take the two files from the same model");
}

TEST_F(LoadModelTest, AnAddedTokenWithoutARowIsNoError) {
  Write(8);
  std::string padded = kTokenizer;
  padded.replace(padded.find("[{"), 1, R"([{"id": 8, "content": "<|pad|>", "special": false},)");
  ASSERT_TRUE(WriteFileAtomic(JoinPath(dir_, "tokenizer.json"), padded).ok());
  absl::StatusOr<LoadedModel> model = LoadModel(dir_, at::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->tokenizer.Encode("a<|pad|>"), (std::vector<int32_t>{0, 8}));
}

TEST(ParseDevice, KnowsItsWords) {
  EXPECT_TRUE(ParseDevice("cpu")->is_cpu());
  EXPECT_TRUE(ParseDevice("auto").ok());
  for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99"}) {
    const absl::Status status = ParseDevice(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace tritonrl
