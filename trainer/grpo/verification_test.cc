// Verification on a remote server selected by the configuration.
#include "trainer/grpo/verification.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/service/exec_server.h"
#include "exec/service/server_registry.h"
#include "exec/testing/scripted_backend.h"
#include "verify/testing/honest_program.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

class VerificationTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("verification");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
    std::vector<std::unique_ptr<DeviceBackend>> backends;
    backends.push_back(std::make_unique<ScriptedBackend>(
        [](const ExecRequest&, absl::Time) { return GoodResult(1.5); }));
    dispatcher_ = std::make_unique<Dispatcher>(DispatcherOptions(), std::move(backends));
    const std::string token(64, 't');
    auto server = ExecServer::Start({.token = token}, dispatcher_.get());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    auto registration =
        ServerRegistration::Create(folder_, {.address = server_->address(), .token = token});
    ASSERT_TRUE(registration.ok()) << registration.status();
    registration_ = *std::move(registration);
    options_.config.set_servers(folder_ + "/");
    options_.config.set_backend(VerifierConfig::NATIVE);
    options_.config.set_workers(2);
    options_.config.set_retries(0);
  }
  void TearDown() override {
    registration_.reset();
    EXPECT_TRUE(RemoveTree(folder_).ok());
  }

  Verdict Check() {
    auto verification = StartVerification(options_);
    EXPECT_TRUE(verification.ok()) << verification.status();
    if (!verification.ok()) return Verdict();
    return verification->verifier
        ->Submit({.task = {.id = "task", .source = "reference"}, .code = HonestProgram()})
        .get();
  }

  std::string folder_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<ExecServer> server_;
  std::unique_ptr<ServerRegistration> registration_;
  VerificationOptions options_;
};

TEST_F(VerificationTest, VerdictsComeFromTheServers) {
  const Verdict verdict = Check();
  EXPECT_TRUE(IsCorrect(verdict)) << verdict.DebugString();
  EXPECT_EQ(SpeedupOf(verdict), 1.5);
  EXPECT_EQ(dispatcher_->Describe().finished(), 1);
}

TEST_F(VerificationTest, TheConfigurationOrTheRanksCoresGiveTheNumberOfWorkers) {
  options_.cores = 3;
  for (const auto& [configured, workers] : {std::pair(2, 2), {0, 3}}) {
    options_.config.set_workers(configured);
    const auto verification = StartVerification(options_);
    ASSERT_TRUE(verification.ok()) << verification.status();
    EXPECT_EQ(verification->backend->concurrency(), workers);
  }
}

TEST_F(VerificationTest, ARequiredJudgeNeedsAnEndpoint) {
  JudgeConfig* judge = options_.config.mutable_judge();
  judge->set_mode(JudgeConfig::REQUIRED);
  const auto refused = StartVerification(options_);
  EXPECT_TRUE(absl::StrContains(Message(refused.status()), "verifier.judge.endpoint is empty"))
      << refused.status();
  judge->set_endpoint("http://localhost:1/v1");
  judge->set_model("big");
  EXPECT_EQ(DescribeJudge(*judge), "judge: big at http://localhost:1/v1");
  auto judged = StartVerification(options_);
  ASSERT_TRUE(judged.ok()) << judged.status();
  EXPECT_NE(judged->judge, nullptr);
}

TEST_F(VerificationTest, JudgeNoneGoesWithoutAnEndpoint) {
  JudgeConfig* judge = options_.config.mutable_judge();
  judge->set_mode(JudgeConfig::NONE);
  const auto verification = StartVerification(options_);
  ASSERT_TRUE(verification.ok()) << verification.status();
  EXPECT_EQ(verification->judge, nullptr);
  EXPECT_EQ(DescribeJudge(*judge), "judge: none");
  judge->set_endpoint("http://localhost:1/v1");
  judge->set_model("big");
  EXPECT_TRUE(absl::StrContains(Message(StartVerification(options_).status()),
                                "verifier.judge.mode is NONE"));
}

TEST_F(VerificationTest, ServersOfAnotherBackendAreAnInfraError) {
  options_.config.set_backend(VerifierConfig::CUDA);
  const Verdict verdict = Check();
  EXPECT_TRUE(IsInfraError(verdict)) << verdict.DebugString();
  EXPECT_TRUE(absl::StrContains(verdict.outcome().message(), "the servers have the backend native"))
      << verdict.outcome().message();
  EXPECT_EQ(dispatcher_->Describe().finished(), 0);
}

}  // namespace
}  // namespace tritonrl
