// Checkpoints that are written during training. A named pipe among the tokenizer's files blocks the
// writing thread for as long as a test needs.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

class CheckpointBackgroundTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("checkpoint_background");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
    policy_ = LoadTinyPolicy(dir_ + "/model");
    optimizer_ = std::make_unique<AdamW>(OptimizerConfig(), policy_.weights);
    state_.program = "sft";
    pipe_ = dir_ + "/model/merges.txt";
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  void Update() {
    Gradients gradients(*policy_.weights);
    for (const ParameterInfo& info : gradients.layout().parameters) {
      at::Tensor(gradients.Get(info.name)).normal_();
    }
    ASSERT_TRUE(optimizer_->Step(0.01, &gradients).ok());
  }
  absl::Status UpdateAndBegin(CheckpointStore* store, int64_t step) {
    Update();
    state_.step = step;
    return store->Begin(state_, policy_, *optimizer_);
  }

  void HoldUp() { ASSERT_EQ(mkfifo(pipe_.c_str(), 0600), 0); }
  // Unblocks the writing thread with an end of file; opening the pipe waits for the thread.
  void LetGo() {
    const int fd = open(pipe_.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    close(fd);
    ASSERT_EQ(unlink(pipe_.c_str()), 0);
  }
  // Polls until the checkpoint of `step` is published or an error occurs.
  absl::Status PollUntil(CheckpointStore* store, int64_t step) {
    for (int i = 0; i < 5000 && !DirectoryExists(store->PathOf(step)); ++i) {
      RETURN_IF_ERROR(store->Poll());
      absl::SleepFor(absl::Milliseconds(2));
    }
    return absl::OkStatus();
  }

  std::string Checkpoints() const { return dir_ + "/checkpoints"; }

  std::string dir_, pipe_;
  Policy policy_;
  std::unique_ptr<AdamW> optimizer_;
  TrainingState state_;
};

TEST_F(CheckpointBackgroundTest, HoldsTheStateOfItsBeginningWhateverTrainingDoesMeanwhile) {
  CheckpointStore store(Checkpoints(), 2);
  HoldUp();
  ASSERT_TRUE(UpdateAndBegin(&store, 1).ok());
  const at::Tensor weights = policy_.weights->flat().clone();
  const at::Tensor moment = optimizer_->second_moment().clone();
  for (int i = 0; i < 3; ++i) {
    Update();
    ASSERT_TRUE(store.Poll().ok());
    EXPECT_TRUE(store.Steps()->empty());
  }
  LetGo();
  ASSERT_TRUE(PollUntil(&store, 1).ok());
  EXPECT_EQ(*store.Steps(), std::vector<int64_t>{1});
  EXPECT_FALSE(policy_.weights->flat().equal(weights));
  CheckpointStore reader(Checkpoints(), 2);
  std::vector<std::string> warnings;
  const auto found = reader.LoadNewest(state_, &policy_, optimizer_.get(), &warnings);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->step, 1);
  EXPECT_TRUE(policy_.weights->flat().equal(weights));
  EXPECT_TRUE(optimizer_->second_moment().equal(moment));
  EXPECT_EQ(optimizer_->updates(), 1);
}

TEST_F(CheckpointBackgroundTest, TheNextOneWaitsForTheOneBefore) {
  CheckpointStore store(Checkpoints(), 2);
  for (const int step : {1, 2, 3, 10}) ASSERT_TRUE(UpdateAndBegin(&store, step).ok());
  // All but the last exist now; the last exists after Finish.
  EXPECT_TRUE(VerifyManifest(store.PathOf(3)).ok());
  ASSERT_TRUE(store.Finish().ok());
  EXPECT_EQ(*store.Steps(), (std::vector<int64_t>{3, 10}));
  EXPECT_TRUE(VerifyManifest(store.PathOf(10)).ok());
  EXPECT_EQ(ListDirectory(Checkpoints())->size(), 2);
  ASSERT_TRUE(store.Finish().ok());  // nothing to do
  ASSERT_TRUE(store.Poll().ok());
}

