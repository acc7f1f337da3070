// The client's pauses, rate limits and cost ceiling, with a clock that the test advances.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/endpoint/client.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/testing/fake_clock.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

class EndpointLimitsTest : public testing::Test {
 protected:
  // Notes the time of each request.
  void Serve(const MockEndpoint::Script& script) {
    endpoint_ = std::make_unique<MockEndpoint>([this, script](const MockRequest& request) {
      {
        absl::MutexLock lock(&mutex_);
        times_.push_back(clock_.Now());
      }
      return script(request);
    });
    options_.url = endpoint_->url();
    options_.clock = &clock_;
  }

  // Asks `count` questions at once, while the clock moves on; returns how they ended.
  std::vector<absl::Status> Ask(int count, absl::Duration step = absl::Seconds(1)) {
    auto client = EndpointClient::Make(options_);
    EXPECT_TRUE(client.ok()) << client.status();
    std::vector<absl::Status> results(count);
    int left = count;
    absl::Mutex mutex;
    for (int i = 0; i < count; ++i) {
      EndpointRequest request;
      request.model = "teacher";
      request.messages = {{.role = "user", .content = std::string(40, 'q')}};
      request.max_tokens = max_tokens_;
      (*client)->Submit(request, [&, i](const absl::StatusOr<EndpointResponse>& response) {
        absl::MutexLock lock(&mutex);
        results[i] = response.status();
        --left;
      });
    }
    const absl::Time deadline = absl::Now() + absl::Seconds(120);
    while (absl::Now() < deadline) {
      {
        absl::MutexLock lock(&mutex);
        // The client often needs no step of the fake clock: advance it only after 20 ms.
        if (mutex.AwaitWithTimeout(absl::Condition(
                                       +[](int* left) { return *left == 0; }, &left),
                                   absl::Milliseconds(20))) {
          break;
        }
      }
      clock_.Advance(step);
    }
    EXPECT_EQ(left, 0);
    counts_ = (*client)->counts();
    return results;
  }

  std::vector<absl::Time> times() {
    absl::MutexLock lock(&mutex_);
    return times_;
  }

  FakeClock clock_;
  EndpointOptions options_;
  EndpointCounts counts_;
  int max_tokens_ = 1000;
  absl::Mutex mutex_;
  std::vector<absl::Time> times_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<MockEndpoint> endpoint_;
};

TEST_F(EndpointLimitsTest, RetryAfterInSecondsIsHonouredByAllRequests) {
  Serve([](const MockRequest& request) {
    if (request.number > 1) return MockReply::Chat("fine");
    MockReply reply = MockReply::Error(429, "slow down");
    reply.retry_after = "30";
    return reply;
  });
  options_.max_in_flight = 1;
  options_.max_attempts = 1;  // HTTP 429 does not count as an attempt
  for (const absl::Status& status : Ask(3)) EXPECT_TRUE(status.ok()) << status;
  const std::vector<absl::Time> asked = times();
  ASSERT_EQ(asked.size(), 4);
  EXPECT_GE(asked[1] - asked[0], absl::Seconds(30));
  EXPECT_EQ(counts_.rate_limited, 1);
}

TEST_F(EndpointLimitsTest, RetryAfterAsADateIsHonoured) {
  Serve([this](const MockRequest& request) {
    if (request.number > 1) return MockReply::Chat("fine");
    MockReply reply = MockReply::Error(503, "maintenance");
    reply.retry_after = absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT",
                                         clock_.Now() + absl::Seconds(45), absl::UTCTimeZone());
    return reply;
  });
  for (const absl::Status& status : Ask(1)) EXPECT_TRUE(status.ok()) << status;
  ASSERT_EQ(times().size(), 2);
  EXPECT_GE(times()[1] - times()[0], absl::Seconds(44));
}

TEST_F(EndpointLimitsTest, AnEndpointThatIsAlwaysAtItsLimitEndsAtTheDeadline) {
  Serve([](const MockRequest&) { return MockReply::Error(429, "slow down"); });
  options_.total_timeout = absl::Minutes(2);
  const absl::Status status = Ask(1)[0];
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("within 2m"));
}

