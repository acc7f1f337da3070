// A device backend that runs candidates on one or several servers (exec/service/service.proto),
// found by address or through the folder in which they register.
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
  std::string registry_dir;                            // folder of the registry; "": none
  absl::Duration connect_timeout = absl::Seconds(30);  // wait for the first server to answer
  int64_t memory_bytes = 0;  // memory estimate sent with each job; 0: the servers' default
  int max_losses = 3;        // a job fails after its server was lost this many times
};

// Parses the value of --servers: a registry folder, or HOST:PORT[,HOST:PORT...] with the token in
// `token_file`. InvalidArgument names the missing or malformed part. Errors of TokenFromFile.
absl::StatusOr<RemoteOptions> ParseServers(const std::string& servers,
                                           const std::string& token_file);

class RemoteBackend;
// ParseServers with the paths of a command line (see UserPath), then Connect. If no server has
// answered after 2 s, passes one sentence to `tell` and waits on.
absl::StatusOr<std::unique_ptr<RemoteBackend>> ConnectToServers(
    const std::string& servers, const std::string& token_file,
    const std::function<void(const std::string&)>& tell = [](const std::string&) {});

class RemoteBackend : public DeviceBackend {
 public:
  // Returns when every server has been asked and at least one has answered. Errors as of
  // RemotePool::WaitReady, with the server's address.
  static absl::StatusOr<std::unique_ptr<RemoteBackend>> Connect(const RemoteOptions& options);

  // Sends a job to another server if its server is lost (killed, unreachable, shut down). After
  // max_losses losses, or if no server takes the job until the deadline, the outcome is
  // WORKER_LOST. Waits if a server's queue is full. With servers of both roles CHECK and TIME, a
  // CHECK server checks the candidate first, and a TIME server times it if it is correct.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override;

  int concurrency() const override { return pool_.concurrency(); }
  std::string name() const override { return pool_.description().backend(); }
  bool modelled() const override { return pool_.description().modelled(); }
  std::string sandbox_description() const override;

  // Number of servers lost with a job so far.
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
