#include "model/weights/weights.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "model/layers/packed_batch.h"
#include "model/testing/test_util.h"
#include "model/weights/safetensors.h"
#include "model/weights/weights_load.h"

namespace tritonrl {
namespace {

class WeightsTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = MakeTempDirectory("weights").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string File() const { return JoinPath(dir_, "model.safetensors"); }

  // Returns the error message of loading dir_, which must fail.
  std::string LoadError() const {
    const auto loaded = LoadWeights(dir_, at::kCPU, at::kFloat);
    return loaded.ok() ? "no error" : std::string(loaded.status().message());
  }

  // Saves small weights with some tensors replaced, or left out if undefined.
  void SaveChanged(const std::map<std::string, at::Tensor>& changes) {
    const auto weights = SmallWeights(SmallConfig(), 1);
    ASSERT_TRUE(weights->Save(dir_).ok());
    std::vector<std::pair<std::string, at::Tensor>> tensors;
    for (const ParameterInfo& info : weights->layout().parameters) {
      const auto change = changes.find(info.name);
      const at::Tensor tensor = change == changes.end() ? weights->Get(info.name) : change->second;
      if (tensor.defined()) tensors.emplace_back(info.name, tensor);
    }
    ASSERT_TRUE(WriteSafetensors(File(), tensors).ok());
  }

