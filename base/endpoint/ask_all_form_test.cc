// Responses in another form than asked for: they are kept and paid for, and asked for again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/endpoint/ask_all.h"
#include "base/endpoint/testing/ask_all_fixture.h"
#include "base/endpoint/testing/mock_endpoint.h"

namespace tritonrl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSeed = 7;

MockReply Chatter(const MockRequest&) { return MockReply::Chat("chatter"); }

// Counts the requests of each question.
class Counter {
 public:
  int Next(const std::string& prompt) {
    absl::MutexLock lock(&mutex_);
    return ++asked_[prompt];
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, int> asked_ ABSL_GUARDED_BY(mutex_);
};

class AskAllFormTest : public AskAllFixture {
 protected:
  void SetUp() override {
    AskAllFixture::SetUp();
    request_.seed = kSeed;
    request_.max_tokens = 1000;
    options_.check = [](const EndpointResponse& response) {
      return response.text() == "LEVEL: 1" ? absl::OkStatus() : absl::DataLossError("no level");
    };
  }

  // A dollar for each response of the mock endpoint, and at most a dollar for any.
  void CostsADollar(double ceiling) {
    endpoint_options_.price_out = 1000;
    endpoint_options_.max_cost = ceiling;
    endpoint_options_.max_in_flight = 1;
  }

  static std::vector<int64_t> SeedsOf(const MockEndpoint& endpoint, const std::string& prompt) {
    std::vector<int64_t> seeds;
    for (const MockRequest& request : endpoint.log()) {
      if (request.prompt == prompt) seeds.push_back(request.body["seed"].get<int64_t>());
    }
    return seeds;
  }
};

TEST_F(AskAllFormTest, ARefusedResponseIsKeptAndAskedForWithAnotherSeed) {
  Counter counter;
  MockEndpoint endpoint([&](const MockRequest& request) {
    return MockReply::Chat(counter.Next(request.prompt) == 1 ? "chatter" : "LEVEL: 1");
  });
  const auto summary = Run(3, endpoint.url());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->answered, 3);
  EXPECT_EQ(summary->refused, 3);
  EXPECT_EQ(summary->failed, 0);
  EXPECT_EQ(endpoint.requests(), 6);
  for (int i = 0; i < 3; ++i) {
    const std::vector<int64_t> seeds = SeedsOf(endpoint, absl::StrCat("question ", i));
    ASSERT_EQ(seeds.size(), 2);
    EXPECT_EQ(seeds[0], kSeed);
    EXPECT_NE(seeds[1], kSeed);
  }
  EXPECT_EQ(Stored().size(), 3);
  const std::vector<StoredResponse> all = AllStored();
  ASSERT_EQ(all.size(), 6);
  int refused = 0;
  for (const StoredResponse& stored : all) {
    EXPECT_EQ(stored.refused, stored.response.text() == "chatter" ? "no level" : "");
    EXPECT_EQ(stored.response.usage.completion_tokens, 1000);
    refused += stored.refused.empty() ? 0 : 1;
    for (const StoredResponse& other : all) {
      if (other.key == stored.key) {
        EXPECT_EQ(other.request_hash, stored.request_hash);
      }
    }
    const auto again = ReadResponseAt(options_.journal, stored.offset, stored.bytes);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->refused, stored.refused);
  }
  EXPECT_EQ(refused, 3);

  const auto second = Run(3, endpoint.url());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->earlier, 3);
  EXPECT_EQ(endpoint.requests(), 6) << "a request that is answered was sent again";
}

TEST_F(AskAllFormTest, ARequestWithoutASeedIsSentAgainAsItIs) {
  MockEndpoint endpoint([](const MockRequest& request) {
    return MockReply::Chat(request.number == 1 ? "chatter" : "LEVEL: 1");
  });
  request_.seed.reset();
  const auto summary = Run(1, endpoint.url());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->answered, 1);
  ASSERT_EQ(endpoint.requests(), 2);
  EXPECT_EQ(endpoint.log()[0].body, endpoint.log()[1].body);
}

