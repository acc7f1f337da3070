#ifndef TRITONRL_TRAINER_CHECKPOINT_MANIFEST_H_
#define TRITONRL_TRAINER_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The manifest of a checkpoint's folder: sizes and checksums of its files.

namespace tritonrl {

constexpr int64_t kDigestChunkBytes = int64_t{64} << 20;

// SHA-256, as hex digits, of the SHA-256 (32 bytes each) of the file's parts of `part` bytes, which
// up to eight threads compute; `part` is at least 1. An empty file has no part. Errors: the file
// cannot be read, or there is no memory for it.
absl::StatusOr<std::string> ChunkedSha256(const std::string& path,
                                          int64_t part = kDigestChunkBytes);

// Size and digest (manifest.h) of `files` (paths below `dir`; of a folder all that is in it) as
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

#endif  // TRITONRL_TRAINER_CHECKPOINT_MANIFEST_H_
