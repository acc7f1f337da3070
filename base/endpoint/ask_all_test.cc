#include "base/endpoint/ask_all.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/endpoint/testing/ask_all_fixture.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

MockReply Echo(const MockRequest& request) {
  return MockReply::Chat("to " + request.prompt, "why");
}

class AskAllTest : public AskAllFixture {};

TEST_F(AskAllTest, KeepsEachResponseAndAsksNothingTwice) {
  MockEndpoint endpoint(Echo);
  const auto first = Run(20, endpoint.url());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->answered, 20);
  const auto stored = Stored();
  ASSERT_EQ(stored.size(), 20);
  const EndpointResponse& response = stored.at("task 7");
  EXPECT_EQ(response.text(), "to question 7");
  EXPECT_EQ(response.choices[0].reasoning, "why");
  EXPECT_EQ(response.choices[0].finish_reason, "stop");
  EXPECT_EQ(response.model, "mock-model");
  EXPECT_EQ(response.usage.completion_tokens, 1000);

  const auto second = Run(25, endpoint.url());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->earlier, 20);
  EXPECT_EQ(second->answered, 5);
  EXPECT_EQ(endpoint.requests(), 25);
}

TEST_F(AskAllTest, ALineIsReadByItsPlace) {
  MockEndpoint endpoint(Echo);
  ASSERT_TRUE(Run(5, endpoint.url()).ok());
  ASSERT_TRUE(ReadResponses(options_.journal, [&](StoredResponse response) {
                const auto again =
                    ReadResponseAt(options_.journal, response.offset, response.bytes);
                EXPECT_TRUE(again.ok()) << again.status();
                EXPECT_EQ(again->key, response.key);
                return absl::OkStatus();
              }).ok());
}

TEST_F(AskAllTest, AKilledRunGoesOnWithoutAskingTwice) {
  // The child begins before this process has threads.
  int address[2] = {};
  ASSERT_EQ(pipe(address), 0);
  const pid_t child = fork();
  if (child == 0) {
    char url[100] = {};
    if (read(address[0], url, sizeof(url) - 1) > 0) (void)Run(60, url);
    _exit(0);
  }
  MockEndpoint endpoint([](const MockRequest& request) {
    MockReply reply = Echo(request);
    reply.delay = absl::Milliseconds(20);
    return reply;
  });
  const std::string url = endpoint.url();
  ASSERT_EQ(write(address[1], url.data(), url.size()), url.size());
  close(address[0]);
  close(address[1]);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (endpoint.requests() < 20 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const std::map<std::string, EndpointResponse> before = Stored();
  EXPECT_GT(before.size(), 0);
  EXPECT_LT(before.size(), 60);
  const size_t asked = endpoint.log().size();

  const auto summary = Run(60, url);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->earlier, before.size());
  EXPECT_EQ(Stored().size(), 60);
  std::set<std::string> prompts;
  const std::vector<MockRequest> log = endpoint.log();
  for (size_t i = asked; i < log.size(); ++i) prompts.insert(log[i].prompt);
  for (const auto& [key, response] : before) {
    EXPECT_FALSE(prompts.contains("question " + key.substr(5))) << key;
  }
}

TEST_F(AskAllTest, EarlierResponsesCountForTheCeiling) {
  MockEndpoint endpoint(Echo);
  ASSERT_TRUE(Run(3, endpoint.url()).ok());
  endpoint_options_.url = endpoint.url();
  endpoint_options_.price_out = 1000;  // a dollar for each response
  auto client = EndpointClient::Make(endpoint_options_);
  ASSERT_TRUE(client.ok());
  const auto none = [](int64_t) -> absl::StatusOr<AskItem> { return AskItem(); };
  ASSERT_TRUE(AskAll(0, none, options_, client->get()).ok());
  EXPECT_NEAR((*client)->counts().cost, 3.0, 1e-9);
  options_.count_earlier = false;  // the call above has counted them
  ASSERT_TRUE(AskAll(0, none, options_, client->get()).ok());
  EXPECT_NEAR((*client)->counts().cost, 3.0, 1e-9);
}

TEST_F(AskAllTest, AWrongKeyEndsTheRunWithOneSentence) {
  MockEndpoint endpoint(Echo, "right");
  endpoint_options_.api_key_variable = "TEST_ASK_ALL_KEY";
  setenv("TEST_ASK_ALL_KEY", "wrong", 1);
  const auto summary = Run(100, endpoint.url());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(absl::IsUnauthenticated(summary->ended)) << summary->ended;
  EXPECT_THAT(summary->ended.message(), HasSubstr("TEST_ASK_ALL_KEY"));
  EXPECT_LT(endpoint.requests(), 20);
}

TEST_F(AskAllTest, AnEndpointThatIsDownEndsTheRun) {
  options_.max_failures_in_a_row = 5;
  const auto summary = Run(100, "http://127.0.0.1:1/v1");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(absl::IsUnavailable(summary->ended)) << summary->ended;
  EXPECT_THAT(summary->ended.message(), HasSubstr("5 requests in a row failed; the endpoint "
                                                  "http://127.0.0.1:1/v1 gave no usable answer"));
}

TEST_F(AskAllTest, ARequestThatIsRefusedLeavesTheOthers) {
  MockEndpoint endpoint([](const MockRequest& request) {
    return request.prompt == "question 3" ? MockReply::Error(400, "too long") : Echo(request);
  });
  const auto summary = Run(10, endpoint.url());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(summary->ended.ok()) << summary->ended;
  EXPECT_EQ(summary->answered, 9);
  EXPECT_EQ(summary->failed, 1);
  ASSERT_EQ(summary->failures.size(), 1);
  EXPECT_THAT(summary->failures[0], HasSubstr("task 3: "));
  EXPECT_THAT(summary->failures[0], HasSubstr("too long"));
}