TEST_F(AskAllFormTest, GivesUpAfterAllAttemptsAndTheNextRunAsksWithNewSeeds) {
  std::atomic<bool> better = false;
  MockEndpoint endpoint([&](const MockRequest& request) {
    const bool bad = request.prompt == "question 1" && !better;
    return MockReply::Chat(bad ? "chatter" : "LEVEL: 1");
  });
  endpoint_options_.max_attempts = 3;
  const std::string failure = absl::StrCat("task 1: the endpoint ", endpoint.url(),
                                           " gave 3 responses in another form; the last: no level");
  for (int run = 1; run <= 2; ++run) {
    const auto summary = Run(3, endpoint.url());
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_TRUE(summary->ended.ok()) << summary->ended;
    EXPECT_EQ(summary->refused, 3);
    EXPECT_EQ(summary->failed, 1);
    EXPECT_THAT(summary->failures, ElementsAre(failure));
    EXPECT_EQ(Stored().size(), 2);
    EXPECT_EQ(AllStored().size(), 2 + 3 * run);
  }
  better = true;
  const auto last = Run(3, endpoint.url());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->earlier, 2);
  EXPECT_EQ(last->answered, 1);
  EXPECT_TRUE(Stored().contains("task 1"));
  const std::vector<int64_t> seeds = SeedsOf(endpoint, "question 1");
  EXPECT_EQ(seeds.size(), 7);
  EXPECT_EQ(std::set<int64_t>(seeds.begin(), seeds.end()).size(), 7);
  for (const int64_t seed : seeds) {
    EXPECT_GE(seed, 0);
    EXPECT_LT(seed, int64_t{1} << 31);
  }
}

TEST_F(AskAllFormTest, ARunWithoutAnyResponseOfTheFormEnds) {
  MockEndpoint endpoint(Chatter);
  options_.max_failures_in_a_row = 5;
  const auto summary = Run(100, endpoint.url());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(absl::IsUnavailable(summary->ended)) << summary->ended;
  EXPECT_THAT(summary->ended.message(), HasSubstr("5 requests in a row failed; the endpoint "));
  EXPECT_THAT(summary->ended.message(), HasSubstr("gave 2 responses in another form"));
  EXPECT_LT(endpoint.requests(), 60);
  EXPECT_EQ(summary->refused, endpoint.requests());
  EXPECT_EQ(AllStored().size(), endpoint.requests()) << "a paid response is lost";
  EXPECT_TRUE(Stored().empty());
}

TEST_F(AskAllFormTest, AStopEndsTheAskingAgain) {
  MockEndpoint endpoint(Chatter);
  endpoint_options_.max_attempts = 1000;
  options_.stop = [&] { return endpoint.requests() >= 10; };
  const auto summary = Run(2, endpoint.url());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(summary->failed, 0);
  EXPECT_LT(endpoint.requests(), 20);
  EXPECT_EQ(AllStored().size(), endpoint.requests());
}

TEST_F(AskAllFormTest, TheCeilingHoldsForRefusedResponses) {
  MockEndpoint endpoint(Chatter);
  CostsADollar(/*ceiling=*/3.5);
  endpoint_options_.max_attempts = 10;
  const auto summary = Run(1, endpoint.url());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(absl::IsResourceExhausted(summary->ended)) << summary->ended;
  EXPECT_EQ(endpoint.requests(), 3);
  EXPECT_EQ(AllStored().size(), 3);

  const auto second = Run(1, endpoint.url());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(absl::IsResourceExhausted(second->ended)) << second->ended;
  EXPECT_EQ(endpoint.requests(), 3);
}

TEST_F(AskAllFormTest, AKilledRunsRefusedResponsesCountForTheCeiling) {
  // The child begins before this process has threads.
  int address[2] = {};
  ASSERT_EQ(pipe(address), 0);
  const pid_t child = fork();
  if (child == 0) {
    char url[100] = {};
    options_.max_failures_in_a_row = 0;
    if (read(address[0], url, sizeof(url) - 1) > 0) (void)Run(60, url);
    _exit(0);
  }
  MockEndpoint endpoint([child](const MockRequest& request) {
    if (request.number == 20) kill(child, SIGKILL);
    return Chatter(request);
  });
  const std::string url = endpoint.url();
  ASSERT_EQ(write(address[1], url.data(), url.size()), url.size());
  close(address[0]);
  close(address[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  const size_t kept = AllStored().size();
  EXPECT_GT(kept, 0);

  CostsADollar(/*ceiling=*/static_cast<double>(kept) + 2.5);
  const auto summary = Run(60, url);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(absl::IsResourceExhausted(summary->ended)) << summary->ended;
  EXPECT_EQ(summary->refused, 2) << "the first run's cost is forgotten";
  EXPECT_EQ(AllStored().size(), kept + 2);
}

}  // namespace
}  // namespace tritonrl
