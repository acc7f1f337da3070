#include "trainer/checkpoint/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

constexpr int kMaxThreads = 8;
constexpr int64_t kBlock = int64_t{1} << 20;

// SHA-256 of bytes [begin, end) of an open file, read in parts into `block`.
absl::StatusOr<std::string> DigestOf(const std::string& path, int fd, int64_t begin, int64_t end,
                                     std::vector<char>* block) {
  block->resize(kBlock);
  Sha256 digest;
  for (int64_t at = begin; at < end;) {
    const int64_t size = std::min(kBlock, end - at);
    RETURN_IF_ERROR(ReadAt(fd, at, size, block->data(), path));
    digest.Update(absl::string_view(block->data(), size));
    at += size;
  }
  return digest.Finish();
}

}  // namespace

absl::StatusOr<std::string> ChunkedSha256(const std::string& path, int64_t part) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  std::vector<std::string> digests((size + part - 1) / part);
  std::vector<std::vector<char>> blocks(kMaxThreads);
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  const absl::Status status = ParallelFor(
      kMaxThreads, static_cast<int64_t>(digests.size()),
      [&](int thread, int64_t i) -> absl::Status {
        const int64_t begin = i * part, end = std::min(size, begin + part);
        ASSIGN_OR_RETURN(digests[i], DigestOf(path, fd.get(), begin, end, &blocks[thread]));
        return absl::OkStatus();
      });
  if (absl::IsResourceExhausted(status)) return AddContext(status, path);
  RETURN_IF_ERROR(status);
  Sha256 all;
  for (const std::string& digest : digests) all.Update(digest);
  return absl::BytesToHexString(all.Finish());
}

namespace {

using Json = nlohmann::json;

// Name of the digest in a file's entry, see ChunkedSha256.
constexpr char kDigest[] = "sha256_of_64_mib_parts";
static_assert(kDigestChunkBytes == int64_t{64} << 20, "another size needs another name");

// SHA-256 of a whole file, for older checkpoints without digests of parts.
absl::StatusOr<std::string> HashFile(const std::string& path) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  std::vector<char> block;
  ASSIGN_OR_RETURN(const std::string digest, DigestOf(path, fd.get(), 0, size, &block));
  return absl::BytesToHexString(digest);
}

// Relative paths of all files below `dir`, sorted.
absl::Status ListFiles(const std::string& dir, const std::string& below,
                       std::vector<std::string>* files) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(JoinPath(dir, below)));
  for (const std::string& name : names) {
    const std::string relative = below.empty() ? name : JoinPath(below, name);
    if (DirectoryExists(JoinPath(dir, relative))) {
      RETURN_IF_ERROR(ListFiles(dir, relative, files));
    } else {
      files->push_back(relative);
    }
  }
  return absl::OkStatus();
}

// Size and checksum of one file of `dir`.
absl::StatusOr<Json> DescribeFile(const std::string& dir, const std::string& file) {
  const std::string path = JoinPath(dir, file);
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  ASSIGN_OR_RETURN(const std::string digest, ChunkedSha256(path));
  return Json{{"size", size}, {kDigest, digest}};
}

}  // namespace

absl::StatusOr<std::string> DescribeFiles(const std::string& dir,
                                          const std::vector<std::string>& files) {
  std::vector<std::string> all;
  for (const std::string& file : files) {
    if (DirectoryExists(JoinPath(dir, file))) {
      RETURN_IF_ERROR(ListFiles(dir, file, &all));
    } else {
      all.push_back(file);
    }
  }
  Json entries = Json::object();
  for (const std::string& file : all) {
    ASSIGN_OR_RETURN(entries[file], DescribeFile(dir, file));
  }
  return entries.dump();
}

absl::Status WriteManifest(const std::string& dir, const std::vector<std::string>& described) {
  Json manifest;
  for (const std::string& entries : described) manifest["files"].update(Json::parse(entries));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(dir, "manifest.json"), manifest.dump(1) + "\n"));
  return SyncDirectory(dir);
}

absl::Status VerifyManifest(const std::string& dir, int rank, int ranks) {
  const std::string path = JoinPath(dir, "manifest.json");
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const Json manifest = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (manifest.is_discarded() || !manifest.contains("files") || !manifest["files"].is_object()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  int number = 0;
  for (const auto& [name, entry] : manifest["files"].items()) {
    if (number++ % ranks != rank) continue;
    const std::string file = JoinPath(dir, name);
    if (!FileExists(file)) return absl::DataLossError(absl::StrCat(file, " is missing"));
    ASSIGN_OR_RETURN(const int64_t size, FileSize(file));
    const int64_t wanted = entry.value("size", int64_t{-1});
    if (size != wanted) {
      return absl::DataLossError(absl::StrCat(file, " has ", size, " bytes but ", wanted,
                                              " were written",
                                              size < wanted ? ": it is truncated" : ""));
    }
    const bool parts = entry.contains(kDigest);
    ASSIGN_OR_RETURN(const std::string digest, parts ? ChunkedSha256(file) : HashFile(file));
    if (digest != entry.value(parts ? kDigest : "sha256", "")) {
      return absl::DataLossError(absl::StrCat(file, " does not match its checksum"));
    }
  }
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::string& path) {
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  return fsync(fd.get()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "sync", path);
}

}  // namespace tritonrl
