#include "model/chat/template_renderer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

// The first start after boot reads Python's files from the disk.
constexpr absl::Duration kStartLimit = absl::Seconds(60);
// Longest answer: the limit of render_template.py (64 MiB of text), escaped.
constexpr size_t kMaxAnswer = size_t{512} << 20;
constexpr size_t kMaxKeptBytes = 16 << 20;
constexpr size_t kMaxSentence = 500;

std::string Line(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

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

// The error of an answer: the sentence that the helper wrote, which may quote the template.
absl::Status ErrorIn(const Json& answer) {
  const auto error = answer.find("error");
  if (error == answer.end()) return absl::OkStatus();
  const std::string sentence = error->is_string() ? error->get<std::string>() : error->dump();
  return absl::InvalidArgumentError(absl::ClippedSubstr(sentence, 0, kMaxSentence));
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

TemplateRenderer::TemplateRenderer(std::string text, absl::Duration deadline)
    : text_(std::move(text)), deadline_(deadline) {}

TemplateRenderer::~TemplateRenderer() = default;

absl::StatusOr<std::unique_ptr<TemplateRenderer>> TemplateRenderer::Start(std::string text,
                                                                          absl::Duration deadline) {
  std::unique_ptr<TemplateRenderer> renderer(new TemplateRenderer(std::move(text), deadline));
  absl::MutexLock lock(&renderer->mutex_);
  RETURN_IF_ERROR(renderer->StartChild());
  RETURN_IF_ERROR(renderer->CompileInChild());
  return renderer;
}

absl::Status TemplateRenderer::StartChild() const {
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
  child_.emplace(Child{*std::move(process), std::move(ours), ""});
  absl::StatusOr<Json> ready = ReadAnswer(absl::Now() + kStartLimit);
  if (absl::IsDeadlineExceeded(ready.status())) ready = TookTooLong(kStartLimit);
  const std::string problem =
      ready.ok() ? Message(ErrorIn(*ready)) : std::string(ready.status().message());
  if (problem.empty()) return absl::OkStatus();
  child_.reset();
  return absl::UnavailableError(
      absl::StrCat("the helper that renders chat templates does not start (",
                   absl::StrJoin(options.argv, " "), "): ", problem));
}

absl::Status TemplateRenderer::CompileInChild() const {
  const Json request = {{"template", text_}, {"deadline", absl::ToDoubleSeconds(deadline_)}};
  const absl::StatusOr<Json> answer = Exchange(Line(request), deadline_);
  if (!answer.ok()) return absl::InvalidArgumentError(answer.status().message());
  return ErrorIn(*answer);
}

absl::Status TemplateRenderer::ChildEnded() const {
  const std::optional<ExitStatus> status = child_->process.Wait(absl::Seconds(1));
  const std::string how = status ? status->ToString() : "a closed connection";
  child_.reset();
  return absl::AbortedError(absl::StrCat("its process ended with ", how));
}

absl::Status TemplateRenderer::TookTooLong(absl::Duration limit) const {
  child_.reset();  // kills it
  return absl::DeadlineExceededError(
      absl::StrFormat("takes longer than %g s, the limit", absl::ToDoubleSeconds(limit)));
}

absl::Status TemplateRenderer::Send(absl::string_view line, absl::Time end) const {
  const int fd = child_->socket->get();
  while (!line.empty()) {
    const ssize_t sent = send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      line.remove_prefix(sent);
    } else if (errno == EAGAIN) {
      if (!WaitFor(fd, POLLOUT, end)) return absl::DeadlineExceededError("");
    } else if (errno != EINTR) {
      return ChildEnded();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> TemplateRenderer::ReadAnswer(absl::Time end) const {
  const int fd = child_->socket->get();
  std::string& unread = child_->unread;
  size_t searched = 0;
  while (true) {
    const size_t newline = unread.find('\n', searched);
    if (newline != std::string::npos) {
      Json answer = Json::parse(unread.begin(), unread.begin() + newline, nullptr, false);
      unread.erase(0, newline + 1);
      if (answer.is_object()) return answer;
      child_.reset();
      return absl::AbortedError("its process answered with something that is no JSON object");
    }
    searched = unread.size();
    if (unread.size() > kMaxAnswer) {
      child_.reset();
      return absl::AbortedError("its process answered with too much");
    }
    char buffer[1 << 16];
    const ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got > 0) {
      unread.append(buffer, got);
    } else if (got < 0 && errno == EAGAIN) {
      if (!WaitFor(fd, POLLIN, end)) return absl::DeadlineExceededError("");
    } else if (got == 0 || errno != EINTR) {
      return ChildEnded();
    }
  }
}

absl::StatusOr<Json> TemplateRenderer::Exchange(const std::string& line,
                                                absl::Duration limit) const {
  const absl::Time end = absl::Now() + limit;
  absl::Status status = Send(line, end);
  if (status.ok()) {
    absl::StatusOr<Json> answer = ReadAnswer(end);
    if (answer.ok()) return answer;
    status = answer.status();
  }
  return absl::IsDeadlineExceeded(status) ? TookTooLong(limit) : status;
}

void TemplateRenderer::Keep(const std::string& request, const std::string& text) const {
  const size_t bytes = request.size() + text.size();
  if (bytes > kMaxKeptBytes / 4) return;
  if (kept_bytes_ + bytes > kMaxKeptBytes) {
    kept_.clear();
    kept_bytes_ = 0;
  }
  kept_bytes_ += bytes;
  kept_.emplace(request, text);
}

absl::StatusOr<std::string> TemplateRenderer::Render(const Json& messages,
                                                     bool add_generation_prompt,
                                                     const Json& variables) const {
  const std::string line = Line({{"messages", messages},
                                 {"add_generation_prompt", add_generation_prompt},
                                 {"variables", variables},
                                 {"deadline", absl::ToDoubleSeconds(deadline_)}});
  absl::MutexLock lock(&mutex_);
  if (const auto kept = kept_.find(line); kept != kept_.end()) return kept->second;
  absl::StatusOr<Json> answer = absl::AbortedError("");
  // A child may have died since the last rendering (out of memory, an administrator); a template
  // that ends two children is itself the reason.
  for (int attempt = 0; attempt < 2 && absl::IsAborted(answer.status()); ++attempt) {
    if (!child_) {
      RETURN_IF_ERROR(StartChild());
      RETURN_IF_ERROR(CompileInChild());
    }
    answer = Exchange(line, deadline_);
  }
  if (!answer.ok()) return absl::InvalidArgumentError(answer.status().message());
  RETURN_IF_ERROR(ErrorIn(*answer));
  std::string text = answer->value("text", "");
  if (!answer->value("dated", false)) Keep(line, text);
  return text;
}

pid_t TemplateRenderer::pid() const {
  absl::MutexLock lock(&mutex_);
  return child_ ? child_->process.pid() : 0;
}

}  // namespace tritonrl
