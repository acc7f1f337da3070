// The files of a checkpoint's folder: sizes, checksums and the manifest that lists them.
#ifndef TRITONRL_TRAINER_CHECKPOINT_FILES_H_
#define TRITONRL_TRAINER_CHECKPOINT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

// Size and digest (file_digest.h) of `files` (paths below `dir`; of a folder all that is in it) as
// JSON.
absl::StatusOr<std::string> DescribeFiles(const std::string& dir,
                                          const std::vector<std::string>& files);

// Writes manifest.json from what DescribeFiles gave on each rank, and syncs it and the folder.
absl::Status WriteManifest(const std::string& dir, const std::vector<std::string>& described);

// Compares the files of `dir` with its manifest.json. The error names the file and what differs:
// missing, shorter or longer than written, or other contents. With `ranks` above 1 only every
// `ranks`-th file, from number `rank` on.
absl::Status VerifyManifest(const std::string& dir, int rank = 0, int ranks = 1);

// Makes new names in a folder outlast a power failure.
absl::Status SyncDirectory(const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CHECKPOINT_FILES_H_
