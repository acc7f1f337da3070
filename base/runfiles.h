#ifndef TRITONRL_BASE_RUNFILES_H_
#define TRITONRL_BASE_RUNFILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

// Finds files that a Bazel target lists under `data`.
//
// The Python interpreter and the pinned packages that the checked code runs with.

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
