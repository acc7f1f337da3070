#include "exec/workers/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/socket_stream.h"
#include "base/status.h"

namespace tritonrl {

namespace {
constexpr size_t kHeader = 4;
}

absl::StatusOr<std::string> EncodeFrame(absl::string_view payload, size_t max_bytes) {
  if (payload.size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job of ", payload.size(), " bytes is above the limit of ", max_bytes));
  }
  std::string frame(kHeader, '\0');
  for (size_t i = 0; i < kHeader; ++i) frame[i] = static_cast<char>(payload.size() >> (24 - 8 * i));
  frame.append(payload.data(), payload.size());
  return frame;
}

absl::StatusOr<std::optional<std::string>> FrameReader::Next() {
  if (buffer_.size() < kHeader) return std::optional<std::string>();
  size_t length = 0;
  for (size_t i = 0; i < kHeader; ++i) length = length << 8 | static_cast<uint8_t>(buffer_[i]);
  if (length > max_bytes_) {
    return absl::DataLossError(absl::StrCat("the worker announced a frame of ", length, " bytes"));
  }
  if (buffer_.size() < kHeader + length) return std::optional<std::string>();
  std::optional<std::string> frame = buffer_.substr(kHeader, length);
  buffer_.erase(0, kHeader + length);
  return frame;
}

namespace {

using Json = nlohmann::json;

constexpr absl::Duration kLookAgain = absl::Milliseconds(20);  // between checks of a moving limit
constexpr size_t kMaxJobFrame = 16 << 20;
constexpr size_t kMaxReportFrame = 16 << 20;  // 1 MiB of result, escaped at worst sixfold
constexpr size_t kStderrKept = 4096;
constexpr int kWorkerSocket = 3;

int PollMilliseconds(absl::Time deadline) {
  const absl::Duration left = deadline - absl::Now();
  if (left <= absl::ZeroDuration()) return 0;
  if (left > absl::Seconds(10)) return 10000;
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

Json LimitsJson(const ExecLimits& limits, const WorkerConfig& config) {
  return Json{{"cpu_seconds", limits.cpu_seconds()},
              {"memory_bytes", limits.memory_bytes()},
              {"processes", limits.processes()},
              {"output_bytes", limits.output_bytes()},
              {"file_bytes", limits.file_bytes()},
              {"tmp_bytes", limits.tmp_bytes()},
              {"shm_bytes", limits.shm_bytes()},
              {"open_files", limits.open_files()},
              {"limit_data", config.limit_data},
              {"limit_nproc", config.sandbox.kind == SandboxKind::kBubblewrap}};
}

// Inserts job_json as text. Parsing it again would cost time and find few errors.
std::string JobFrame(int64_t id, absl::string_view job_json, const Json& limits,
                     const std::vector<JobFd>& fds) {
  Json names = Json::array();
  for (const JobFd& fd : fds) names.push_back(fd.name);
  return absl::StrCat("{\"id\":", id, ",\"limits\":", limits.dump(), ",\"fds\":", names.dump(),
                      ",\"job\":", job_json, "}");
}

JobEnd EndFromName(const std::string& name) {
  if (name == "output_limit") return JobEnd::kOutputLimit;
  if (name == "channel_limit") return JobEnd::kChannelLimit;
  if (name == "process_limit") return JobEnd::kProcessLimit;
  return JobEnd::kExit;  // also for "killed": the caller, which ordered the kill, sets that end
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(const WorkerConfig& config,
                                                      const std::string& name) {
  const absl::Time start = absl::Now();
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return ErrnoStatus(errno, "make", "a socket pair for a worker");
  }
  WorkerCgroup cgroup = WorkerCgroup::Create(name, config.cgroup);
  SandboxSpec sandbox = config.sandbox;
  sandbox.cgroup_procs = cgroup.procs_files();
  std::vector<std::string> command = config.command;
  command.push_back(absl::StrCat(kWorkerSocket));
  command.push_back(sandbox.kind == SandboxKind::kBubblewrap ? "namespaces" : "none");
  command.push_back(config.runner);

  SubprocessOptions options;
  options.argv = SandboxCommand(sandbox, command);
  options.clear_env = true;
  options.env = {{"PATH", "/usr/bin:/bin:/usr/local/bin"}};
  options.cwd = std::string("/");
  options.out = Stdio::Null();
  options.err = Stdio::Pipe();
  options.pass_fds = {{sockets[1], kWorkerSocket}};
  options.parent_death_signal = SIGKILL;
  absl::StatusOr<Subprocess> process = Subprocess::Start(options);
  close(sockets[1]);
  if (!process.ok()) {
    close(sockets[0]);
    return AddContext(process.status(), "cannot start a worker");
  }
  fcntl(sockets[0], F_SETFL, O_NONBLOCK);
  fcntl(process->stderr_fd(), F_SETFL, O_NONBLOCK);
  std::unique_ptr<Worker> worker(
      new Worker(config, *std::move(process), std::move(cgroup), sockets[0]));
  std::string frame;
  switch (worker->WaitFrame(start + config.start_timeout, &frame)) {
    case WaitResult::kFrame:
      worker->start_seconds_ = absl::ToDoubleSeconds(absl::Now() - start);
      return worker;
    case WaitResult::kStopped:
      return absl::CancelledError("the pool was stopped while a worker started");
    case WaitResult::kDeadline:
      return absl::UnavailableError(absl::StrCat("a worker was not ready after ",
                                                 absl::FormatDuration(config.start_timeout), ": ",
                                                 worker->stderr_tail_));
    case WaitResult::kDied:
    case WaitResult::kCancelled:
      break;
  }
  return absl::UnavailableError(
      absl::StrCat("a worker ended while it started: ", worker->stderr_tail_));
}

Worker::Worker(const WorkerConfig& config, Subprocess process, WorkerCgroup cgroup, int socket)
    : config_(config),
      process_(std::move(process)),
      cgroup_(std::move(cgroup)),
      socket_(socket),
      reader_(kMaxReportFrame) {}

Worker::~Worker() {
  Kill();
  close(socket_);
}

void Worker::Kill() {
  if (!alive_) return;
  alive_ = false;
  process_.Kill();  // bubblewrap's death kills the sandbox's init, whose death kills all others
  cgroup_.KillAll();
}

bool Worker::ReadStderr() {
  char buffer[4096];
  const ssize_t n = read(process_.stderr_fd(), buffer, sizeof(buffer));
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  stderr_tail_.append(buffer, n);
  if (stderr_tail_.size() > kStderrKept) {
    stderr_tail_.erase(0, stderr_tail_.size() - kStderrKept);
  }
  return n > 0;
}

bool Worker::ReadSocket() {
  char buffer[1 << 16];
  const ssize_t n = read(socket_, buffer, sizeof(buffer));
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  reader_.Add(absl::string_view(buffer, n));
  return n > 0;
}

Worker::WaitResult Worker::WaitFrame(absl::Time deadline, std::string* frame, int cancel_fd) {
  while (true) {
    auto next = reader_.Next();
    if (!next.ok()) return WaitResult::kDied;
    if (next->has_value()) {
      *frame = **std::move(next);
      return WaitResult::kFrame;
    }
    if (absl::Now() >= deadline) return WaitResult::kDeadline;
    pollfd polls[4] = {{socket_, POLLIN, 0},
                       {config_.stop_fd, POLLIN, 0},
                       {stderr_open_ ? process_.stderr_fd() : -1, POLLIN, 0},
                       {cancel_fd, POLLIN, 0}};
    poll(polls, 4, PollMilliseconds(deadline));
    if (polls[1].revents != 0) return WaitResult::kStopped;
    if (polls[3].revents != 0) return WaitResult::kCancelled;
    if (polls[2].revents != 0) stderr_open_ = ReadStderr();
    if (polls[0].revents != 0 && !ReadSocket()) {
      while (stderr_open_ && ReadStderr() && poll(&polls[2], 1, 100) > 0) {
      }
      return WaitResult::kDied;
    }
  }
}

absl::Status Worker::Send(absl::string_view payload, absl::Time deadline,
                          const std::vector<JobFd>& fds) {
  ASSIGN_OR_RETURN(const std::string bytes, EncodeFrame(payload, kMaxJobFrame));
  std::vector<int> descriptors;
  for (const JobFd& fd : fds) descriptors.push_back(fd.fd);
  return SocketStream(socket_, "the worker").Write(bytes, deadline, descriptors);
}

Worker::WaitResult Worker::WaitReport(absl::Time begun, const ExecLimits& limits,
                                      absl::Time deadline, const JobEnds& ends, std::string* frame,
                                      absl::Time* limit) {
  const auto limit_now = [&] {
    if (ends.serves) return absl::InfiniteFuture();
    const absl::Duration waited = ends.waited != nullptr ? ends.waited->Total() : absl::Duration();
    return begun + absl::Seconds(limits.wall_seconds()) + waited;
  };
  absl::Time least = absl::InfinitePast();
  while (true) {
    *limit = limit_now();
    const WaitResult wait =
        WaitFrame(std::min(std::max(*limit, least), deadline), frame, ends.cancel_fd);
    if (wait != WaitResult::kDeadline || absl::Now() >= deadline) return wait;
    if (absl::Now() >= limit_now()) return wait;
    least = absl::Now() + kLookAgain;
  }
}

JobReport Worker::Run(absl::string_view job_json, const ExecLimits& limits, absl::Time deadline,
                      const std::vector<JobFd>& fds, const JobEnds& ends) {
  JobReport report;
  const int64_t id = next_id_++;
  const int64_t oom_before = cgroup_.OomKills();
  const int64_t forks_before = cgroup_.RefusedForks();
  const absl::Time start = absl::Now();
  const std::string request = JobFrame(id, job_json, LimitsJson(limits, config_), fds);
  const absl::Time begin_limit = std::min(start + 2 * config_.kill_grace, deadline);
  if (absl::Status sent = Send(request, begin_limit, fds); !sent.ok()) {
    if (absl::IsDeadlineExceeded(sent) && absl::Now() >= deadline) report.end = JobEnd::kDeadline;
    report.detail = std::string(sent.message());
    // InvalidArgument: the job is too large, and no byte of it was sent.
    if (!absl::IsInvalidArgument(sent)) Kill();
    return report;
  }
  // The worker's first frame confirms that it has taken the job. Until then another worker can run
  // the job.
  std::string frame;
  const WaitResult begun = WaitFrame(begin_limit, &frame);
  if (begun != WaitResult::kFrame) {
    report.end = begun == WaitResult::kStopped ? JobEnd::kStopped
                 : absl::Now() >= deadline     ? JobEnd::kDeadline
                                               : JobEnd::kNotStarted;
    report.detail = absl::StrCat("the worker did not take the job: ", stderr_tail_);
    Kill();
    return report;
  }
  absl::Time limit;
  WaitResult wait = WaitReport(absl::Now(), limits, deadline, ends, &frame, &limit);
  const bool cancelled = wait == WaitResult::kCancelled;
  const bool overtime = cancelled || wait == WaitResult::kDeadline;
  if (overtime) {
    const absl::Time grace = absl::Now() + config_.kill_grace;
    wait = Send(absl::StrCat("{\"id\":", id, ",\"kill\":true}"), grace).ok()
               ? WaitFrame(grace, &frame)
               : WaitResult::kDied;
  }
  report.wall_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  report.out_of_memory = cgroup_.OomKills() > oom_before;
  report.refused_forks = cgroup_.RefusedForks() > forks_before;
  if (wait == WaitResult::kFrame) report = Collect(frame, std::move(report));
  switch (wait) {
    case WaitResult::kFrame:
      // Even if the worker sent this report before it read the kill order, the report is late.
      if (overtime) {
        report.end = !cancelled && limit <= deadline ? JobEnd::kTimeout : JobEnd::kDeadline;
      }
      return report;
    case WaitResult::kStopped:
      report.end = JobEnd::kStopped;
      break;
    case WaitResult::kDied:
    case WaitResult::kCancelled:
    case WaitResult::kDeadline:
      report.end = JobEnd::kWorkerDied;
      report.detail =
          absl::StrCat(wait == WaitResult::kDied ? "the worker ended while the job ran: "
                                                 : "the worker did not end the job when told to: ",
                       stderr_tail_);
  }
  Kill();
  return report;
}

JobReport Worker::Collect(absl::string_view frame, JobReport report) {
  const Json fields = Json::parse(frame.begin(), frame.end(), nullptr, /*allow_exceptions=*/false);
  try {
    report.end = EndFromName(fields.at("end").get<std::string>());
    report.exit_code = fields.at("exit_code").get<int>();
    report.signal = fields.at("signal").get<int>();
    report.channel = fields.at("channel").get<std::string>();
    report.output = fields.at("output").get<std::string>();
    report.output_bytes = fields.at("output_bytes").get<int64_t>();
    report.cpu_seconds = fields.at("cpu_seconds").get<double>();
    report.peak_rss_bytes = fields.at("peak_rss_bytes").get<int64_t>();
    if (fields.at("refused_forks").get<bool>()) report.refused_forks = true;
  } catch (const Json::exception& error) {
    report.end = JobEnd::kWorkerDied;
    report.detail = absl::StrCat("the worker sent a report that makes no sense: ", error.what());
    Kill();
  }
  return report;
}

}  // namespace tritonrl