TEST_F(AskAllTest, AStopKeepsWhatIsInFlight) {
  MockEndpoint endpoint([](const MockRequest& request) {
    MockReply reply = Echo(request);
    reply.delay = absl::Milliseconds(100);
    return reply;
  });
  options_.stop = [&] { return endpoint.requests() >= 4; };
  const auto summary = Run(100, endpoint.url());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(summary->answered, endpoint.requests());
  EXPECT_EQ(Stored().size(), endpoint.requests());
}

TEST_F(AskAllTest, AJournalOfOtherRequestsIsRefused) {
  MockEndpoint endpoint(Echo);
  ASSERT_TRUE(Run(2, endpoint.url()).ok());
  const auto other = Run(2, endpoint.url(), "another model");
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status())) << other.status();
  EXPECT_THAT(other.status().message(), HasSubstr("holds the response for task 0 to another "));
  ASSERT_TRUE(AppendToFile(options_.journal, "{\"key\": 1}\n").ok());
  const auto broken = Run(2, endpoint.url());
  EXPECT_TRUE(absl::IsDataLoss(broken.status())) << broken.status();
  EXPECT_THAT(broken.status().message(), HasSubstr("line 3 is no response"));
}

// As after joining two journals by hand.
TEST_F(AskAllTest, ASecondResponseForAKeyIsNamedAndNothingIsRemoved) {
  MockEndpoint endpoint(Echo);
  ASSERT_TRUE(Run(2, endpoint.url()).ok());
  const std::string lines = *ReadFile(options_.journal);
  ASSERT_TRUE(AppendToFile(options_.journal, lines).ok());
  const absl::Status twice = Run(3, endpoint.url()).status();
  EXPECT_TRUE(absl::IsDataLoss(twice)) << twice;
  EXPECT_EQ(twice.message().find(options_.journal), 0) << twice;
  EXPECT_THAT(twice.message(), HasSubstr(", line 3 holds a second response for task "));
  EXPECT_THAT(twice.message(), HasSubstr("remove one of the two lines"));
  EXPECT_EQ(*ReadFile(options_.journal), lines + lines);
  ASSERT_TRUE(WriteFileAtomic(options_.journal, lines).ok());
  ASSERT_TRUE(Run(3, endpoint.url()).ok());
  EXPECT_EQ(endpoint.requests(), 3);
}

// RLIMIT_FSIZE simulates a disk that becomes full, with room for none to a few responses.
TEST_F(AskAllTest, AFullDiskLosesNoResponse) {
  request_.max_tokens = 1;
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  for (const int64_t room : {0, 1000, 2000, 3000, 5000}) {
    ASSERT_TRUE(RemoveTree(options_.journal).ok());
    MockEndpoint endpoint(Echo);
    ASSERT_TRUE(Run(2, endpoint.url()).ok());
    const int64_t size = *FileSize(options_.journal);
    const auto old_handler = signal(SIGXFSZ, SIG_IGN);
    const rlimit small = {.rlim_cur = static_cast<rlim_t>(size + room), .rlim_max = old.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto full = Run(100, endpoint.url());
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, old_handler);
    EXPECT_TRUE(absl::IsResourceExhausted(full.status())) << full.status();
    EXPECT_EQ(Message(full.status()),
              absl::StrCat("cannot write ", options_.journal,
                           ": File too large; it needs room for 1.0 kB; make room there and run "
                           "the same command again"));
    EXPECT_EQ(Stored().size(), endpoint.requests()) << "a response is lost";
    EXPECT_EQ(Stored().size() > 2, room >= 1040);
    ASSERT_TRUE(Run(50, endpoint.url()).ok());
    EXPECT_EQ(Stored().size(), 50);
    EXPECT_EQ(endpoint.requests(), 50) << "a question was asked twice";
  }
}

// As on a file system without reservations: the endpoint answers more than max_tokens allows.
TEST_F(AskAllTest, ResponsesThatCannotBeWrittenAreCounted) {
  const std::string longer(3000, 'x');
  MockEndpoint endpoint([&](const MockRequest&) { return MockReply::Chat(longer, ""); });
  request_.max_tokens = 1;
  ASSERT_TRUE(CreateDirectories(folder_ + "/out").ok());
  const int64_t size = 2000;
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = static_cast<rlim_t>(size), .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto full = Run(100, endpoint.url());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(full.ok());
  EXPECT_THAT(full.status().message(), HasSubstr(options_.journal));
  EXPECT_THAT(full.status().message(), HasSubstr("lost and will be asked again"));
  EXPECT_LT(endpoint.requests(), 40) << "the run goes on asking";
  EXPECT_EQ(Stored().size(), 0);
  ASSERT_TRUE(Run(10, endpoint.url()).ok());
  EXPECT_EQ(Stored().size(), 10);
}

TEST(CountsTextTest, NamesTokensCostAndRetries) {
  EXPECT_EQ(CountsText({}), "0 tokens");
  EXPECT_EQ(
      CountsText({.retries = 1, .prompt_tokens = 12000, .completion_tokens = 3000, .cost = 2}),
      "15.0k tokens, $2.00, 1 retry");
}

}  // namespace
}  // namespace tritonrl