TEST_F(EndpointLimitsTest, ARequestThatALimitHoldsBackEndsAtItsDeadline) {
  Serve([](const MockRequest&) { return MockReply::Error(500, "crashed"); });
  options_.requests_per_minute = 1;
  options_.total_timeout = absl::Seconds(100);
  const absl::Status status = Ask(1)[0];
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("within 1m40s (2 attempts): HTTP status 500: crashed"));
  EXPECT_EQ(endpoint_->requests(), 2) << "at 0 and 60 s, none at 120 s";
}

TEST_F(EndpointLimitsTest, PausesDouble) {
  Serve([](const MockRequest&) { return MockReply::Error(500, "crashed"); });
  options_.first_pause = absl::Seconds(4);
  options_.max_attempts = 4;
  EXPECT_TRUE(absl::IsUnavailable(Ask(1, absl::Milliseconds(500))[0]));
  const std::vector<absl::Time> asked = times();
  ASSERT_EQ(asked.size(), 4);
  EXPECT_GE(asked[1] - asked[0], absl::Seconds(2));
  EXPECT_GE(asked[2] - asked[1], absl::Seconds(4));
  EXPECT_GE(asked[3] - asked[2], absl::Seconds(8));
}

TEST_F(EndpointLimitsTest, RequestsPerMinute) {
  Serve([](const MockRequest&) { return MockReply::Chat("fine"); });
  options_.requests_per_minute = 5;
  for (const absl::Status& status : Ask(12, absl::Milliseconds(500)))
    EXPECT_TRUE(status.ok()) << status;
  const std::vector<absl::Time> asked = times();
  ASSERT_EQ(asked.size(), 12);
  // The endpoint reads the time later than the client, which counts 60 s.
  for (size_t i = 5; i < asked.size(); ++i) {
    EXPECT_GE(asked[i] - asked[i - 5], absl::Seconds(30)) << i;
  }
}

TEST_F(EndpointLimitsTest, TokensPerMinuteFollowTheReportedOnes) {
  // Each request takes 1100 tokens.
  Serve([](const MockRequest&) { return MockReply::Chat("fine"); });
  options_.tokens_per_minute = 2500;
  options_.max_in_flight = 1;
  for (const absl::Status& status : Ask(5, absl::Milliseconds(500)))
    EXPECT_TRUE(status.ok()) << status;
  const std::vector<absl::Time> asked = times();
  for (size_t i = 2; i < asked.size(); ++i) {
    EXPECT_GE(asked[i] - asked[i - 2], absl::Seconds(30)) << i;
  }
}

TEST_F(EndpointLimitsTest, CostNeverExceedsItsCeiling) {
  Serve([](const MockRequest&) { return MockReply::Chat("fine"); });
  options_.price_in = 1;
  options_.price_out = 10;
  options_.max_cost = 0.055;  // an answer costs 0.0101, and at most 0.010296
  options_.max_in_flight = 8;
  int answered = 0;
  for (const absl::Status& status : Ask(20)) {
    if (status.ok()) {
      ++answered;
      continue;
    }
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_TRUE(EndsAllRequests(status));
    EXPECT_THAT(status.message(), HasSubstr("the cost ceiling of $0.06 is reached"));
  }
  EXPECT_EQ(answered, 5);
  EXPECT_EQ(endpoint_->requests(), 5);
  EXPECT_NEAR(counts_.cost, 5 * 0.0101, 1e-9);
}

TEST_F(EndpointLimitsTest, ACeilingNeedsALimitOnTheAnswer) {
  Serve([](const MockRequest&) { return MockReply::Chat("fine"); });
  options_.price_out = 10;
  options_.max_cost = 1;
  max_tokens_ = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(1)[0]));
  EXPECT_EQ(endpoint_->requests(), 0);
}

TEST_F(EndpointLimitsTest, EarlierTokensCount) {
  options_.url = "http://127.0.0.1:1/v1";
  options_.price_out = 10;
  options_.max_cost = 1;
  auto client = EndpointClient::Make(options_);
  ASSERT_TRUE(client.ok()) << client.status();
  (*client)->AddEarlier({.prompt_tokens = 5, .completion_tokens = 100000, .reported = true});
  EXPECT_NEAR((*client)->counts().cost, 1.0, 1e-9);
  EndpointRequest request;
  request.model = "teacher";
  request.prompt = "question";
  request.max_tokens = 1;
  EXPECT_TRUE(absl::IsResourceExhausted((*client)->Ask(request).status()));
}

}  // namespace
}  // namespace tritonrl
