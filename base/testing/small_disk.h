// Runs a program on a disk that is too small for it, and again after the disk has been enlarged.
#ifndef TRITONRL_BASE_TESTING_SMALL_DISK_H_
#define TRITONRL_BASE_TESTING_SMALL_DISK_H_

#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/status.h"

namespace tritonrl {

// A run whose disk filled, and the same command on the larger disk.
struct SmallDiskRuns {
  bool possible = false;        // false: this process may not mount a file system; nothing was run
  int first = -1, second = -1;  // exit codes
  std::string first_out, first_err, second_out, second_err;
};

// Runs `command` twice. `folder` is a file system of its own for both runs, in memory and seen by
// these processes alone: with `bytes` in the first run, with 200 MB in the second. Its contents are
// in `copy_first` and `copy_second` afterwards, two folders that must not exist before.
inline absl::StatusOr<SmallDiskRuns> RunOnASmallDisk(
    const std::vector<std::string>& command, const std::string& folder, int64_t bytes,
    const std::string& copy_first, const std::string& copy_second,
    const RunCommandOptions& options = {.timeout = absl::Minutes(10)}) {
  RETURN_IF_ERROR(CreateDirectories(folder));
  std::string run;
  for (const std::string& word : command) absl::StrAppend(&run, "'", word, "' ");
  const std::string outputs = JoinPath(DirName(folder), BaseName(folder) + ".output");
  RETURN_IF_ERROR(CreateDirectories(outputs));
  const std::string script =
      absl::StrCat("mount -t tmpfs -o size=", bytes, " none '", folder, "' || exit 77\n",    //
                   run, "> '", outputs, "/out1' 2> '", outputs, "/err1'; echo first $?\n",   //
                   "cp -r '", folder, "' '", copy_first, "'\n",                              //
                   "mount -o remount,size=200m '", folder, "' || exit 78\n",                 //
                   run, "> '", outputs, "/out2' 2> '", outputs, "/err2'; echo second $?\n",  //
                   "cp -r '", folder, "' '", copy_second, "'\n");
  // Without the rights of root, the mount happens in a user namespace.
  ASSIGN_OR_RETURN(
      const CommandResult result,
      RunCommand({"unshare", getuid() == 0 ? "-m" : "-rm", "sh", "-c", script}, options));
  SmallDiskRuns runs;
  if (result.exit_code == 77 || absl::StrContains(result.err, "unshare failed")) return runs;
  runs.possible = true;
  for (const absl::string_view line : absl::StrSplit(result.out, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() != 2) continue;
    (words[0] == "first" ? runs.first : runs.second) = std::stoi(words[1]);
  }
  runs.first_out = ReadFile(outputs + "/out1").value_or("");
  runs.first_err = ReadFile(outputs + "/err1").value_or("");
  runs.second_out = ReadFile(outputs + "/out2").value_or("");
  runs.second_err = ReadFile(outputs + "/err2").value_or("");
  return runs;
}

}  // namespace tritonrl

#endif  // TRITONRL_BASE_TESTING_SMALL_DISK_H_
