#include "base/git_lfs.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {

absl::Status RefuseGitLfsPointer(absl::string_view contents, const std::string& path) {
  if (!absl::StartsWith(contents, "version https://git-lfs.github.com/spec/")) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   ": is a Git LFS pointer, not the file itself; run \"git lfs pull\" in its "
                   "folder or download the file"));
}

}  // namespace tritonrl