  std::string dir_;
};

void ExpectContains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

const char kDown[] = "model.layers.1.mlp.down_proj.weight";

TEST_F(WeightsTest, SavedAndLoadedInOneFileOrShards) {
  for (int64_t shard_bytes : {int64_t{1} << 40, int64_t{40000}}) {
    const auto weights = SmallWeights(SmallConfig(ModelFamily::kQwen3, false), 1);
    ASSERT_TRUE(weights->Save(dir_, at::kFloat, shard_bytes).ok());
    EXPECT_EQ(FileExists(File()), shard_bytes > 40000);
    const auto again = LoadWeights(dir_, at::kCPU, at::kFloat);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(SameBits((*again)->flat(), weights->flat()));
  }
  // Saving as one file again must remove the shards and their index.
  ASSERT_TRUE(SmallWeights(SmallConfig(), 2)->Save(dir_).ok());
  EXPECT_EQ(ListDirectory(dir_).value(),
            (std::vector<std::string>{"config.json", "model.safetensors"}));
}

// The old file is gone as soon as the shards are complete: no failure later may leave old weights.
TEST_F(WeightsTest, AFailureAfterTheShardsLeavesNoOldWeights) {
  const auto weights = SmallWeights(SmallConfig(), 2);
  ASSERT_TRUE(SmallWeights(SmallConfig(), 1)->Save(dir_).ok());
  const std::string config = JoinPath(dir_, "config.json");
  ASSERT_TRUE(RemoveTree(config).ok());
  ASSERT_TRUE(CreateDirectories(JoinPath(config, "in the way")).ok());
  EXPECT_FALSE(weights->Save(dir_, at::kFloat, 40000).ok());
  const auto reader = SafetensorsReader::OpenFolder(dir_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto read = reader->Read(kDown);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(SameBits(*read, weights->Get(kDown)));
}

// The embedding has more elements than one chunk of the reader.
TEST_F(WeightsTest, PartsAreReadAloneAndLargeTensorsInChunks) {
  ModelConfig config = SmallConfig();
  config.vocab_size = 250000;
  const auto weights = std::make_shared<Weights>(config, at::kCPU, at::kFloat);
  ASSERT_GT(weights->layout().parameters[0].size, int64_t{9} << 20);
  // bfloat16 represents these numbers exactly, so both types can be compared.
  weights->flat().copy_(at::arange(weights->flat().numel(), at::kLong).remainder(251));
  ASSERT_TRUE(weights->Save(dir_).ok());
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto whole = LoadWeights(dir_, at::kCPU, type);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const int64_t size = (*whole)->flat().numel();
    for (const ParameterInfo& info : weights->layout().parameters) {
      EXPECT_TRUE((*whole)->Get(info.name).to(at::kFloat).equal(weights->Get(info.name)));
    }
    const std::vector<FlatRange> parts = {{100, 9000001}, {9000100, size - 77}};
    const auto some = LoadWeights(dir_, at::kCPU, type, parts);
    ASSERT_TRUE(some.ok()) << some.status();
    at::Tensor expected = at::zeros_like((*whole)->flat());
    for (const FlatRange& part : parts) {
      expected.narrow(0, part.begin, part.size())
          .copy_((*whole)->flat().narrow(0, part.begin, part.size()));
    }
    EXPECT_TRUE((*some)->flat().equal(expected));
  }
}

TEST_F(WeightsTest, Bfloat16RoundsOnce) {
  const auto weights = SmallWeights(SmallConfig(), 1);
  ASSERT_TRUE(weights->Save(dir_, at::kBFloat16).ok());
  const auto wide = LoadWeights(dir_, at::kCPU, at::kFloat).value();
  EXPECT_TRUE(SameBits(wide->flat(), weights->flat().to(at::kBFloat16).to(at::kFloat)));
  const auto narrow = LoadWeights(dir_, at::kCPU, at::kBFloat16).value();
  EXPECT_TRUE(SameBits(narrow->flat(), weights->flat().to(at::kBFloat16)));
}

TEST_F(WeightsTest, NamedTensorsAreViewsOfTheFlatBuffer) {
  const ModelConfig config = SmallConfig();
  Weights weights(config, at::kCPU, at::kFloat);
  weights.Get(kDown).fill_(2.0);
  EXPECT_EQ(weights.flat().sum().item<double>(), 2.0 * 40 * 72);
  int64_t parameters = 0;
  for (const ParameterInfo& info : weights.layout().parameters) {
    EXPECT_EQ(info.offset % 64, 0);
    parameters += info.size;
  }
  EXPECT_EQ(parameters, config.NumParameters());
  EXPECT_ANY_THROW(weights.Get("model.layers.9.mlp.down_proj.weight"));
}

TEST_F(WeightsTest, RandomInitIsKeyedBySeed) {
  const ModelConfig config = SmallConfig();
  const auto a = Weights::RandomInit(config, 7), b = Weights::RandomInit(config, 7);
  EXPECT_TRUE(SameBits(a->flat(), b->flat()));
  EXPECT_FALSE(SameBits(a->flat(), Weights::RandomInit(config, 8)->flat()));
  EXPECT_NEAR(a->Get("model.embed_tokens.weight").std().item<double>(), 0.02, 0.001);
  EXPECT_NEAR(a->Get(kDown).std().item<double>(), 0.02 / std::sqrt(6.0), 0.0005);
  EXPECT_EQ(a->Get("model.norm.weight").min().item<double>(), 1.0);
}

// Several threads draw in pieces, yet element n is the n-th number of one Philox sequence.
TEST_F(WeightsTest, RandomInitIsOneRowOfDraws) {
  ModelConfig config = SmallConfig();
  config.vocab_size = 5000;
  const auto weights = Weights::RandomInit(config, 7);
  const ParameterInfo& first = weights->layout().parameters[0];
  ASSERT_EQ(first.name, "model.embed_tokens.weight");
  ASSERT_GT(first.size, 3 << 16);
  const at::Tensor drawn = weights->flat().narrow(0, first.offset, first.size);
  Philox row(MixKeys({7, 0}));
  for (int64_t i = 0; i < first.size; ++i) {
    ASSERT_EQ(drawn.const_data_ptr<float>()[i], static_cast<float>(row.Normal() * 0.02)) << i;
  }
}

// Parts drawn alone equal the same ranges of the whole model, wherever the parts begin.
TEST_F(WeightsTest, RandomInitDrawsParts) {
  const ModelConfig config = SmallConfig();
  const auto whole = Weights::RandomInit(config, 7);
  const int64_t size = whole->layout().flat_size;
  const int64_t embedding = whole->layout().parameters[0].size;
  ASSERT_GT(embedding, 1000);
  const std::vector<FlatRange> mine = {{0, 77}, {900, size - 1001}};
  const auto part = Weights::RandomInit(config, 7, at::kCPU, at::kFloat, mine);
  for (const FlatRange& range : mine) {
    EXPECT_TRUE(SameBits(part->flat().narrow(0, range.begin, range.size()),
                         whole->flat().narrow(0, range.begin, range.size())));
  }
  EXPECT_FALSE(SameBits(part->flat().narrow(0, 77, 823), whole->flat().narrow(0, 77, 823)));
}

TEST_F(WeightsTest, MissingTensorAndWrongShapeNameFileAndTensor) {
  SaveChanged({{kDown, at::Tensor()}});
  ExpectContains(LoadError(), {dir_, kDown, "is missing", "[40, 72]"});
  SaveChanged({{kDown, at::zeros({40, 73})}});
  ExpectContains(LoadError(), {File(), kDown, "has shape [40, 73]", "[40, 72]"});
  SaveChanged({{kDown, at::zeros({40, 72}, at::kLong)}});
  ExpectContains(LoadError(), {File(), kDown, "floating-point"});
}

TEST_F(WeightsTest, TruncatedFileNamesFileAndTensor) {
  SaveChanged({});
  const std::string whole = ReadFile(File()).value();
  ASSERT_TRUE(WriteFileAtomic(File(), whole.substr(0, whole.size() - 1)).ok());
  ExpectContains(LoadError(), {File(), "truncated", "model.norm.weight", "download it again"});
  ASSERT_TRUE(WriteFileAtomic(File(), whole.substr(0, 100)).ok());
  ExpectContains(LoadError(), {File(), "truncated within its header"});
  ASSERT_TRUE(WriteFileAtomic(File(), "short").ok());
  ExpectContains(LoadError(), {File(), "truncated"});
  ASSERT_TRUE(WriteFileAtomic(File(), std::string(200, 'x')).ok());
  ExpectContains(LoadError(), {File(), "not a safetensors file"});
  ASSERT_TRUE(RemoveTree(File()).ok());
  ExpectContains(LoadError(), {dir_, "neither model.safetensors nor"});
}

TEST_F(WeightsTest, MalformedHeadersAreRefused) {
  SaveChanged({});
  const std::pair<const char*, const char*> cases[] = {
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "does not fit its shape"},
      {R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,8]}})", "element type F4"},
      {R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})",
       "element type F8_E4M3, which is not supported: the checkpoint is quantized"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "malformed shape"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
       "impossible shape"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551614],"data_offsets":[8,0]}})",
       "malformed shape"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)"
       R"([9223372036854775804,9223372036854775808]}})",
       "malformed data offsets"},
      {R"({"a":[1]})", "malformed header entry"},
      {R"([1])", "header is not JSON"}};
  for (const auto& [header, message] : cases) {
    std::string text(8, '\0');
    text[0] = static_cast<char>(std::string(header).size());
    ASSERT_TRUE(WriteFileAtomic(File(), text + header + "12345678").ok());
    ExpectContains(LoadError(), {File(), message});
  }
}

