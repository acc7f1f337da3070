// A device backend on other machines: one or several servers (exec/service/service.proto), found by
// address or through the folder in which they register.
#ifndef TRITONRL_EXEC_SERVICE_REMOTE_BACKEND_H_
#define TRITONRL_EXEC_SERVICE_REMOTE_BACKEND_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/device_backend.h"
#include "exec/service/remote_pool.h"

namespace tritonrl {

struct RemoteOptions {
  std::vector<ServerEntry> servers;                    // address and token of each
  std::string registry_dir;                            // "": none
  absl::Duration connect_timeout = absl::Seconds(30);  // for the first server to answer
  int64_t memory_bytes = 0;  // estimate for each job, sent along; 0: the servers' own
  int max_losses = 3;        // servers lost under one job before it is given up
};

// From the value of --servers: a folder (a register), or HOST:PORT[,HOST:PORT...] with the token in
// `token_file`. InvalidArgument says what is missing.
absl::StatusOr<RemoteOptions> ParseServers(const std::string& servers,
                                           const std::string& token_file);

class RemoteBackend;
// ParseServers with paths as a person gives them (see UserPath), then Connect. When no server has
// answered after a moment, `tell` gets one sentence, and the wait goes on.
absl::StatusOr<std::unique_ptr<RemoteBackend>> ConnectToServers(
    const std::string& servers, const std::string& token_file,
    const std::function<void(const std::string&)>& tell = [](const std::string&) {});

class RemoteBackend : public DeviceBackend {
 public:
  // Returns when every server was asked and one at least answers. InvalidArgument,
  // Unauthenticated, NotFound or Unavailable, with the address.
  static absl::StatusOr<std::unique_ptr<RemoteBackend>> Connect(const RemoteOptions& options);

  // A job whose server is lost (killed, unreachable, shut down) is sent to another; after
  // max_losses, or with no server until the deadline, the outcome is Outcome::WORKER_LOST: our
  // fault. A full queue is waited for. With servers of the roles CHECK and TIME the candidate is
  // checked at one of the former, and timed at one of the latter if it is correct.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override;

  int concurrency() const override { return pool_.concurrency(); }
  std::string name() const override { return pool_.description().backend(); }
  bool modelled() const override { return pool_.description().modelled(); }
  std::string sandbox_description() const override;

  // Servers lost under a job so far.
  int64_t losses() const { return losses_; }

 private:
  explicit RemoteBackend(const RemoteOptions& options)
      : options_(options), pool_(options.servers, options.registry_dir) {}
  absl::StatusOr<ExecResult> RunAt(bool timing, const RunRequest& request, absl::Time deadline);

  const RemoteOptions options_;
  RemotePool pool_;
  std::atomic<int64_t> losses_{0};
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_REMOTE_BACKEND_H_
