#include "tools/distill/policy_server.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {

namespace {

// The line that serve prints once it listens: "serve: NAME on cpu, ..., http://127.0.0.1:80/v1".
constexpr char kAddress[] = "http://127.0.0.1:";

}  // namespace

absl::StatusOr<std::unique_ptr<PolicyServer>> PolicyServer::Start(const std::string& folder,
                                                                  const std::string& flags,
                                                                  absl::Duration start_timeout) {
  std::string dir = UserPath(folder);
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  if (!DirectoryExists(dir)) {
    return absl::InvalidArgumentError(absl::StrCat("--policy=", folder, " is no folder"));
  }
  ASSIGN_OR_RETURN(const std::string program, Runfile("rollout/serve/serve"));
  const std::string model = BaseName(dir);
  SubprocessOptions options;
  options.argv = {program, "--model=" + dir, "--port=0", "--served_model_name=" + model};
  for (absl::string_view flag : absl::StrSplit(flags, ' ', absl::SkipEmpty())) {
    options.argv.emplace_back(flag);
  }
  options.out = Stdio::Pipe();
  options.parent_death_signal = SIGTERM;
  ASSIGN_OR_RETURN(Subprocess process, Subprocess::Start(options));
  std::unique_ptr<PolicyServer> server(new PolicyServer(std::move(process), model));
  RETURN_IF_ERROR(server->AwaitAddress(absl::Now() + start_timeout));
  return server;
}

absl::Status PolicyServer::AwaitAddress(absl::Time deadline) {
  std::string text;
  while (true) {
    const size_t begin = text.find(kAddress);
    const size_t end = begin == std::string::npos ? begin : text.find("/v1", begin);
    if (end != std::string::npos) {
      url_ = text.substr(begin, end - begin) + "/v1";
      return absl::OkStatus();
    }
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("the server of --policy is not ready in time");
    }
    pollfd fd = {.fd = process_.stdout_fd(), .events = POLLIN, .revents = 0};
    const int64_t wait = std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, 1000);
    if (poll(&fd, 1, static_cast<int>(wait)) <= 0) continue;
    char buffer[512];
    const ssize_t n = read(process_.stdout_fd(), buffer, sizeof(buffer));
    if (n <= 0) {
      return absl::FailedPreconditionError(
          "the server of --policy ended before it was ready; see its message above");
    }
    text.append(buffer, n);
  }
}

}  // namespace tritonrl
