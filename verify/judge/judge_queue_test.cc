#include <atomic>
#include <future>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "verify/judge/judge.h"

namespace tritonrl {
namespace {

// Answers "cheating" for candidates that begin with "cheat", and an error for "wrong key" and those
// that begin with "silent". Each
// question blocks until `go` is notified.
class SlowJudge : public Judge {
 public:
  explicit SlowJudge(std::string name = "slow") : name_(std::move(name)) {}
  absl::StatusOr<JudgeOpinion> Ask(const std::string&, const std::string& candidate) override {
    const int now = ++in_flight;
    int seen = max_in_flight;
    while (now > seen && !max_in_flight.compare_exchange_weak(seen, now)) {
    }
    if (++asked == expected_in_flight) all_there.Notify();
    go.WaitForNotification();
    --in_flight;
    if (candidate.rfind("silent", 0) == 0) return absl::UnavailableError("no answer");
    if (candidate == "wrong key") return absl::UnauthenticatedError("the key is refused");
    const bool cheating = candidate.rfind("cheat", 0) == 0;
    return JudgeOpinion{.cheating = cheating, .rule = cheating ? 2 : 0, .reason = candidate};
  }
  std::string name() const override { return name_; }

  std::atomic<int> asked{0}, in_flight{0}, max_in_flight{0};
  int expected_in_flight = 0;
  absl::Notification go, all_there;

 private:
  const std::string name_;
};

using Opinion = absl::StatusOr<JudgeOpinion>;

std::future<Opinion> Ask(JudgeQueue* queue, const std::string& candidate) {
  auto promise = std::make_shared<std::promise<Opinion>>();
  queue->Ask("reference", candidate, [promise](Opinion opinion) { promise->set_value(opinion); });
  return promise->get_future();
}

std::string FreshFile(const std::string& name) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::remove(path.c_str());
  return path;
}

TEST(JudgeQueueTest, ManyQuestionsAreInFlightAtOnceAndNoMoreThanAllowed) {
  SlowJudge judge;
  judge.expected_in_flight = 4;
  JudgeQueue queue(&judge, 4, "");
  std::vector<std::future<Opinion>> answers;
  for (int i = 0; i < 12; ++i) answers.push_back(Ask(&queue, absl::StrCat("program ", i)));
  ASSERT_TRUE(judge.all_there.WaitForNotificationWithTimeout(absl::Seconds(30)));
  judge.go.Notify();
  for (int i = 0; i < 12; ++i) EXPECT_EQ(answers[i].get()->reason, absl::StrCat("program ", i));
  EXPECT_EQ(judge.max_in_flight, 4);
  EXPECT_EQ(queue.asked(), 12);
}

TEST(JudgeQueueTest, EqualQuestionsAreAskedOnceAndErrorsAgain) {
  SlowJudge judge;
  JudgeQueue queue(&judge, 2, "");
  auto first = Ask(&queue, "cheat"), second = Ask(&queue, "cheat");
  judge.go.Notify();
  EXPECT_TRUE(first.get()->cheating);
  EXPECT_TRUE(second.get()->cheating);
  EXPECT_TRUE(Ask(&queue, "cheat").get()->cheating);
  EXPECT_EQ(judge.asked, 1);
  EXPECT_FALSE(Ask(&queue, "silent").get().ok());
  EXPECT_FALSE(Ask(&queue, "silent").get().ok());
  EXPECT_EQ(judge.asked, 3);
}

TEST(JudgeQueueTest, ManyFailuresInARowOrARefusedKeyMakeItUnhealthy) {
  SlowJudge judge;
  judge.go.Notify();
  JudgeQueue queue(&judge, 2, "");
  const auto ask = [&](const std::string& candidate) { (void)Ask(&queue, candidate).get(); };
  for (int i = 0; i < 19; ++i) ask(absl::StrCat("silent ", i));
  ask("honest");
  for (int i = 0; i < 19; ++i) ask(absl::StrCat("silent ", i));
  EXPECT_TRUE(queue.Health().ok());
  ask("silent");
  EXPECT_EQ(queue.Health().message(), "20 candidates in a row were not judged: no answer");
  ask("another honest one");
  EXPECT_TRUE(queue.Health().ok());
  ask("wrong key");
  EXPECT_EQ(queue.Health().message(), "the key is refused");
}

TEST(JudgeQueueTest, OpinionsOutliveTheProcessAndBelongToTheirJudge) {
  const std::string file = FreshFile("opinions.jsonl");
  SlowJudge judge;
  judge.go.Notify();
  {
    JudgeQueue queue(&judge, 1, file);
    ASSERT_TRUE(queue.Open().ok());
    EXPECT_TRUE(Ask(&queue, "cheat").get()->cheating);
    EXPECT_FALSE(Ask(&queue, "honest").get()->cheating);
    EXPECT_TRUE(queue.FileStatus().ok());
  }
  // The incomplete line of a killed process.
  ASSERT_TRUE(AppendToFile(file, "{\"hash\":\"0").ok());
  {
    JudgeQueue queue(&judge, 1, file);
    EXPECT_EQ(*queue.Open(), 2);
    EXPECT_EQ(Ask(&queue, "cheat").get()->rule, 2);
    EXPECT_EQ(judge.asked, 2);
    EXPECT_FALSE(Ask(&queue, "new").get()->cheating);
  }
  SlowJudge other("another model");
  other.go.Notify();
  JudgeQueue queue(&other, 1, file);
  EXPECT_EQ(*queue.Open(), 3);
  EXPECT_TRUE(Ask(&queue, "cheat").get()->cheating);
  EXPECT_EQ(other.asked, 1);
}

TEST(JudgeQueueTest, AForeignLineIsNamed) {
  const std::string file = FreshFile("broken.jsonl");
  ASSERT_TRUE(AppendToFile(file, "{\"hash\":\"a\"}\n{}\n").ok());
  SlowJudge judge;
  JudgeQueue queue(&judge, 1, file);
  const auto opened = queue.Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("line 1 is not an opinion"), std::string::npos);
}

TEST(JudgeQueueTest, AFileThatCannotBeWrittenIsFoundAtOnce) {
  SlowJudge judge;
  JudgeQueue queue(&judge, 1, FreshFile("no_such_folder") + "/opinions.jsonl");
  EXPECT_FALSE(queue.Open().ok());
}

TEST(JudgeQueueTest, WhatWaitsIsCancelledAndWhatRunsIsAnswered) {
  SlowJudge judge;
  judge.expected_in_flight = 1;
  JudgeQueue queue(&judge, 1, "");
  auto runs = Ask(&queue, "runs");
  ASSERT_TRUE(judge.all_there.WaitForNotificationWithTimeout(absl::Seconds(30)));
  auto waits = Ask(&queue, "waits");
  queue.Close();
  EXPECT_TRUE(absl::IsCancelled(waits.get().status()));
  EXPECT_TRUE(absl::IsCancelled(Ask(&queue, "later").get().status()));
  judge.go.Notify();
  EXPECT_TRUE(runs.get().ok());
}

}  // namespace
}  // namespace tritonrl
