#include "base/python_env.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// Written by the repository rule: the interpreter's path and the folder of wheels, a line each.
constexpr char kPythonEnvFile[] = "external/pypi/python_env.txt";

std::string Environment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

absl::Status CheckInterpreter(const std::string& path, const std::string& source) {
  if (access(path.c_str(), X_OK) == 0) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("Python interpreter ", path, " (from ", source, ") cannot be executed"));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> PythonEnv::Environment(
    const std::vector<std::string>& extra_python_path) const {
  std::vector<std::string> python_path = extra_python_path;
  if (!site_packages.empty()) python_path.push_back(site_packages);
  std::vector<std::pair<std::string, std::string>> entries = {
      {"PYTHONPATH", absl::StrJoin(python_path, ":")},
      {"PYTHONNOUSERSITE", "1"},
      {"PYTHONDONTWRITEBYTECODE", "1"}};
  if (!library_paths.empty()) {
    entries.emplace_back("LD_LIBRARY_PATH", absl::StrJoin(library_paths, ":"));
  }
  return entries;
}

absl::StatusOr<PythonEnv> FindPythonEnv() {
  PythonEnv env;
  env.interpreter = Environment("TRITONRL_PYTHON");
  env.site_packages = Environment("TRITONRL_SITE_PACKAGES");
  if (!env.interpreter.empty() || !env.site_packages.empty()) {
    if (env.interpreter.empty()) env.interpreter = "/usr/bin/python3";
    RETURN_IF_ERROR(CheckInterpreter(env.interpreter, "TRITONRL_PYTHON"));
    if (!env.site_packages.empty() && !DirectoryExists(env.site_packages)) {
      return absl::NotFoundError(absl::StrCat("folder ", env.site_packages,
                                              " (from TRITONRL_SITE_PACKAGES) does not exist"));
    }
    return env;
  }
  ASSIGN_OR_RETURN(std::string path, Runfile(kPythonEnvFile));
  ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.size() < 2) return absl::InternalError(absl::StrCat(path, " does not hold two lines"));
  env.interpreter = lines[0];
  env.site_packages = lines[1];
  RETURN_IF_ERROR(CheckInterpreter(env.interpreter, path));
  if (!DirectoryExists(env.site_packages)) {
    return absl::NotFoundError(absl::StrCat("folder ", env.site_packages, " (from ", path,
                                            ") does not exist; run ./bazelw to fetch it again"));
  }
  return env;
}

}  // namespace tritonrl
