// The errors of requests that an endpoint refuses for good.
#ifndef TRITONRL_BASE_ENDPOINT_REFUSAL_H_
#define TRITONRL_BASE_ENDPOINT_REFUSAL_H_

#include <string>

#include "absl/status/status.h"
#include "base/endpoint/client.h"
#include "base/endpoint/http_transfers.h"

namespace tritonrl {

// The error, with the codes of EndpointClient::Submit, for a reply to a request to `url` for
// `model`. `error` is the status and the endpoint's own message, without the key.
absl::Status RefusalError(const EndpointOptions& options, const HttpReply& reply,
                          const std::string& url, const std::string& model,
                          const std::string& error);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_REFUSAL_H_
