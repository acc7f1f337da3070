// The servers that a client knows: who they are, whether they answer, how busy we keep them.
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

// One server. Fields below the first three are guarded by the pool.
struct RemoteEndpoint {
  std::string address;
  std::string token;
  std::unique_ptr<ExecService::Stub> stub;

  enum class State { kUnknown, kUp, kDown, kRefused };
  State state = State::kUnknown;
  absl::Status error;  // why it is down or refused
  ServerDescription description;
  int in_flight = 0;                             // our calls
  absl::Time busy_until = absl::InfinitePast();  // it said that its queue is full
  absl::Time next_probe = absl::InfinitePast();
  absl::Duration pause = absl::ZeroDuration();  // between probes, doubled up to some seconds
  bool listed = true;                           // false: no longer in the register
};

class RemotePool {
 public:
  // `registry_dir` ("": none) is read again all the time, so that servers come and go.
  RemotePool(const std::vector<ServerEntry>& servers, std::string registry_dir);
  ~RemotePool();
  RemotePool(const RemotePool&) = delete;
  RemotePool& operator=(const RemotePool&) = delete;

  // Waits until every server known was asked once and one at least is up, or the deadline passes.
  // Unavailable, Unauthenticated or NotFound say what is wrong; InvalidArgument: servers differ in
  // their backend.
  absl::Status WaitReady(absl::Time deadline);

  // A server for the job, the one with the least of our calls for its size, in turn among equals;
  // counts a call in flight. Null when the deadline passes before there is one. With `timing` a
  // server that takes times, else one that checks; servers of the role BOTH do either.
  std::shared_ptr<RemoteEndpoint> Pick(bool timing, absl::Time deadline);

  // The call has ended: well; refused for a full queue; or the server was lost (or drains).
  void Done(RemoteEndpoint* endpoint);
  void DoneBusy(RemoteEndpoint* endpoint, absl::Duration retry_after);
  void DoneLost(RemoteEndpoint* endpoint, const absl::Status& error);

  // True when servers of the role CHECK and such of the role TIME are known: a candidate is then
  // checked first.
  bool Split() const;

  // Jobs at the same time, over the servers that are up now.
  int concurrency() const;
  // Of the servers that were seen so far.
  ServerDescription description() const;
  // "2 of 3 servers", and the reason why the others do not answer.
  std::string Summary() const;

 private:
  using Endpoint = std::shared_ptr<RemoteEndpoint>;

  void Maintain();
  void ReadRegisterAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(const ServerEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Probe(const Endpoint& endpoint);
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

// A line to a server, which is tried when it is used.
std::unique_ptr<ExecService::Stub> ConnectTo(const std::string& address);

// The metadata and deadline that every call to a server carries.
void PrepareCall(const RemoteEndpoint& endpoint, absl::Time deadline, grpc::ClientContext* context);

absl::Status FromGrpc(const grpc::Status& status);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_REMOTE_POOL_H_
