// What a request and a result must be to cross the network.
#ifndef TRITONRL_EXEC_SERVICE_WIRE_H_
#define TRITONRL_EXEC_SERVICE_WIRE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/service/service.pb.h"

namespace tritonrl {

inline constexpr int64_t kMaxRequestBytes = 8 << 20;  // of a message to a server
inline constexpr int64_t kMaxReplyBytes = 16 << 20;   // of its answer

// The header and the trailer of the service (see service.proto).
inline constexpr char kAuthorizationHeader[] = "authorization";
inline constexpr char kTokenPrefix[] = "Bearer ";
inline constexpr char kRetryTrailer[] = "retry-after-ms";

// InvalidArgument names the first field that makes no sense: missing or oversized sources, numbers
// that are negative or not finite.
absl::Status CheckRunRequest(const RunRequest& request);

// Bytes of a stranger as a request that was checked.
absl::StatusOr<RunRequest> DecodeRunRequest(absl::string_view bytes);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_WIRE_H_
