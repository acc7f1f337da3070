#include "trainer/checkpoint_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "trainer/file_digest.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

// Of a file's entry, see file_digest.h.
constexpr char kDigest[] = "sha256_of_64_mib_parts";
static_assert(kDigestPart == int64_t{64} << 20, "another size needs another name");

// SHA-256 of a file, mapped so that a large one needs no copy in memory: how checkpoints were
// checked that have no digest of parts.
absl::StatusOr<std::string> HashFile(const std::string& path) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  if (size == 0) return Sha256Hex("");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);
  if (data == MAP_FAILED) return ErrnoStatus(error, "read", path);
  std::string digest = Sha256Hex(absl::string_view(static_cast<const char*>(data), size));
  munmap(data, size);
  return digest;
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
  ASSIGN_OR_RETURN(const std::string digest, DigestOfParts(path));
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
                                              " were written: it is truncated"));
    }
    const bool parts = entry.contains(kDigest);
    ASSIGN_OR_RETURN(const std::string digest, parts ? DigestOfParts(file) : HashFile(file));
    if (digest != entry.value(parts ? kDigest : "sha256", "")) {
      return absl::DataLossError(absl::StrCat(file, " does not match its checksum"));
    }
  }
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  return result == 0 ? absl::OkStatus() : ErrnoStatus(error, "sync", path);
}

}  // namespace tritonrl
