// Finds files that a Bazel target lists under `data`.
#ifndef TRITONRL_BASE_RUNFILES_H_
#define TRITONRL_BASE_RUNFILES_H_

#include <string>

#include "absl/status/statusor.h"

namespace tritonrl {

// Absolute path of a data file or folder given from the workspace's root ("tasks/mini",
// "external/python_env/site"; names of other repositories may also be given as "../name/...").
// Works under `bazel run`, `bazel test`, for bazel-bin/... started by hand and in an unpacked
// archive. Looked up in this order: $TRITONRL_RUNFILES, $RUNFILES_DIR and $TEST_SRCDIR,
// <program>.runfiles beside the program, a runfiles folder the program itself lies in, the
// workspace that the program's path lies in. NotFound names the places looked at.
absl::StatusOr<std::string> Runfile(const std::string& path_from_workspace_root);

// Absolute path of the running program, links resolved as the kernel gives it.
absl::StatusOr<std::string> ProgramPath();

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RUNFILES_H_
