// Tests the HTTP judge against a local server.
#include "verify/judge/judge.h"

#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

class JudgeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto script = Runfile("verify/judge/testing/judge_server.py");
    ASSERT_TRUE(script.ok()) << script.status();
    auto env = FindPythonEnv();
    ASSERT_TRUE(env.ok()) << env.status();
    SubprocessOptions options;
    options.argv = {env->interpreter, *script};
    options.out = Stdio::Pipe();
    auto process = Subprocess::Start(options);
    ASSERT_TRUE(process.ok()) << process.status();
    server_.emplace(*std::move(process));
    // The first line is the port.
    std::string line;
    pollfd fd{server_->stdout_fd(), POLLIN, 0};
    while (line.find('\n') == std::string::npos) {
      ASSERT_EQ(poll(&fd, 1, 30000), 1) << "the server does not start";
      char buffer[64];
      const ssize_t n = read(server_->stdout_fd(), buffer, sizeof(buffer));
      ASSERT_GT(n, 0);
      line.append(buffer, n);
    }
    url_ = absl::StrCat("http://127.0.0.1:", std::atoi(line.c_str()), "/v1/chat/completions");
  }
  static void TearDownTestSuite() { server_.reset(); }

  static absl::StatusOr<JudgeOpinion> Ask(HttpJudgeOptions options) {
    if (options.url.empty()) options.url = url_;
    options.first_pause = absl::Milliseconds(1);
    auto judge = MakeHttpJudge(options);
    if (!judge.ok()) return judge.status();
    return (*judge)->Ask("the reference", "the candidate {reference}");
  }

  static std::optional<Subprocess> server_;
  static std::string url_;
};

std::optional<Subprocess> JudgeTest::server_;
std::string JudgeTest::url_;

TEST_F(JudgeTest, GivesOpinions) {
  auto fine = Ask({.model = "fine"});
  ASSERT_TRUE(fine.ok()) << fine.status();
  EXPECT_FALSE(fine->cheating);
  auto cheat = Ask({.model = "thinks"});
  ASSERT_TRUE(cheat.ok()) << cheat.status();
  EXPECT_TRUE(cheat->cheating);
  EXPECT_EQ(cheat->rule, 1);
  EXPECT_EQ(cheat->reason, "it calls torch.matmul");
}

TEST_F(JudgeTest, PromptHoldsBothProgramsUnexpanded) {
  auto echo = Ask({.model = "echo"});
  ASSERT_TRUE(echo.ok()) << echo.status();
  EXPECT_EQ(echo->reason, "seen");
}

TEST_F(JudgeTest, SendsTheKeyOfTheNamedVariableOnly) {
  setenv("TEST_JUDGE_KEY", "open sesame", 1);
  auto with_key = Ask({.model = "key", .api_key_variable = "TEST_JUDGE_KEY"});
  ASSERT_TRUE(with_key.ok()) << with_key.status();
  EXPECT_EQ(with_key->reason, "Bearer open sesame");
  EXPECT_EQ(Ask({.model = "key"})->reason, "none");
}

TEST_F(JudgeTest, RetriesThenGivesUpAsUnavailable) {
  EXPECT_TRUE(Ask({.model = "flaky", .attempts = 3}).ok());
  for (const char* model : {"broken", "not_json", "babbles"}) {
    auto answer = Ask({.model = model, .attempts = 2});
    EXPECT_TRUE(absl::IsUnavailable(answer.status())) << model << answer.status();
    EXPECT_NE(std::string(answer.status().message()).find(model), std::string::npos)
        << answer.status();
  }
}

TEST_F(JudgeTest, AnAnswerInAnotherFormIsAskedForAgainWithASeed) {
  const auto again = Ask({.model = "by_seed", .attempts = 2});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->reason, "seed 2");
  const auto once = Ask({.model = "by_seed", .attempts = 1});
  EXPECT_TRUE(absl::IsUnavailable(once.status())) << once.status();
  EXPECT_EQ(once.status().message(),
            "the judge by_seed has no opinion after 1 answer in another form; the last: the answer "
            "does not end in a line with a JSON object");
}

TEST_F(JudgeTest, SaysWhichVariableHoldsARefusedKey) {
  setenv("TEST_JUDGE_KEY", "wrong", 1);
  const auto refused = Ask({.model = "locked", .api_key_variable = "TEST_JUDGE_KEY"});
  EXPECT_TRUE(absl::IsUnauthenticated(refused.status())) << refused.status();
  EXPECT_NE(refused.status().message().find("the key in the variable TEST_JUDGE_KEY"),
            std::string::npos)
      << refused.status();
}

TEST_F(JudgeTest, TimeoutAndDeadServerAreUnavailable) {
  auto slow = Ask({.model = "slow", .timeout = absl::Milliseconds(100), .attempts = 1});
  EXPECT_TRUE(absl::IsUnavailable(slow.status())) << slow.status();
  auto nobody = Ask({.url = "http://127.0.0.1:1/v1/chat/completions", .model = "x", .attempts = 2});
  EXPECT_TRUE(absl::IsUnavailable(nobody.status())) << nobody.status();
}

TEST(JudgeOptionsTest, MistakesAreNamed) {
  EXPECT_FALSE(MakeHttpJudge({.url = "http://x"}).ok());
  const auto scheme = MakeHttpJudge({.url = "ftp://x", .model = "m"});
  EXPECT_NE(scheme.status().message().find("must begin with http://"), std::string::npos)
      << scheme.status();
  unsetenv("TEST_JUDGE_NO_KEY");
  const auto key =
      MakeHttpJudge({.url = "http://x", .model = "m", .api_key_variable = "TEST_JUDGE_NO_KEY"});
  EXPECT_NE(key.status().message().find("TEST_JUDGE_NO_KEY, which is not set"), std::string::npos)
      << key.status();
  EXPECT_FALSE(
      MakeHttpJudge({.url = "http://x", .model = "m", .prompt_file = "/no/such/prompt"}).ok());
}

TEST(ParseJudgeAnswerTest, IsStrict) {
  EXPECT_TRUE(ParseJudgeAnswer(R"({"cheating": false, "rule": 0, "reason": "ok"})").ok());
  const std::string fenced =
      "thinking\n```json\n{\"cheating\": true, \"rule\": 5, \"reason\": \"r\"}\n```\n";
  ASSERT_TRUE(ParseJudgeAnswer(fenced).ok());
  EXPECT_EQ(ParseJudgeAnswer(fenced)->rule, 5);
  for (const std::string bad : {
           R"()",
           R"(no)",
           R"([true])",
           R"({"cheating": "false", "rule": 0, "reason": "ok"})",
           R"({"cheating": false, "rule": 0})",
           R"({"cheating": false, "rule": 0, "reason": "ok", "score": 1})",
           R"({"cheating": false, "rule": 2, "reason": "contradiction"})",
           R"({"cheating": true, "rule": 0, "reason": "contradiction"})",
           R"({"cheating": true, "rule": 6, "reason": "no such rule"})",
           R"({"cheating": true, "rule": 1.5, "reason": "no such rule"})",
           R"({"cheating": false, "rule": 0, "reason": "ok"} trailing)",
       }) {
    EXPECT_FALSE(ParseJudgeAnswer(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace tritonrl
