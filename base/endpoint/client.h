// A client of an OpenAI-compatible endpoint: hundreds of requests in flight from one thread, with
// deadlines, retries, rate limits and a cost ceiling.
#ifndef TRITONRL_BASE_ENDPOINT_CLIENT_H_
#define TRITONRL_BASE_ENDPOINT_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/endpoint/message.h"

namespace tritonrl {

struct EndpointOptions {
  // "https://host/v1", or the whole address of its /chat/completions or /completions.
  std::string url;
  bool exact_url = false;  // `url` is the address of every request, whatever it ends in
  // Name of the environment variable that holds the bearer token; "": no token is sent.
  std::string api_key_variable;
  absl::Duration connect_timeout = absl::Seconds(20);
  absl::Duration attempt_timeout = absl::Minutes(15);
  absl::Duration total_timeout = absl::Hours(1);  // of one request, from its first attempt on
  // Attempts of one request. Attempts that end in HTTP 429 do not count; total_timeout bounds them.
  int max_attempts = 6;
  absl::Duration first_pause =
      absl::Seconds(1);  // doubled after each failed attempt, see RetryPause
  absl::Duration longest_pause = absl::Minutes(1);
  int max_in_flight = 64;
  int64_t requests_per_minute = 0;  // 0: no limit
  int64_t tokens_per_minute = 0;    // of prompts and responses together; 0: no limit
  int64_t max_reply_bytes = 16 << 20;
  double price_in = 0, price_out = 0;  // US dollars for a million tokens
  // US dollars; 0: no ceiling. A request starts only if the most that it can cost fits below the
  // ceiling, so the cost that the endpoint reports never exceeds it. Needs max_tokens in each
  // request.
  double max_cost = 0;
  uint64_t seed = 0;             // of the pauses' random factor
  Clock* clock = Clock::Real();  // of pauses, limits and total_timeout; must outlive the client
};

// Totals since the client was made.
struct EndpointCounts {
  int64_t attempts = 0;
  int64_t responses = 0;
  int64_t failures = 0;      // requests that ended with an error
  int64_t retries = 0;       // attempts that failed and were followed by another
  int64_t rate_limited = 0;  // attempts that ended in HTTP 429
  int64_t in_flight = 0;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t unreported = 0;  // responses whose tokens were estimated from their bytes
  double cost = 0;         // US dollars, by the prices of the options
};

// Thread-safe.
class EndpointClient {
 public:
  // Called once, on the client's own thread: it must not block.
  using Done = std::function<void(absl::StatusOr<EndpointResponse>)>;

  // Does not connect yet. InvalidArgument, with one sentence: no url, a url that is not http or
  // https, a variable that is not set, or a limit out of its range.
  static absl::StatusOr<std::unique_ptr<EndpointClient>> Make(const EndpointOptions& options);
  virtual ~EndpointClient() = default;  // ends all requests with Cancelled

  // Queues a request, and returns at once. Errors that `done` gets:
  //   Unavailable         no usable response in max_attempts attempts or within total_timeout
  //   Unauthenticated     the endpoint refuses the key, or wants one (401)
  //   PermissionDenied    the key may not do this (403), or the account's quota is used up
  //   NotFound            there is no such path or model (404)
  //   InvalidArgument     the endpoint refuses this request (other 4xx), or it cannot be written
  //   ResourceExhausted   the cost ceiling is reached
  //   Cancelled           CancelWaiting, Close or the destructor
  virtual void Submit(EndpointRequest request, Done done) = 0;

  // Submit, and blocks for the response. Not for the client's own thread.
  absl::StatusOr<EndpointResponse> Ask(EndpointRequest request);

  // Ends requests that are not in flight with Cancelled; no later request and no further attempt
  // starts. Responses in flight still arrive.
  virtual void CancelWaiting() = 0;

  // Adds tokens of an earlier run to the cost, so that the ceiling counts both.
  virtual void AddEarlier(const EndpointUsage& usage) = 0;

  virtual EndpointCounts counts() const = 0;
  virtual const EndpointOptions& options() const = 0;

  // CPU time of the client's thread so far.
  virtual absl::Duration CpuTime() const = 0;
};

// True for errors after which further requests to the same endpoint are of no use: a refused key, a
// path or model that does not exist, a reached ceiling.
bool EndsAllRequests(const absl::Status& status);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_CLIENT_H_
