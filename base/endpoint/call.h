// One request on its way through the client, with all its attempts.
#ifndef TRITONRL_BASE_ENDPOINT_CALL_H_
#define TRITONRL_BASE_ENDPOINT_CALL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/endpoint/budget.h"
#include "base/endpoint/client.h"
#include "base/endpoint/message.h"

namespace tritonrl {

struct EndpointCall {
  int64_t id = 0;
  EndpointRequest request;
  std::string url, body;  // set by PrepareCall
  EndpointClient::Done done;
  std::string error;            // of the newest attempt that failed
  int attempts = 0;             // begun so far
  int counted = 0;              // of these, ended without HTTP 429
  absl::Time deadline;          // set by the first attempt
  EndpointBudget::Share share;  // of the newest attempt
};

// Sets url and body. InvalidArgument: the request cannot be written, or a cost ceiling needs a
// limit of its tokens.
absl::Status PrepareCall(const EndpointOptions& options, EndpointCall* call);

// Why a call that failed and would begin again after `pause` is given up: "in 3 attempts", "within
// 1h (2 attempts)"; "": it is sent again. `last`: no further attempt may start.
std::string WhyGivenUp(const EndpointOptions& options, const EndpointCall& call, absl::Time now,
                       absl::Duration pause, bool last);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_CALL_H_
