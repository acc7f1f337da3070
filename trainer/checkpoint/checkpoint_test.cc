#include "trainer/checkpoint/checkpoint.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "trainer/checkpoint/manifest.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

// The padding between parameters stays zero, as the backward pass leaves it.
void FillRandom(Gradients* gradients) {
  for (const ParameterInfo& info : gradients->layout().parameters) {
    at::Tensor(gradients->Get(info.name)).normal_();
  }
}

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("checkpoint");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
    policy_ = LoadTinyPolicy(dir_ + "/model");
    optimizer_ = std::make_unique<AdamW>(OptimizerConfig(), policy_.weights);
    state_.program = "sft";
    state_.seed = 7;
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  // One random update, then a checkpoint of `step`.
  absl::Status StepAndSave(CheckpointStore* store, int64_t step) {
    Gradients gradients(*policy_.weights);
    FillRandom(&gradients);
    RETURN_IF_ERROR(optimizer_->Step(0.01, &gradients).status());
    state_.step = step;
    return store->Save(state_, policy_, *optimizer_);
  }

  std::string dir_;
  Policy policy_;
  std::unique_ptr<AdamW> optimizer_;
  TrainingState state_;
};

TEST_F(CheckpointTest, RestoresTheSameBits) {
  CheckpointStore store(dir_ + "/checkpoints", 2);
  state_.extra["journal"] = "line 12";
  state_.consecutive_skipped = 1;
  ASSERT_TRUE(StepAndSave(&store, 5).ok());

  Policy other = LoadTinyPolicy(dir_ + "/other");
  AdamW other_optimizer(OptimizerConfig(), other.weights);
  std::vector<std::string> warnings;
  const auto found = store.LoadNewest({"sft", 0, 7}, &other, &other_optimizer, &warnings);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->step, 5);
  EXPECT_EQ((*found)->consecutive_skipped, 1);
  EXPECT_EQ((*found)->extra.at("journal"), "line 12");
  EXPECT_TRUE(other.weights->flat().equal(policy_.weights->flat()));
  EXPECT_TRUE(other_optimizer.first_moment().equal(optimizer_->first_moment()));
  EXPECT_TRUE(other_optimizer.second_moment().equal(optimizer_->second_moment()));
  EXPECT_EQ(other_optimizer.updates(), 1);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(CheckpointTest, RestoresTheMasterOfBf16Weights) {
  PolicyConfig config = TinyPolicyConfig(dir_ + "/model");
  config.set_train_dtype(BFLOAT16);
  auto first = LoadPolicy(config, {.threads = 1}), second = LoadPolicy(config, {.threads = 1});
  ASSERT_TRUE(first.ok() && second.ok());
  AdamW a(OptimizerConfig(), first->weights), b(OptimizerConfig(), second->weights);
  Gradients gradients(*first->weights);
  FillRandom(&gradients);
  ASSERT_TRUE(a.Step(1e-4, &gradients).ok());
  CheckpointStore store(dir_ + "/checkpoints", 1);
  state_.step = 1;
  ASSERT_TRUE(store.Save(state_, *first, a).ok());
  std::vector<std::string> warnings;
  ASSERT_TRUE(store.LoadNewest(state_, &*second, &b, &warnings).ok());
  EXPECT_TRUE(b.master().equal(a.master()));
  EXPECT_TRUE(second->weights->flat().equal(first->weights->flat()));
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  CheckpointStore store(dir_ + "/checkpoints", 2);
  for (const int step : {1, 2, 3, 10}) ASSERT_TRUE(StepAndSave(&store, step).ok());
  EXPECT_EQ(*store.Steps(), (std::vector<int64_t>{3, 10}));
}

TEST_F(CheckpointTest, IgnoresAnUnfinishedOne) {
  CheckpointStore store(dir_ + "/checkpoints", 2);
  ASSERT_TRUE(StepAndSave(&store, 1).ok());
  ASSERT_TRUE(CreateDirectories(dir_ + "/checkpoints/.writing_step_000002/model").ok());
  std::vector<std::string> warnings;
  const auto found = store.LoadNewest(state_, &policy_, optimizer_.get(), &warnings);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)->step, 1);
  ASSERT_TRUE(StepAndSave(&store, 2).ok());  // the leftover folder does no harm
}

