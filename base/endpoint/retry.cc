#include "base/endpoint/retry.h"

#include <curl/curl.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/random.h"

namespace tritonrl {

HttpClass ClassifyHttp(int status, absl::string_view error_code) {
  if (status == 200) return HttpClass::kSuccess;
  if (status == 429) {
    const bool quota = error_code == "insufficient_quota" || error_code == "billing_not_active";
    return quota ? HttpClass::kRefused : HttpClass::kRateLimited;
  }
  if (status == 408 || status == 409 || status == 425 || status >= 500) return HttpClass::kRetry;
  return HttpClass::kRefused;
}

std::optional<absl::Duration> ParseRetryAfter(const std::string& value, absl::Time now) {
  const std::string text(absl::StripAsciiWhitespace(value));
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds)) {
    if (!std::isfinite(seconds)) return std::nullopt;
    return std::max(absl::ZeroDuration(), absl::Seconds(seconds));
  }
  const time_t date = curl_getdate(text.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::max(absl::ZeroDuration(), absl::FromTimeT(date) - now);
}

absl::Duration RetryPause(absl::Duration first, absl::Duration longest, int attempt, uint64_t key) {
  const int doublings = std::clamp(attempt - 2, 0, 30);
  const absl::Duration pause = std::min(longest, first * (int64_t{1} << doublings));
  return pause * (0.5 + 0.5 * Philox(key, static_cast<uint64_t>(attempt)).Uniform());
}

}  // namespace tritonrl
