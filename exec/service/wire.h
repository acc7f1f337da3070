// Limits and checks of requests and results that cross the network.
#ifndef TRITONRL_EXEC_SERVICE_WIRE_H_
#define TRITONRL_EXEC_SERVICE_WIRE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/service/service.pb.h"

namespace tritonrl {

inline constexpr int64_t kMaxRequestBytes = 8 << 20;  // size of a message to a server
inline constexpr int64_t kMaxReplyBytes = 16 << 20;   // size of its reply

// The header and the trailer of the service (see service.proto).
inline constexpr char kAuthorizationHeader[] = "authorization";
inline constexpr char kTokenPrefix[] = "Bearer ";
inline constexpr char kRetryTrailer[] = "retry-after-ms";

// Checks a request. InvalidArgument names the first invalid field: a missing or oversized source, a
// number that is negative or not finite, an unknown mode.
absl::Status CheckRunRequest(const RunRequest& request);

// Parses and checks untrusted bytes. InvalidArgument: they are too large or no RunRequest, or as of
// CheckRunRequest.
absl::StatusOr<RunRequest> DecodeRunRequest(absl::string_view bytes);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_WIRE_H_
