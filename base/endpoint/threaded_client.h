// The client of an endpoint that drives all requests from one thread of its own.
#ifndef TRITONRL_BASE_ENDPOINT_THREADED_CLIENT_H_
#define TRITONRL_BASE_ENDPOINT_THREADED_CLIENT_H_

#include <memory>
#include <string>

#include "base/endpoint/client.h"
#include "base/endpoint/http_transfers.h"

namespace tritonrl {

// EndpointClient::Make after its checks. `key` is the bearer token, or "".
std::unique_ptr<EndpointClient> MakeThreadedClient(const EndpointOptions& options, std::string key,
                                                   std::unique_ptr<HttpTransfers> transfers);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_THREADED_CLIENT_H_
