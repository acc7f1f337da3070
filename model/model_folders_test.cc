// Compares folders as people have them with `transformers`: the same prompt ids, greedy tokens and
// log-probabilities, or one sentence that says why a folder is refused.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "model/layers/packed_batch.h"
#include "model/tokenizer/tokenizer.h"
#include "model/transformer.h"
#include "model/weights/weights_load.h"

namespace tritonrl {
namespace {

using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

// Both sides compute in fp32 and round differently: log-probabilities differ by up to 5e-6. Weights
// rounded to fp16 change them by 5e-3.
constexpr double kTolerance = 2e-5;

class ModelFoldersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = new std::string(MakeTempDirectory("folders").value());
    const PythonEnv python = FindPythonEnv().value();
    RunCommandOptions options;
    options.timeout = absl::Minutes(4);
    options.env = python.Environment();
    const auto run = RunCommand(
        {python.interpreter, Runfile("model/testing/make_model_folders.py").value(), *root_},
        options);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(run->ok()) << run->err;
  }
  static void TearDownTestSuite() {
    EXPECT_TRUE(RemoveTree(*root_).ok());
    delete root_;
  }

  static std::string Folder(const std::string& name) { return JoinPath(*root_, name); }

  static std::string* root_;
};

std::string* ModelFoldersTest::root_ = nullptr;

// Appends `count` greedy tokens to `tokens`; returns their log-probabilities.
std::vector<double> Generate(const Transformer& model, size_t count, Ids* tokens) {
  std::vector<double> chosen;
  for (size_t i = 0; i < count; ++i) {
    const at::Tensor log_probs = model.Logits(PackSequences({*tokens}))
                                     .select(0, static_cast<int64_t>(tokens->size()) - 1)
                                     .log_softmax(-1);
    const int64_t next = log_probs.argmax().item<int64_t>();
    chosen.push_back(log_probs[next].item<double>());
    tokens->push_back(static_cast<int32_t>(next));
  }
  return chosen;
}

TEST_F(ModelFoldersTest, WhatIsLoadedGivesTheNumbersOfTransformers) {
  const Json expected = Json::parse(ReadFile(Folder("expected.json")).value());
  const std::string prompt = expected.at("prompt");
  EXPECT_GE(expected.at("folders").size(), 16);
  for (const auto& [name, want] : expected.at("folders").items()) {
    SCOPED_TRACE(name);
    const auto tokenizer = Tokenizer::Load(JoinPath(Folder(name), "tokenizer.json"));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    Ids ids = tokenizer->Encode(prompt, true, /*add_special=*/true);
    EXPECT_EQ(ids, want.at("ids").get<Ids>());
    const auto weights = LoadWeights(Folder(name), at::kCPU, at::kFloat);
    ASSERT_TRUE(weights.ok()) << weights.status();
    const Transformer model((*weights)->config(), *weights);
    const Ids greedy = want.at("greedy").get<Ids>();
    const auto expected_log_probs = want.at("log_probs").get<std::vector<double>>();
    EXPECT_GE(greedy.size(), 10);
    ASSERT_EQ(expected_log_probs.size(), greedy.size());
    EXPECT_GT(want.at("margin").get<double>(), 2 * kTolerance) << "rounding may decide a token";
    const size_t length = ids.size();
    const std::vector<double> log_probs = Generate(model, greedy.size(), &ids);
    EXPECT_EQ(Ids(ids.begin() + static_cast<int64_t>(length), ids.end()), greedy);
    for (size_t i = 0; i < greedy.size(); ++i) {
      EXPECT_NEAR(log_probs[i], expected_log_probs[i], kTolerance) << "token " << i;
    }
  }
}

TEST_F(ModelFoldersTest, WhatIsRefusedSaysWhatItIs) {
  const std::map<std::string, std::string> says = {
      {"surplus_bias", "self_attn.q_proj.bias is not part of the model"},
      {"surplus_scale", "self_attn.q_proj.weight_scale_inv is not part of the model"},
      {"quantized", "field quantization_config says that the weights are quantized"},
      {"fp8", "element type F8_E4M3, which is not supported: the checkpoint is quantized"},
      {"no_head", "tensor lm_head.weight is missing"},
      {"no_prefix", "the file has it without \"model.\" before its name"},
      {"sliding", "field layer_types names \"sliding_attention\""},
      {"missing_shard", "model-00002-of-00002.safetensors: is missing"},
      {"shard_outside", "in \"../model-0000"},
      {"pickled", "the weights are in pytorch_model.bin"}};
  for (const auto& [name, text] : says) {
    const absl::Status status = LoadWeights(Folder(name), at::kCPU, at::kFloat).status();
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << name << ": " << status;
    EXPECT_NE(status.message().find(Folder(name)), absl::string_view::npos) << status;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
  }
  const absl::Status status =
      Tokenizer::Load(JoinPath(Folder("vocab_only"), "tokenizer.json")).status();
  EXPECT_NE(status.message().find("vocab.json beside it is not read"), absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace tritonrl
