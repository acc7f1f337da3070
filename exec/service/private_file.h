// Small files that only their owner may read: tokens, and what holds one.
#ifndef TRITONRL_EXEC_SERVICE_PRIVATE_FILE_H_
#define TRITONRL_EXEC_SERVICE_PRIVATE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// Writes a file of mode 600 in one step: it is there whole or not at all.
absl::Status WritePrivateFile(const std::string& path, absl::string_view contents);

// Reads at most 64 KiB. PermissionDenied when the file belongs to another user or others may read
// or write it; links are not followed.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path);

// 256 random bits as 64 hex digits.
absl::StatusOr<std::string> NewToken();

// The token in a private file, without white space around it; at least 32 characters. With `create`
// a missing file is made with a new token.
absl::StatusOr<std::string> TokenFromFile(const std::string& path, bool create);

// Takes the same time wherever two tokens differ.
bool EqualTokens(absl::string_view a, absl::string_view b);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_PRIVATE_FILE_H_
