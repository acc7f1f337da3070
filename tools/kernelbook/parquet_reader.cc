#include "tools/kernelbook/parquet_reader.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kSilence = absl::Minutes(2);
constexpr size_t kMaxLine = 64 << 20;

// Lines of a pipe.
class PipeLines {
 public:
  PipeLines(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  // The next line without its line break; nullopt at the end.
  absl::StatusOr<std::optional<std::string>> Next() {
    for (;;) {
      const size_t end = buffer_.find('\n', searched_);
      if (end != std::string::npos) {
        std::string line = buffer_.substr(used_, end - used_);
        used_ = searched_ = end + 1;
        return line;
      }
      searched_ = buffer_.size();
      if (buffer_.size() - used_ > kMaxLine) {
        return absl::InvalidArgumentError(
            absl::StrCat(path_, ": a row has more than ", kMaxLine, " bytes"));
      }
      ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) return std::nullopt;
    }
  }

 private:
  absl::StatusOr<bool> Fill() {
    buffer_.erase(0, used_);
    searched_ -= used_;
    used_ = 0;
    pollfd ready = {fd_, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(kSilence))) == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat(path_, ": the parquet reader gave no row for ",
                       absl::FormatDuration(kSilence), "; is its disk reachable?"));
    }
    char chunk[1 << 16];
    const ssize_t got = read(fd_, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    buffer_.append(chunk, got);
    return true;
  }

  const int fd_;
  const std::string path_;
  std::string buffer_;
  size_t used_ = 0;      // bytes of lines that were returned
  size_t searched_ = 0;  // no line break before it, from used_ on
};

absl::StatusOr<Subprocess> StartReader(const std::string& path,
                                       const std::vector<std::string>& wanted) {
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  ASSIGN_OR_RETURN(const std::string program, Runfile("tools/kernelbook/read_parquet.py"));
  SubprocessOptions options;
  options.argv = {python.interpreter, program, path};
  options.argv.insert(options.argv.end(), wanted.begin(), wanted.end());
  options.env = python.Environment();
  options.out = Stdio::Pipe();
  return Subprocess::Start(options);
}

}  // namespace

absl::Status ReadParquet(
    const std::string& path, const std::vector<std::string>& wanted,
    const std::function<absl::Status(const std::vector<std::string>& names)>& columns,
    const std::function<absl::Status(const std::string& text)>& line) {
  ASSIGN_OR_RETURN(Subprocess reader, StartReader(path, wanted));
  PipeLines lines(reader.stdout_fd(), path);
  bool head = true;
  // The reader's own lines are told from rows by their place and by these beginnings: a row begins
  // with one of the columns.
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<std::string> text, lines.Next());
    if (!text.has_value()) break;
    if (*text == R"({"end": true})") return absl::OkStatus();
    if (text->rfind(R"({"error": )", 0) == 0) {
      const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
      return absl::InvalidArgumentError(
          absl::StrCat(path, " cannot be read as parquet: ", json.value("error", *text)));
    }
    if (!head) {
      RETURN_IF_ERROR(line(*text));
      continue;
    }
    head = false;
    const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("columns")) break;
    RETURN_IF_ERROR(columns(json["columns"].get<std::vector<std::string>>()));
  }
  const std::optional<ExitStatus> status = reader.Wait(absl::Seconds(5));
  return absl::UnavailableError(
      absl::StrCat("the parquet reader ended before the end of ", path, ": ",
                   status.has_value() ? status->ToString() : "it closed its output"));
}

}  // namespace tritonrl
