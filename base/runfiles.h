// Finds data files of Bazel targets, and the Python interpreter with the pinned packages.
#ifndef TRITONRL_BASE_RUNFILES_H_
#define TRITONRL_BASE_RUNFILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

// Returns the absolute path of a data file or folder, given by its path from the workspace's root
// ("tasks/mini"); files of another repository are "external/name/..." or "../name/...". Works under
// `bazel run` and `bazel test`, for bazel-bin/... started directly, and in an unpacked archive.
// Search order: $TRITONRL_RUNFILES, $RUNFILES_DIR and $TEST_SRCDIR, <program>.runfiles beside the
// program, a runfiles folder above the program, the workspace above the program. NotFound names the
// searched folders.
absl::StatusOr<std::string> Runfile(const std::string& path_from_workspace_root);

// The absolute path of the running program, with links resolved.
absl::StatusOr<std::string> ProgramPath();

// The Python interpreter and packages that run references and candidates.
struct PythonEnv {
  std::string interpreter;  // absolute path
  // Folder for PYTHONPATH with torch, triton, ...; empty if the interpreter has these packages.
  std::string site_packages;
  // Folders for LD_LIBRARY_PATH; often empty, because the wheels find their libraries without it.
  std::vector<std::string> library_paths;

  // The environment variables for a process that runs the interpreter: PYTHONPATH with
  // `extra_python_path` first, LD_LIBRARY_PATH, and settings against user site packages and
  // bytecode files.
  std::vector<std::pair<std::string, std::string>> Environment(
      const std::vector<std::string>& extra_python_path = {}) const;
};

// Returns the environment of $TRITONRL_PYTHON (an interpreter) and $TRITONRL_SITE_PACKAGES (a
// folder of packages, used with that interpreter or with /usr/bin/python3); if neither is set, the
// interpreter and wheels of the build. NotFound if one of them does not exist. Targets that call
// this list //third_party:python_env under `data`.
absl::StatusOr<PythonEnv> FindPythonEnv();

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RUNFILES_H_
