#include "model/chat/template_process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

// The first start after boot reads Python's files from the disk.
constexpr absl::Duration kStartLimit = absl::Seconds(60);
// Longest text, the limit of render_template.py, and longest line before it, which may quote a text
// of the template in escapes.
constexpr size_t kMaxText = size_t{64} << 20;
constexpr size_t kMaxHead = size_t{512} << 20;
constexpr size_t kMaxSentence = 500;

// The helper's command line and environment. With the wheels of the build it reads nothing from the
// user's environment but the time zone. An interpreter that brings the packages itself may need the
// environment to find them.
absl::StatusOr<SubprocessOptions> HelperOptions() {
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  ASSIGN_OR_RETURN(const std::string program, Runfile("model/chat/render_template.py"));
  SubprocessOptions options;
  options.argv = {python.interpreter, "-B", program};
  if (!python.site_packages.empty()) {
    options.argv = {python.interpreter, "-I", "-S", "-B", program, python.site_packages};
    options.clear_env = true;
    options.env = {{"LC_ALL", "C.UTF-8"}};
    if (const char* zone = getenv("TZ"); zone != nullptr) options.env.emplace_back("TZ", zone);
  }
  options.cwd = std::string("/");
  options.err = Stdio::Null();
  return options;
}

// Waits for `events` on a socket; false if `end` passes first.
bool WaitFor(int fd, short events, absl::Time end) {
  while (true) {
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    if (left <= 0) return false;
    pollfd entry = {fd, events, 0};
    if (poll(&entry, 1, static_cast<int>(std::min<int64_t>(left + 1, 1000))) > 0) return true;
  }
}

}  // namespace

absl::Status TemplateProcess::Answer::Error() const {
  const auto error = head.find("error");
  if (error == head.end()) return absl::OkStatus();
  const std::string sentence = error->is_string() ? error->get<std::string>() : error->dump();
  return absl::InvalidArgumentError(absl::ClippedSubstr(sentence, 0, kMaxSentence));
}

bool TemplateProcess::Answer::Flag(const char* name) const {
  const auto flag = head.find(name);
  return flag != head.end() && *flag == true;
}

absl::StatusOr<TemplateProcess> TemplateProcess::Start() {
  ASSIGN_OR_RETURN(SubprocessOptions options, HelperOptions());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "make", "a pair of sockets");
  }
  auto ours = std::make_unique<ScopedFd>(ends[0]);
  const ScopedFd theirs(ends[1]);
  options.in = Stdio::Descriptor(theirs.get());
  options.out = Stdio::Descriptor(theirs.get());
  absl::StatusOr<Subprocess> process = Subprocess::Start(options);
  if (!process.ok()) return AddContext(process.status(), "the helper that renders chat templates");
  TemplateProcess started(*std::move(process), std::move(ours));
  const absl::StatusOr<Answer> ready = started.Exchange("", kStartLimit);
  const absl::Status problem = ready.ok() ? ready->Error() : ready.status();
  if (problem.ok()) return started;
  return absl::UnavailableError(
      absl::StrCat("the helper that renders chat templates does not start (",
                   absl::StrJoin(options.argv, " "), "): ", problem.message()));
}

absl::StatusOr<TemplateProcess::Answer> TemplateProcess::Exchange(absl::string_view request,
                                                                  absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  absl::Status status = Send(request, end);
  if (status.ok()) {
    absl::StatusOr<Answer> answer = ReadAnswer(end);
    if (answer.ok()) return answer;
    status = answer.status();
  }
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(
      absl::StrFormat("takes longer than %g s, the limit", absl::ToDoubleSeconds(limit)));
}

absl::Status TemplateProcess::Ended() {
  const std::optional<ExitStatus> status = process_.Wait(absl::Seconds(1));
  return absl::AbortedError(
      absl::StrCat("its process ended with ", status ? status->ToString() : "a closed connection"));
}

absl::Status TemplateProcess::Send(absl::string_view bytes, absl::Time end) {
  while (!bytes.empty()) {
    const ssize_t sent =
        send(socket_->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(sent);
    } else if (errno == EAGAIN) {
      if (!WaitFor(socket_->get(), POLLOUT, end)) return absl::DeadlineExceededError("");
    } else if (errno != EINTR) {
      return Ended();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> TemplateProcess::Receive(char* bytes, size_t room, absl::Time end) {
  while (true) {
    const ssize_t got = recv(socket_->get(), bytes, room, MSG_DONTWAIT);
    if (got > 0) return got;
    if (got < 0 && errno == EAGAIN) {
      if (!WaitFor(socket_->get(), POLLIN, end)) return absl::DeadlineExceededError("");
    } else if (got == 0 || errno != EINTR) {
      return Ended();
    }
  }
}

absl::StatusOr<TemplateProcess::Answer> TemplateProcess::ReadAnswer(absl::Time end) {
  size_t searched = 0, newline = 0;
  while ((newline = unread_.find('\n', searched)) == std::string::npos) {
    searched = unread_.size();
    if (searched > kMaxHead) return absl::AbortedError("its process answered with too much");
    char buffer[1 << 16];
    ASSIGN_OR_RETURN(const size_t got, Receive(buffer, sizeof(buffer), end));
    unread_.append(buffer, got);
  }
  Answer answer;
  answer.head = Json::parse(unread_.begin(), unread_.begin() + newline, nullptr, false);
  unread_.erase(0, newline + 1);
  if (!answer.head.is_object()) {
    return absl::AbortedError("its process answered with something that is no JSON object");
  }
  const auto size = answer.head.find("text");
  if (size == answer.head.end()) return answer;
  if (!size->is_number_unsigned() || size->get<size_t>() > kMaxText) {
    return absl::AbortedError("its process answered with too much");
  }
  answer.text = unread_.substr(0, size->get<size_t>());
  size_t have = answer.text.size();
  unread_.erase(0, have);
  answer.text.resize(size->get<size_t>());
  while (have < answer.text.size()) {
    ASSIGN_OR_RETURN(const size_t got, Receive(&answer.text[have], answer.text.size() - have, end));
    have += got;
  }
  return answer;
}

}  // namespace tritonrl