TEST_F(WeightsTest, MissingShardNamesIt) {
  ASSERT_TRUE(SmallWeights(SmallConfig(), 1)->Save(dir_, at::kFloat, 40000).ok());
  std::string shard;
  const std::vector<std::string> names = ListDirectory(dir_).value();
  for (const std::string& name : names) {
    if (name.find("model-00002-of") == 0) shard = JoinPath(dir_, name);
  }
  ASSERT_TRUE(RemoveTree(shard).ok());
  ExpectContains(LoadError(), {shard, "is missing, though"});
}

TEST_F(WeightsTest, AFailedWriteKeepsTheOldFile) {
  SaveChanged({});
  const std::string before = ReadFile(File()).value();
  signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const rlimit limit = {before.size() / 2, unlimited.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = SmallWeights(SmallConfig(), 2)->Save(dir_);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  EXPECT_FALSE(status.ok());
  ExpectContains(std::string(status.message()), {File()});
  EXPECT_EQ(ReadFile(File()).value(), before);
}

TEST(PackedBatchTest, TokensPositionsAndTargets) {
  const std::vector<std::vector<int32_t>> sequences = {{5, 6, 7}, {}, {8, 9}};
  const PackedBatch batch = PackSequences(sequences);
  EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 3, 3, 5}));
  EXPECT_EQ(batch.num_sequences(), 3);
  EXPECT_EQ(batch.num_tokens(), 5);
  EXPECT_EQ(batch.max_length(), 3);
  auto list = [](const at::Tensor& t) {
    return std::vector<int64_t>(t.data_ptr<int64_t>(), t.data_ptr<int64_t>() + t.numel());
  };
  EXPECT_EQ(list(batch.positions), (std::vector<int64_t>{0, 1, 2, 0, 1}));
  EXPECT_EQ(list(NextTokenTargets(batch)), (std::vector<int64_t>{6, 7, -1, 9, -1}));
  EXPECT_EQ(list(NextTokenTargets(batch, {2, 0, 2})), (std::vector<int64_t>{-1, 7, -1, -1, -1}));
}

}  // namespace
}  // namespace tritonrl
