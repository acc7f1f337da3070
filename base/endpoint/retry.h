// Which failed requests are sent again, and after which pause.
#ifndef TRITONRL_BASE_ENDPOINT_RETRY_H_
#define TRITONRL_BASE_ENDPOINT_RETRY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tritonrl {

enum class HttpClass {
  kSuccess,      // 200
  kRetry,        // the next attempt may succeed: 408, 409, 425, 5xx
  kRateLimited,  // 429: the next attempt may succeed later
  kRefused,      // the same request would be refused again
};

// Classifies an HTTP status. `error_code` is the error's code in the body: a 429 because the
// account's quota is used up is a refusal.
HttpClass ClassifyHttp(int status, absl::string_view error_code);

// The pause that a Retry-After header asks for: seconds, or an HTTP date, which is compared with
// `now`; never negative. Nullopt if `value` is neither.
std::optional<absl::Duration> ParseRetryAfter(const std::string& value, absl::Time now);

// The pause before attempt number `attempt` (2 for the first retry): `first`, doubled with each
// further attempt up to `longest`, times a factor in [0.5, 1) drawn with `key`, so that requests
// that failed together do not return together.
absl::Duration RetryPause(absl::Duration first, absl::Duration longest, int attempt, uint64_t key);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_RETRY_H_
