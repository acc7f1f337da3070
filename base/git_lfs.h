// Recognises the pointers of Git LFS, which stand in the place of files that were not downloaded.

#ifndef TRITONRL_BASE_GIT_LFS_H_
#define TRITONRL_BASE_GIT_LFS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// Returns FailedPrecondition that names `path` and says how to download the file if `contents`, the
// start of the file or all of it, is such a pointer; else OK.
absl::Status RefuseGitLfsPointer(absl::string_view contents, const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_GIT_LFS_H_
