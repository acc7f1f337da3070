#ifndef TRITONRL_BASE_RUNFILES_H_
#define TRITONRL_BASE_RUNFILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

// Data files of Bazel targets, and the Python interpreter with the pinned packages.

namespace tritonrl {

// Absolute path of a data file or folder given from the workspace's root ("tasks/mini",
// "external/python_env/site"; names of other repositories may also be given as "../name/...").
// Works under `bazel run`, `bazel test`, for bazel-bin/... started by hand and in an unpacked
// archive. Search order: $TRITONRL_RUNFILES, $RUNFILES_DIR and $TEST_SRCDIR, <program>.runfiles
// beside the program, a runfiles folder above the program, the workspace above the program.
// NotFound names the places searched.
absl::StatusOr<std::string> Runfile(const std::string& path_from_workspace_root);

// Absolute path of the running program with links resolved.
absl::StatusOr<std::string> ProgramPath();

// The interpreter and packages that the checked code runs with.
struct PythonEnv {
  std::string interpreter;  // absolute path
  // Folder for PYTHONPATH with torch, triton, ...; empty when the interpreter has them itself.
  std::string site_packages;
  // Folders for LD_LIBRARY_PATH; often empty, as the wheels find their libraries themselves.
  std::vector<std::string> library_paths;

  // Environment entries (PYTHONPATH with `extra_python_path` first, LD_LIBRARY_PATH, no user
  // site, no bytecode files) for a child that runs the interpreter.
  std::vector<std::pair<std::string, std::string>> Environment(
      const std::vector<std::string>& extra_python_path = {}) const;
};

// $TRITONRL_PYTHON (an interpreter that has the packages), $TRITONRL_SITE_PACKAGES (a folder used
// with it or with python3), else the interpreter and wheels of the build. Targets that call this
// list //third_party:python_env under `data`.
absl::StatusOr<PythonEnv> FindPythonEnv();

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RUNFILES_H_