TEST_F(CheckpointBackgroundTest, AFailureIsReportedByTheNextCallAndLosesNothing) {
  CheckpointStore store(Checkpoints(), 3);
  ASSERT_TRUE(UpdateAndBegin(&store, 1).ok());
  ASSERT_TRUE(store.Finish().ok());
  // Only the thread detects this error: a tokenizer's file that cannot be read.
  ASSERT_TRUE(CreateDirectories(pipe_).ok());
  const std::string sentence = "the checkpoint of step 2 was not written: ";
  for (int call = 0; call < 3; ++call) {
    ASSERT_TRUE(UpdateAndBegin(&store, 2).ok());
    const absl::Status status =
        call == 0 ? store.Finish() : (call == 1 ? PollUntil(&store, 2) : UpdateAndBegin(&store, 3));
    EXPECT_EQ(status.message().substr(0, sentence.size()), sentence) << status;
    EXPECT_NE(status.message().find(pipe_), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find("the checkpoint of step 1 is intact"), absl::string_view::npos)
        << status;
    EXPECT_EQ(*ListDirectory(Checkpoints()), std::vector<std::string>{"step_000001"});
    EXPECT_TRUE(VerifyManifest(store.PathOf(1)).ok());
    EXPECT_TRUE(store.Poll().ok()) << "it is reported once";
  }
  ASSERT_TRUE(RemoveTree(pipe_).ok());
  ASSERT_TRUE(UpdateAndBegin(&store, 2).ok());
  ASSERT_TRUE(store.Finish().ok());
  EXPECT_EQ(*store.Steps(), (std::vector<int64_t>{1, 2}));
}

TEST_F(CheckpointBackgroundTest, AFullDiskIsReportedByTheNextCall) {
  CheckpointStore store(Checkpoints(), 2);
  ASSERT_TRUE(UpdateAndBegin(&store, 1).ok());
  ASSERT_TRUE(store.Finish().ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();  // so that the file size limit does not affect this process
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);  // write() then fails, as on a full disk
    const rlimit limit = {20000, 20000};
    setrlimit(RLIMIT_FSIZE, &limit);
    state_.step = 2;
    const absl::Status begun = store.Begin(state_, policy_, *optimizer_);
    const std::string text = begun.ok() ? std::string(store.Finish().message()) : "Begin failed";
    _exit(write(ends[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  close(ends[1]);
  std::string message(4096, '\0');
  const ssize_t got = read(ends[0], message.data(), message.size());
  message.resize(got > 0 ? got : 0);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  EXPECT_NE(message.find("the checkpoint of step 2 was not written"), std::string::npos) << message;
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_NE(message.find("the checkpoint of step 1 is intact"), std::string::npos) << message;
  EXPECT_EQ(*ListDirectory(Checkpoints()), std::vector<std::string>{"step_000001"});
}

TEST_F(CheckpointBackgroundTest, AKillWhileItIsWrittenLeavesTheOneBefore) {
  CheckpointStore store(Checkpoints(), 2);
  ASSERT_TRUE(UpdateAndBegin(&store, 1).ok());
  ASSERT_TRUE(store.Finish().ok());
  HoldUp();
  const pid_t child = fork();
  if (child == 0) {
    state_.step = 2;
    const absl::Status begun = store.Begin(state_, policy_, *optimizer_);
    if (begun.ok()) pause();
    _exit(1);
  }
  const std::string writing = Checkpoints() + "/.writing_step_000002";
  const std::string weights = writing + "/model/model.safetensors";
  for (int i = 0; i < 5000 && !FileExists(weights); ++i) absl::SleepFor(absl::Milliseconds(2));
  EXPECT_TRUE(FileExists(weights));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(unlink(pipe_.c_str()), 0);

  CheckpointStore again(Checkpoints(), 2);
  std::vector<std::string> warnings;
  const auto found = again.LoadNewest(state_, &policy_, optimizer_.get(), &warnings);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->step, 1);
  EXPECT_TRUE(warnings.empty());
  EXPECT_TRUE(DirectoryExists(writing));
  ASSERT_TRUE(UpdateAndBegin(&again, 5).ok());
  ASSERT_TRUE(again.Finish().ok());
  EXPECT_FALSE(DirectoryExists(writing));
  EXPECT_EQ(*again.Steps(), (std::vector<int64_t>{1, 5}));
}

}  // namespace
}  // namespace tritonrl
