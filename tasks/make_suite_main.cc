// Writes the built-in mini suite, which is committed in tasks/mini.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "tasks/dataset.h"

ABSL_FLAG(std::string, out, "", "Folder to write, e.g. tasks/mini; required.");

namespace {

absl::Status WriteSuite(const std::string& folder) {
  // Removes the files of an older suite.
  for (const char* part : {"train", "heldout"}) {
    RETURN_IF_ERROR(tritonrl::RemoveTree(tritonrl::JoinPath(folder, part)));
  }
  for (const tritonrl::SuiteFile& file : tritonrl::BuildMiniSuite()) {
    const std::string path = tritonrl::JoinPath(folder, file.path);
    RETURN_IF_ERROR(tritonrl::CreateDirectories(tritonrl::DirName(path)));
    RETURN_IF_ERROR(tritonrl::WriteFileAtomic(path, file.contents));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<char*> rest = tritonrl::StartProgram("make_suite --out=FOLDER", argc, argv);
  if (rest.size() > 1 || absl::GetFlag(FLAGS_out).empty()) {
    std::fprintf(stderr, "make_suite: pass --out=FOLDER and no other words; see --help\n");
    return 2;
  }
  const absl::Status status = WriteSuite(tritonrl::UserPath(absl::GetFlag(FLAGS_out)));
  if (!status.ok()) {
    std::fprintf(stderr, "make_suite: %s\n", tritonrl::Message(status).c_str());
    return 1;
  }
  return 0;
}