TEST_F(CheckpointTest, PassesOverADamagedOneAndNamesTheFile) {
  CheckpointStore store(dir_ + "/checkpoints", 3);
  ASSERT_TRUE(StepAndSave(&store, 1).ok());
  const at::Tensor at_step_1 = policy_.weights->flat().clone();
  ASSERT_TRUE(StepAndSave(&store, 2).ok());
  ASSERT_TRUE(StepAndSave(&store, 3).ok());
  // Step 3 loses its last byte, step 2 gets one byte changed.
  const std::string truncated = store.PathOf(3) + "/optimizer.bin";
  ASSERT_EQ(truncate(truncated.c_str(), *FileSize(truncated) - 1), 0);
  const std::string changed = store.PathOf(2) + "/model/model.safetensors";
  std::string bytes = *ReadFile(changed);
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomic(changed, bytes).ok());

  std::vector<std::string> warnings;
  const auto found = store.LoadNewest(state_, &policy_, optimizer_.get(), &warnings);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->step, 1);
  EXPECT_TRUE(policy_.weights->flat().equal(at_step_1));
  ASSERT_EQ(warnings.size(), 2);
  EXPECT_NE(warnings[0].find("step_000003/optimizer.bin"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("truncated"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("model.safetensors"), std::string::npos) << warnings[1];
  EXPECT_NE(warnings[1].find("checksum"), std::string::npos) << warnings[1];
}

TEST_F(CheckpointTest, SaysSoWhenAllAreDamaged) {
  CheckpointStore store(dir_ + "/checkpoints", 2);
  ASSERT_TRUE(StepAndSave(&store, 1).ok());
  ASSERT_TRUE(RemoveTree(store.PathOf(1) + "/state.json").ok());
  std::vector<std::string> warnings;
  const auto found = store.LoadNewest(state_, &policy_, optimizer_.get(), &warnings);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(found.status().message().find("state.json is missing"), absl::string_view::npos)
      << found.status();
}

TEST_F(CheckpointTest, RefusesAnotherRunsCheckpoint) {
  CheckpointStore store(dir_ + "/checkpoints", 2);
  ASSERT_TRUE(StepAndSave(&store, 1).ok());
  std::vector<std::string> warnings;
  const auto found = store.LoadNewest({"sft", 0, 8}, &policy_, optimizer_.get(), &warnings);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(found.status().message().find("seed 7"), absl::string_view::npos) << found.status();
}

// Runs `work` in a child process, so that limits and user ids of this process do not change, and
// returns its text.
template <typename Work>
std::string InChild(const Work& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = work();
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = read(ends[0], text.data(), text.size());
  text.resize(got > 0 ? got : 0);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

TEST_F(CheckpointTest, AFullDiskLeavesTheOlderOneAndSaysSo) {
  CheckpointStore store(dir_ + "/checkpoints", 2);
  ASSERT_TRUE(StepAndSave(&store, 1).ok());
  state_.step = 2;
  const std::string message = InChild([&] {
    // With a limit on file sizes write() fails, as on a full disk.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {20000, 20000};
    setrlimit(RLIMIT_FSIZE, &limit);
    return std::string(store.Save(state_, policy_, *optimizer_).message());
  });
  EXPECT_NE(message.find("the checkpoint of step 2 was not written"), std::string::npos) << message;
  EXPECT_NE(message.find("step_000002"), std::string::npos) << message;
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_NE(message.find("the checkpoint of step 1 is intact"), std::string::npos) << message;
  EXPECT_EQ(*ListDirectory(dir_ + "/checkpoints"), std::vector<std::string>{"step_000001"});
  EXPECT_TRUE(VerifyManifest(store.PathOf(1)).ok());
}

TEST_F(CheckpointTest, NoPermissionNamesTheFolder) {
  // In /tmp, because the other user may not be able to reach root's test folder.
  char dir[] = "/tmp/checkpoint_test_XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string checkpoints = std::string(dir) + "/checkpoints";
  CheckpointStore store(checkpoints, 2);
  ASSERT_TRUE(CreateDirectories(checkpoints).ok());
  ASSERT_EQ(chmod(checkpoints.c_str(), 0555), 0);
  ASSERT_EQ(chmod(dir, 0755), 0);
  state_.step = 2;
  const std::string message = InChild([&]() -> std::string {
    if (geteuid() == 0 && setuid(65534) != 0) return "setuid failed";  // root may write anywhere
    return std::string(store.Save(state_, policy_, *optimizer_).message());
  });
  EXPECT_NE(message.find("Permission denied"), std::string::npos) << message;
  EXPECT_NE(message.find(checkpoints), std::string::npos) << message;
  EXPECT_TRUE(RemoveTree(dir).ok());
  EXPECT_NE(message.find("there is no earlier checkpoint"), std::string::npos) << message;
}

// The format of older manifests, with one digest per whole file.
TEST(CheckpointFilesTest, AManifestWithDigestsOfWholeFilesIsRead) {
  const std::string dir = MakeTempDirectory("manifest").value();
  const std::string contents = "the optimizer's state";
  const auto write = [&](const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(JoinPath(dir, "optimizer.bin"), text).ok());
  };
  write(contents);
  const nlohmann::json manifest = {
      {"files", {{"optimizer.bin", {{"size", contents.size()}, {"sha256", Sha256Hex(contents)}}}}}};
  ASSERT_TRUE(WriteFileAtomic(JoinPath(dir, "manifest.json"), manifest.dump()).ok());
  EXPECT_TRUE(VerifyManifest(dir).ok()) << VerifyManifest(dir);
  write("the optimizer's State");
  EXPECT_TRUE(absl::IsDataLoss(VerifyManifest(dir))) << VerifyManifest(dir);
  EXPECT_TRUE(RemoveTree(dir).ok());
}

}  // namespace
}  // namespace tritonrl
