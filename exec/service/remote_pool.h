// The servers that a client knows, with their state and the load that this client puts on them.
#ifndef TRITONRL_EXEC_SERVICE_REMOTE_POOL_H_
#define TRITONRL_EXEC_SERVICE_REMOTE_POOL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exec/service/server_registry.h"
#include "exec/service/service.grpc.pb.h"
#include "exec/service/service.pb.h"

namespace tritonrl {

// One server. The pool's mutex guards all fields but the first three, which are constant.
struct RemoteEndpoint {
  std::string address;
  std::string token;
  std::unique_ptr<ExecService::Stub> stub;

  enum class State { kUnknown, kUp, kDown, kRefused };
  State state = State::kUnknown;
  absl::Status error;  // why it is down or refused
  ServerDescription description;
  int in_flight = 0;                             // this client's calls
  absl::Time busy_until = absl::InfinitePast();  // end of the pause after a full queue
  bool probing = false;                          // a probe is in flight
  absl::Time next_probe = absl::InfinitePast();
  absl::Duration pause = absl::ZeroDuration();  // between probes; doubles up to 5 s
  bool listed = true;                           // false: no longer in the registry
};

// Thread-safe.
class RemotePool {
 public:
  // Reads `registry_dir` ("": none) again every second, so that servers can come and go.
  RemotePool(const std::vector<ServerEntry>& servers, std::string registry_dir);
  ~RemotePool();
  RemotePool(const RemotePool&) = delete;
  RemotePool& operator=(const RemotePool&) = delete;

  // Waits until every known server has been asked once and at least one is up or has refused, or
  // the deadline passes. InvalidArgument: servers have different backends. Otherwise OK if one is
  // up, else Unauthenticated (a server rejects the token), NotFound (no server is registered) or
  // Unavailable (no server answers).
  absl::Status WaitReady(absl::Time deadline);

  // Waits for a server that takes the job and counts a call in flight to it. Chooses the server
  // with the fewest calls in flight relative to its concurrency, round robin among equals.
  // `timing`: the server must have the role TIME, else CHECK; the role BOTH suits either. Null if
  // the deadline passes first.
  std::shared_ptr<RemoteEndpoint> Pick(bool timing, absl::Time deadline);

  // Each ends one call in flight. Done: the server answered. DoneBusy: the server refused the call,
  // because its queue is full. DoneLost: the server is lost or draining.
  void Done(RemoteEndpoint* endpoint);
  void DoneBusy(RemoteEndpoint* endpoint, absl::Duration retry_after);
  void DoneLost(RemoteEndpoint* endpoint, const absl::Status& error);

  // True if servers of both roles CHECK and TIME are known. A candidate is then checked first.
  bool Split() const;

  // Number of jobs that run at the same time, summed over the servers that are up now; at least 1.
  int concurrency() const;
  // The description of the server that last came up.
  ServerDescription description() const;
  // "2 of 3 servers", and why the other servers do not answer.
  std::string Summary() const;

 private:
  using Endpoint = std::shared_ptr<RemoteEndpoint>;
  struct Probe;

  void Maintain();
  void ReadRegisterAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(const ServerEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts the probes that are due; false if the pool is being destroyed.
  bool StartProbes(grpc::CompletionQueue* answers) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartProbe(const Endpoint& endpoint, grpc::CompletionQueue* answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndProbe(std::unique_ptr<Probe> probe) ABSL_LOCKS_EXCLUDED(mutex_);
  void Apply(const ServerDescription& description, RemoteEndpoint* endpoint)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Endpoint Best(bool timing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool Takes(const RemoteEndpoint& endpoint, bool timing);

  const std::string registry_dir_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Endpoint> endpoints_ ABSL_GUARDED_BY(mutex_);  // by address
  ServerDescription seen_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);
  uint64_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread maintenance_;
};

// Returns a stub for a server. The connection is made at the first call.
std::unique_ptr<ExecService::Stub> ConnectTo(const std::string& address);

// Sets the metadata and the deadline of a call to a server.
void PrepareCall(const RemoteEndpoint& endpoint, absl::Time deadline, grpc::ClientContext* context);

absl::Status FromGrpc(const grpc::Status& status);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_REMOTE_POOL_H_
