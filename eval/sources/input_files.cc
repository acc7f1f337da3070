#include "eval/sources/input_files.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/git_lfs.h"
#include "base/jsonl.h"
#include "base/status.h"
#include "base/utf8.h"

namespace tritonrl {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxFiles = 200'000;

// The path without links; "" if a link leads nowhere.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), free);
  return real == nullptr ? "" : real.get();
}

absl::Status RefuseLink(const std::string& path, const std::string& where_to) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, " is a symbolic link ", where_to,
      "; copy the folder with the files themselves (cp -rL FROM TO), and give the copy"));
}

// Collects the files of folder `relative` ("" for the root itself).
absl::Status Collect(const std::string& root, const std::string& real_root,
                     const std::string& relative, int depth, std::vector<std::string>* files) {
  const std::string folder = relative.empty() ? root : JoinPath(root, relative);
  if (depth > kMaxDepth) {
    return absl::InvalidArgumentError(absl::StrCat(folder, " is more than ", kMaxDepth,
                                                   " folders deep; give the folder of one run"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    if (name[0] == '.') continue;
    const std::string below = relative.empty() ? name : JoinPath(relative, name);
    const std::string path = JoinPath(root, below);
    struct stat info = {};
    if (lstat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "read", path);
    if (S_ISLNK(info.st_mode)) {
      const std::string target = RealPath(path);
      if (target.empty()) return RefuseLink(path, "to nothing");
      if (!absl::StartsWith(target, real_root + "/")) return RefuseLink(path, "out of the folder");
      if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "read", path);
      if (!S_ISREG(info.st_mode)) return RefuseLink(path, "to a folder");
    }
    if (S_ISDIR(info.st_mode)) {
      RETURN_IF_ERROR(Collect(root, real_root, below, depth + 1, files));
      continue;
    }
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is neither a file nor a folder; remove it"));
    }
    files->push_back(below);
    if (files->size() > kMaxFiles) {
      return absl::InvalidArgumentError(
          absl::StrCat(root, " has more than ", kMaxFiles, " files; give the folder of one run"));
    }
  }
  return absl::OkStatus();
}

// What is wrong with `text`, "" if it is text.
std::string WhyNoText(absl::string_view text) {
  if (absl::StrContains(text, '\0')) {
    return "has a NUL byte, so that it is no text; give the file itself, not compressed";
  }
  if (!IsValidUtf8(text)) return "is not UTF-8 text; convert it";
  return "";
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& folder) {
  std::vector<std::string> files;
  RETURN_IF_ERROR(Collect(folder, RealPath(folder), "", 0, &files));
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::string> ReadText(const std::string& path, int64_t* left) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  if (size > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has ", size, " bytes; a file with one program has at most ", kMaxTextBytes));
  }
  if (size > *left) {
    return absl::InvalidArgumentError(absl::StrCat("the files up to ", path, " have more than ",
                                                   kMaxInputBytes,
                                                   " bytes; give a folder with fewer of them"));
  }
  *left -= size;
  ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  RETURN_IF_ERROR(RefuseGitLfsPointer(text, path));
  if (const std::string why = WhyNoText(text); !why.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " ", why));
  }
  return text;
}

absl::Status ForEachLine(
    const std::string& path,
    absl::FunctionRef<absl::Status(const std::string& text, const std::string& where)> each) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(path, kMaxTextBytes));
  int64_t kept = 0;
  bool any = false;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<Line> line, lines->Next());
    if (!line.has_value()) break;
    const std::string where = absl::StrCat(path, ", line ", line->number);
    if (line->too_long) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": the line is longer than ", kMaxTextBytes,
                       " bytes; wanted one JSON object with one generation in each line"));
    }
    kept += static_cast<int64_t>(line->text.size());
    if (kept > kMaxInputBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, " has more than ", kMaxInputBytes,
                                                     " bytes; give a part of its lines"));
    }
    if (!any) RETURN_IF_ERROR(RefuseGitLfsPointer(line->text, path));
    if (const std::string why = WhyNoText(line->text); !why.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": the line ", why));
    }
    if (absl::StripAsciiWhitespace(line->text).empty()) continue;
    any = true;
    if (const absl::Status status = each(line->text, where); !status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat(where, ": ", status.message(),
                       line->complete ? "" : " (the file ends in this line: was it cut off?)"));
    }
  }
  if (any) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, " is empty; wanted one JSON object a line"));
}

}  // namespace tritonrl
