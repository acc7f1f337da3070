#include "base/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

constexpr size_t kBlock = 1 << 18;

nlohmann::ordered_json ToJson(const MetricValue& value) {
  if (const double* d = std::get_if<double>(&value)) {
    return std::isfinite(*d) ? nlohmann::ordered_json(*d) : nlohmann::ordered_json(nullptr);
  }
  if (const int64_t* i = std::get_if<int64_t>(&value)) return *i;
  if (const std::string* s = std::get_if<std::string>(&value)) return *s;
  return std::get<bool>(value);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path,
                                                             int64_t max_bytes) {
  // Without O_NONBLOCK, open() of a named pipe would block until a writer opens it.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, "read", path);
  std::unique_ptr<LineReader> reader(new LineReader(path, fd, max_bytes));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ": not a plain file"));
  }
  return reader;
}

absl::Status LineReader::Fill() {
  if (used_ > 0) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  const size_t before = buffer_.size();
  buffer_.resize(before + kBlock);
  ssize_t n;
  do {
    n = read(fd_.get(), buffer_.data() + before, kBlock);
  } while (n < 0 && errno == EINTR);
  buffer_.resize(before + (n > 0 ? n : 0));
  if (n < 0) return ErrnoStatus(errno, "read", path_);
  end_ = n == 0;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Line>> LineReader::Next() {
  Line line{.number = number_ + 1, .offset = offset_};
  size_t searched = used_;
  size_t at;
  int64_t passed_over = 0;
  while ((at = buffer_.find('\n', searched)) == std::string::npos && !end_) {
    if (static_cast<int64_t>(buffer_.size() - used_) > max_bytes_) {
      line.too_long = true;
      passed_over += static_cast<int64_t>(buffer_.size() - used_);
      used_ = buffer_.size();
    }
    const size_t kept = buffer_.size() - used_;
    RETURN_IF_ERROR(Fill());
    searched = kept;
  }
  line.complete = at != std::string::npos;
  const size_t length = (line.complete ? at : buffer_.size()) - used_;
  const int64_t whole = passed_over + static_cast<int64_t>(length);
  if (!line.complete && whole == 0) return std::optional<Line>();
  line.too_long = line.too_long || whole > max_bytes_;
  if (!line.too_long) line.text = buffer_.substr(used_, length);
  used_ += length + (line.complete ? 1 : 0);
  offset_ += whole + (line.complete ? 1 : 0);
  ++number_;
  return std::optional<Line>(std::move(line));
}

absl::StatusOr<std::unique_ptr<JsonlJournal>> JsonlJournal::OpenLocked(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd < 0) return ErrnoStatus(errno, "write", path);
  std::unique_ptr<JsonlJournal> journal(new JsonlJournal(path, fd));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": not a plain file"));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is being written by another process; wait for it"));
  }
  // A run that was killed may have left room reserved behind the end. The size counts from here on:
  // nobody else appends now.
  if (fstat(fd, &info) == 0 && info.st_blocks * 512 > info.st_size + 4096) {
    (void)!ftruncate(fd, info.st_size);
  }
  return journal;
}

absl::StatusOr<std::unique_ptr<JsonlJournal>> JsonlJournal::Open(const std::string& path,
                                                                 int64_t max_bytes,
                                                                 const LineFilter& each,
                                                                 Lock lock) {
  std::unique_ptr<JsonlJournal> journal(new JsonlJournal(path, /*fd=*/-1));
  if (lock == Lock::kExclusive) {
    ASSIGN_OR_RETURN(journal, OpenLocked(path));
  } else if (!FileExists(path)) {
    return journal;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(path, max_bytes));
  std::vector<std::pair<int64_t, int64_t>> dropped;  // [begin, end) of lines in the file
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<Line> line, lines->Next());
    if (!line.has_value()) break;
    if (!line->complete) {  // a kill ended its write
      if (truncate(path.c_str(), line->offset) != 0) return ErrnoStatus(errno, "cut", path);
      break;
    }
    ASSIGN_OR_RETURN(const bool keep, each(*line));
    if (!keep) dropped.emplace_back(line->offset, lines->offset());
  }
  if (dropped.empty()) return journal;
  ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  for (auto it = dropped.rbegin(); it != dropped.rend(); ++it) {
    text.erase(it->first, it->second - it->first);
  }
  RETURN_IF_ERROR(WriteFileAtomic(path, text));
  if (lock == Lock::kExclusive) {
    ASSIGN_OR_RETURN(journal, OpenLocked(path));  // the old lock belongs to the replaced file
  }
  return journal;
}

absl::StatusOr<std::unique_ptr<JsonlJournal>> JsonlJournal::Create(const std::string& path) {
  RETURN_IF_ERROR(CreateDirectories(DirName(path)));
  ASSIGN_OR_RETURN(std::unique_ptr<JsonlJournal> journal, OpenLocked(path));
  if (ftruncate(journal->fd_.get(), 0) != 0) return ErrnoStatus(errno, "empty", path);
  return journal;
}

absl::Status JsonlJournal::AppendLines(absl::Span<const std::string> lines) {
  std::string bytes;
  for (const std::string& line : lines) absl::StrAppend(&bytes, line, "\n");
  return AppendToFile(path_, bytes);
}

std::string MetricsLine(int64_t step, const MetricFields& fields) {
  nlohmann::ordered_json object;
  object["step"] = step;
  for (const auto& [name, value] : fields) object[name] = ToJson(value);
  // dump() would throw on invalid UTF-8; `replace` writes U+FFFD instead.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

bool IsBeforeStep(const std::string& line, int64_t next_step) {
  const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  return object.is_object() && object.contains("step") && object["step"].is_number_integer() &&
         object["step"].get<int64_t>() < next_step;
}

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(const std::string& path,
                                                             int64_t next_step) {
  ASSIGN_OR_RETURN(std::unique_ptr<JsonlJournal> journal,
                   JsonlJournal::Open(
                       path, JsonlJournal::kMaxLineBytes,
                       [next_step](const Line& line) { return IsBeforeStep(line.text, next_step); },
                       JsonlJournal::Lock::kNone));
  RETURN_IF_ERROR(journal->AppendLines({}));  // reports a folder without write permission now
  return std::unique_ptr<MetricsLog>(new MetricsLog(std::move(journal)));
}

}  // namespace tritonrl
