// Many HTTP transfers driven by one thread, with libcurl.
#ifndef TRITONRL_BASE_ENDPOINT_HTTP_TRANSFERS_H_
#define TRITONRL_BASE_ENDPOINT_HTTP_TRANSFERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

struct HttpRequest {
  std::string url;  // http or https
  std::vector<std::string> headers;
  std::string body;  // sent by POST
  absl::Duration timeout = absl::Minutes(10);
};

struct HttpReply {
  int64_t id = 0;
  std::string error;  // why there is no complete reply; empty: the other members are set
  int status = 0;
  std::string body;
  std::string retry_after;  // the header, or ""
  std::string location;     // the header, or ""
};

// Not thread-safe except for Wake. Redirects are not followed: a request carries a key, which must
// not reach another host.
class HttpTransfers {
 public:
  // `max_body_bytes`: a longer reply ends its transfer with an error.
  static absl::StatusOr<std::unique_ptr<HttpTransfers>> Make(int64_t max_body_bytes,
                                                             absl::Duration connect_timeout);
  virtual ~HttpTransfers() = default;  // cuts the transfers in flight

  // Begins a transfer; its reply, or its error, is returned by Wait.
  virtual absl::Status Start(int64_t id, HttpRequest request) = 0;

  // Moves the transfers on until one has ended, Wake is called or `timeout` has passed. Returns
  // those that have ended.
  virtual std::vector<HttpReply> Wait(absl::Duration timeout) = 0;

  // Makes a Wait return at once; the next one, if none is running. Thread-safe.
  virtual void Wake() = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_HTTP_TRANSFERS_H_
