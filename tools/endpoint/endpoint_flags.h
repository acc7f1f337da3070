// Command-line flags of the programs that ask an OpenAI-compatible endpoint.
#ifndef TRITONRL_TOOLS_ENDPOINT_ENDPOINT_FLAGS_H_
#define TRITONRL_TOOLS_ENDPOINT_ENDPOINT_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/endpoint/client.h"

namespace tritonrl {

// The value of --endpoint.
std::string EndpointUrlFlag();
// The value of --model.
std::string EndpointModelFlag();
// The value of --extra.
std::string EndpointExtraFlag();

// The options that the flags set. InvalidArgument names a missing --endpoint or --model; other
// mistakes are found by EndpointClient::Make.
absl::StatusOr<EndpointOptions> EndpointOptionsFromFlags();

// The same for a server of this program's own, whose address and model the flags do not name.
EndpointOptions OwnEndpointOptionsFromFlags();

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_ENDPOINT_ENDPOINT_FLAGS_H_
