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

// Hex SHA-256 of the concatenated SHA-256 digests (32 bytes each) of the file's parts of `part`
// bytes, `part` >= 1. Up to eight threads compute the digests of parts. An empty file has no part.
// Errors: the file cannot be read, or out of memory.
absl::StatusOr<std::string> ChunkedSha256(const std::string& path,
                                          int64_t part = kDigestChunkBytes);

// Size and digest of `files` (paths relative to `dir`; a folder stands for all files in it) as
// JSON.
absl::StatusOr<std::string> DescribeFiles(const std::string& dir,
                                          const std::vector<std::string>& files);

// Writes manifest.json from the results of DescribeFiles on all ranks, then syncs it and the
// folder.
absl::Status WriteManifest(const std::string& dir, const std::vector<std::string>& described);

// Compares the files of `dir` with its manifest.json. NotFound: no manifest. DataLoss names the
// file and the difference: missing, wrong size or wrong checksum. With `ranks` > 1 it checks only
// every `ranks`-th file, from number `rank` on.
absl::Status VerifyManifest(const std::string& dir, int rank = 0, int ranks = 1);

// Syncs a folder, so that new names in it survive a power failure.
absl::Status SyncDirectory(const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CHECKPOINT_MANIFEST_H_
