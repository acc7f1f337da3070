#include "base/records/parquet_source.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace tritonrl {
namespace {

// Reading a row group of a slow file system may take minutes, but not longer.
constexpr absl::Duration kDeadline = absl::Minutes(10);

class ParquetSource : public ByteSource {
 public:
  ParquetSource(std::string path, int64_t file_bytes, Subprocess process)
      : path_(std::move(path)), file_bytes_(file_bytes), process_(std::move(process)) {}

  // Reads the first line that the process writes: the number of rows and the names of the columns.
  absl::Status Begin(std::vector<std::string>* columns) {
    std::string line;
    char c = 0;
    while (true) {
      ASSIGN_OR_RETURN(const size_t n, Pipe(&c, 1));
      if (n == 0 || c == '\n') break;
      line.push_back(c);
    }
    const auto head = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!head.is_object()) return End();
    rows_ = head.value("rows", int64_t{0});
    *columns = head.value("columns", std::vector<std::string>());
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    ASSIGN_OR_RETURN(const size_t n, Pipe(to, size));
    if (n == 0) RETURN_IF_ERROR(End());
    rows_read_ += std::count(to, to + n, '\n');
    return n;
  }

  int64_t consumed() const override {
    return rows_ > 0
               ? static_cast<int64_t>(static_cast<double>(file_bytes_) *
                                      static_cast<double>(rows_read_) / static_cast<double>(rows_))
               : file_bytes_;
  }

 private:
  absl::StatusOr<size_t> Pipe(char* to, size_t size) {
    while (true) {
      pollfd waiting = {process_.stdout_fd(), POLLIN, 0};
      const int ready = poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(kDeadline)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        return absl::DeadlineExceededError(
            absl::StrCat(path_, ": reading the Parquet file made no progress in 10 minutes"));
      }
      const ssize_t n = read(process_.stdout_fd(), to, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, "read rows of", path_);
      return static_cast<size_t>(n);
    }
  }

  // Checks that the process, which closed its output, read the whole file.
  absl::Status End() {
    if (ended_) return absl::OkStatus();
    ended_ = true;
    std::string reason;
    char buffer[4096];
    ssize_t n;
    while (reason.size() < sizeof(buffer) &&
           (n = read(process_.stderr_fd(), buffer, sizeof(buffer))) > 0) {
      reason.append(buffer, n);
    }
    const std::optional<ExitStatus> status = process_.Wait(absl::Seconds(30));
    if (status.has_value() && status->ok()) return absl::OkStatus();
    reason = std::string(absl::StripAsciiWhitespace(reason));
    const size_t last_line = reason.rfind('\n');
    if (last_line != std::string::npos) reason = reason.substr(last_line + 1);
    if (reason.empty()) reason = status.has_value() ? status->ToString() : "it does not end";
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path_, ": ", reason));
  }

  const std::string path_;
  const int64_t file_bytes_;
  Subprocess process_;
  int64_t rows_ = 0;
  int64_t rows_read_ = 0;
  bool ended_ = false;
};

}  // namespace

absl::Status OpenParquetSource(const std::string& path, const std::vector<std::string>& columns,
                               OpenedSource* opened) {
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  ASSIGN_OR_RETURN(const std::string script, Runfile("base/records/read_parquet.py"));
  SubprocessOptions options;
  options.argv = {python.interpreter, script, path};
  options.argv.insert(options.argv.end(), columns.begin(), columns.end());
  options.env = python.Environment();
  options.out = options.err = Stdio::Pipe();
  options.parent_death_signal = SIGKILL;
  ASSIGN_OR_RETURN(Subprocess process, Subprocess::Start(options));
  auto source = std::make_unique<ParquetSource>(path, opened->file_bytes, std::move(process));
  RETURN_IF_ERROR(source->Begin(&opened->columns));
  opened->bytes = std::move(source);
  return absl::OkStatus();
}

}  // namespace tritonrl
