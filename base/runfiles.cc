#include "base/runfiles.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {

namespace {

std::string EnvVar(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

// The path by which this program was started. It differs from ProgramPath() if it is a link in
// another target's runfiles.
std::string InvokedPath() {
  absl::StatusOr<std::string> arguments = ReadFile("/proc/self/cmdline");
  if (!arguments.ok() || arguments->empty()) return "";
  std::string first = arguments->c_str();
  if (first.find('/') == std::string::npos) return "";
  char buffer[PATH_MAX];
  if (first[0] != '/' && getcwd(buffer, sizeof(buffer)) != nullptr) {
    first = JoinPath(buffer, first);
  }
  return first;
}

// The candidate runfiles folders, each of which holds one folder per repository.
std::vector<std::string> RunfilesRoots() {
  std::vector<std::string> roots;
  for (const char* name : {"TRITONRL_RUNFILES", "RUNFILES_DIR", "TEST_SRCDIR"}) {
    if (std::string value = EnvVar(name); !value.empty()) roots.push_back(value);
  }
  std::vector<std::string> programs = {InvokedPath()};
  if (absl::StatusOr<std::string> program = ProgramPath(); program.ok()) {
    programs.push_back(*program);
  }
  for (const std::string& program : programs) {
    if (program.empty()) continue;
    roots.push_back(program + ".runfiles");
    // A folder named *.runfiles that contains the program.
    for (std::string folder = DirName(program); folder.size() > 1; folder = DirName(folder)) {
      if (absl::EndsWith(folder, ".runfiles")) roots.push_back(folder);
      if (folder == DirName(folder)) break;
    }
  }
  return roots;
}

// Returns the existing file of `path` below `root`, in an external repository or in the main
// repository, which has several possible names; "" if there is none.
std::string FindBelow(const std::string& root, const std::string& path) {
  for (absl::string_view prefix : {"../", "external/"}) {
    if (absl::StartsWith(path, prefix)) {
      std::string candidate = JoinPath(root, path.substr(prefix.size()));
      if (FileExists(candidate)) return candidate;
    }
  }
  std::vector<std::string> names = {EnvVar("TEST_WORKSPACE"), "tritonrl", "__main__"};
  for (const std::string& name : names) {
    if (name.empty()) continue;
    std::string candidate = JoinPath(JoinPath(root, name), path);
    if (FileExists(candidate)) return candidate;
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> ProgramPath() {
  char buffer[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", buffer, sizeof(buffer));
  if (n <= 0 || n == PATH_MAX) return absl::InternalError("cannot read /proc/self/exe");
  return std::string(buffer, n);
}

absl::StatusOr<std::string> Runfile(const std::string& path_from_workspace_root) {
  const std::string& path = path_from_workspace_root;
  if (!path.empty() && path[0] == '/') return path;
  std::vector<std::string> roots = RunfilesRoots();
  for (const std::string& root : roots) {
    if (std::string found = FindBelow(root, path); !found.empty()) return found;
  }
  // A program in bazel-bin may have been built without a runfiles folder. It is then inside Bazel's
  // execution root, which links to the source tree.
  if (absl::StatusOr<std::string> program = ProgramPath(); program.ok()) {
    for (const char* marker : {"/bazel-out/", "/bazel-bin/"}) {
      size_t at = program->find(marker);
      if (at == std::string::npos) continue;
      std::string candidate = JoinPath(program->substr(0, at), path);
      if (FileExists(candidate)) return candidate;
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "data file ", path, " not found; looked in ", absl::StrJoin(roots, ", "),
      "; start the program with bazel run, or set TRITONRL_RUNFILES to its runfiles folder"));
}

namespace {

// The repository rule writes it: the first line is the interpreter's path, the second the folder of
// wheels.
constexpr char kPythonEnvFile[] = "external/pypi/python_env.txt";

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
  env.interpreter = EnvVar("TRITONRL_PYTHON");
  env.site_packages = EnvVar("TRITONRL_SITE_PACKAGES");
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
