#include "exec/client_run/client_job.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr char kRunner[] = "client.job";

// Whether the source names what leads to torch's compiler, which takes a second to import.
bool NamesCompiler(absl::string_view source) {
  for (const char* word : {"_dynamo", "_inductor", "_library", "torch.library", "custom_op",
                           "triton_op", "_higher_order_ops", "checkpoint"}) {
    if (absl::StrContains(source, word)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<WorkerPoolOptions> ClientPoolOptions(WorkerPoolOptions options) {
  ASSIGN_OR_RETURN(const std::string job, Runfile("exec/client/job.py"));
  options.device = "cpu";
  options.runner = kRunner;
  options.python_packages = {DirName(job)};
  return options;
}

absl::StatusOr<std::unique_ptr<ClientJob>> ClientJob::Start(WorkerPool* pool,
                                                            const std::string& name,
                                                            absl::string_view source,
                                                            const ExecLimits& limits,
                                                            absl::Time deadline) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "make", "a socket for a candidate's process");
  }
  std::unique_ptr<ClientJob> job(new ClientJob(ends[0], ends[1]));
  const std::string text =
      nlohmann::json{{"role", "runner"}, {"task_id", name}, {"compiler", NamesCompiler(source)}}
          .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  ASSIGN_OR_RETURN(job->job_,
                   JobDialogue::Start(pool, text, limits, deadline, {{"executor", job->theirs_}}));
  // A process that has ended says nothing more, though the pool still holds its end of the socket.
  job->watcher_ = std::thread([d = job.get()] {
    while (d->job_->Next().has_value()) {
    }
    d->ended_.Notify();
    shutdown(d->ours_, SHUT_RDWR);
  });
  return job;
}

JobReport ClientJob::Finish() {
  shutdown(ours_, SHUT_RDWR);
  if (watcher_.joinable()) watcher_.join();
  return job_->Finish();
}

ClientJob::~ClientJob() {
  if (job_ != nullptr) {
    job_->Cancel();
    Finish();
    job_.reset();
  }
  close(ours_);
  close(theirs_);
}

}  // namespace tritonrl
