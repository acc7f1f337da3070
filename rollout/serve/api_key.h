// The key that clients give as "Authorization: Bearer KEY".
#ifndef TRITONRL_ROLLOUT_SERVE_API_KEY_H_
#define TRITONRL_ROLLOUT_SERVE_API_KEY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// The key in a file of this user with mode 600 (or 400), else that in `environment_value` (null or
// empty: none), without white space around it. Empty if `file` is empty and the environment has
// none. InvalidArgument or PermissionDenied: a key shorter than 16 characters or of several words,
// a file that others may read.
absl::StatusOr<std::string> LoadApiKey(const std::string& file, const char* environment_value);

// Whether the value of an Authorization header carries `key`; takes the same time wherever they
// differ.
bool HasApiKey(absl::string_view authorization, const std::string& key);

// Whether a server on `host` can be reached from this machine alone: 127.x.x.x, ::1, localhost.
bool IsLoopback(const std::string& host);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_API_KEY_H_
