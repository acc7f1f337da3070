#include "base/endpoint/retry.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

TEST(ClassifyHttpTest, RetriesOnlyWhatMayPassLater) {
  EXPECT_EQ(ClassifyHttp(200, ""), HttpClass::kSuccess);
  for (const int status : {408, 409, 425, 500, 502, 503, 504, 529}) {
    EXPECT_EQ(ClassifyHttp(status, ""), HttpClass::kRetry) << status;
  }
  EXPECT_EQ(ClassifyHttp(429, ""), HttpClass::kRateLimited);
  EXPECT_EQ(ClassifyHttp(429, "rate_limit_exceeded"), HttpClass::kRateLimited);
  EXPECT_EQ(ClassifyHttp(429, "insufficient_quota"), HttpClass::kRefused);
  for (const int status : {301, 400, 401, 402, 403, 404, 413, 422}) {
    EXPECT_EQ(ClassifyHttp(status, ""), HttpClass::kRefused) << status;
  }
}

TEST(ParseRetryAfterTest, ReadsSecondsAndDates) {
  const absl::Time now = absl::FromUnixSeconds(784111777);  // Sun, 06 Nov 1994 08:49:37 GMT
  EXPECT_EQ(ParseRetryAfter("7", now), absl::Seconds(7));
  EXPECT_EQ(ParseRetryAfter(" 0.5 ", now), absl::Milliseconds(500));
  EXPECT_EQ(ParseRetryAfter("-3", now), absl::ZeroDuration());
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:50:07 GMT", now), absl::Seconds(30));
  EXPECT_EQ(ParseRetryAfter("Sunday, 06-Nov-94 08:49:38 GMT", now), absl::Seconds(1));
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:49:07 GMT", now), absl::ZeroDuration());
  for (const char* bad : {"", "soon", "inf", "nan"}) {
    EXPECT_EQ(ParseRetryAfter(bad, now), std::nullopt) << bad;
  }
}

TEST(RetryPauseTest, DoublesWithinItsBoundAndDependsOnTheKeyAlone) {
  const absl::Duration first = absl::Seconds(1), longest = absl::Seconds(10);
  for (uint64_t key = 0; key < 100; ++key) {
    absl::Duration full = first;
    for (int attempt = 2; attempt < 50; ++attempt) {
      const absl::Duration pause = RetryPause(first, longest, attempt, key);
      EXPECT_GE(pause, full / 2);
      EXPECT_LT(pause, full);
      EXPECT_EQ(pause, RetryPause(first, longest, attempt, key));
      full = std::min(longest, 2 * full);
    }
  }
  EXPECT_NE(RetryPause(first, longest, 2, 1), RetryPause(first, longest, 2, 2));
}

}  // namespace
}  // namespace tritonrl
