#include "exec/service/remote_pool.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/service/wire.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kProbeLimit = absl::Seconds(3);
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kMaxPause = absl::Seconds(5);
constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kReadRegister = absl::Seconds(1);

}  // namespace

// A Describe call in flight.
struct RemotePool::Probe {
  Endpoint endpoint;
  grpc::ClientContext context;
  ServerDescription description;
  grpc::Status answer;
  std::unique_ptr<grpc::ClientAsyncResponseReader<ServerDescription>> reader;
};

// Keepalive pings detect within seconds that a server's machine has vanished without closing the
// connection.
std::unique_ptr<ExecService::Stub> ConnectTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // RemoteBackend retries at other servers
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  arguments.SetMaxSendMessageSize(kMaxRequestBytes);
  return ExecService::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

void PrepareCall(const RemoteEndpoint& endpoint, absl::Time deadline,
                 grpc::ClientContext* context) {
  context->AddMetadata(kAuthorizationHeader, absl::StrCat(kTokenPrefix, endpoint.token));
  context->set_deadline(absl::ToChronoTime(deadline));
}

RemotePool::RemotePool(const std::vector<ServerEntry>& servers, std::string registry_dir)
    : registry_dir_(std::move(registry_dir)) {
  {
    absl::MutexLock lock(&mutex_);
    for (const ServerEntry& entry : servers) Add(entry);
  }
  ReadRegisterAgain();
  maintenance_ = std::thread([this] { Maintain(); });
}

RemotePool::~RemotePool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  maintenance_.join();
}

void RemotePool::Add(const ServerEntry& entry) {
  Endpoint& known = endpoints_[entry.address];
  if (known != nullptr && known->token == entry.token) {
    known->listed = true;
    return;
  }
  // A new server, or a new token at a known address. Calls in flight keep the old object alive.
  known = std::make_shared<RemoteEndpoint>();
  known->address = entry.address;
  known->token = entry.token;
  known->stub = ConnectTo(entry.address);
}

void RemotePool::ReadRegisterAgain() {
  if (registry_dir_.empty()) return;
  std::vector<std::string> problems;
  // Without the lock, as a network file system can take long.
  const auto entries = ReadServerRegistry(registry_dir_, &problems);
  absl::MutexLock lock(&mutex_);
  problems_ = std::move(problems);
  if (!entries.ok()) {
    problems_.push_back(Message(entries.status()));
    return;
  }
  std::set<std::string> listed;
  for (const ServerEntry& entry : *entries) {
    listed.insert(entry.address);
    Add(entry);
  }
  // Drops servers whose entry is gone: a server removes its file when it ends in order, while a
  // killed server leaves it.
  for (auto it = endpoints_.begin(); it != endpoints_.end();) {
    it->second->listed = listed.count(it->first) > 0;
    const bool drop = !it->second->listed && it->second->in_flight == 0;
    it = drop ? endpoints_.erase(it) : std::next(it);
  }
}

void RemotePool::Apply(const ServerDescription& description, RemoteEndpoint* endpoint) {
  if (!seen_.backend().empty() && description.backend() != seen_.backend()) {
    endpoint->state = RemoteEndpoint::State::kRefused;
    endpoint->error = absl::InvalidArgumentError(
        absl::StrCat("it has the backend ", description.backend(), ", others have ",
                     seen_.backend(), "; their verdicts cannot be mixed"));
    return;
  }
  if (description.draining()) {
    endpoint->state = RemoteEndpoint::State::kDown;
    endpoint->error = absl::UnavailableError("it is being shut down");
    return;
  }
  seen_ = description;
  endpoint->description = description;
  endpoint->state = RemoteEndpoint::State::kUp;
  endpoint->pause = absl::ZeroDuration();
}

void RemotePool::StartProbe(const Endpoint& endpoint, grpc::CompletionQueue* answers) {
  endpoint->probing = true;
  Probe* const probe = new Probe;  // EndProbe destroys it
  probe->endpoint = endpoint;
  PrepareCall(*endpoint, absl::Now() + kProbeLimit, &probe->context);
  probe->reader = endpoint->stub->AsyncDescribe(&probe->context, DescribeRequest(), answers);
  probe->reader->Finish(&probe->description, &probe->answer, probe);
}

void RemotePool::EndProbe(std::unique_ptr<Probe> probe) {
  const Endpoint& endpoint = probe->endpoint;
  absl::MutexLock lock(&mutex_);
  endpoint->probing = false;
  endpoint->pause = std::clamp(endpoint->pause * 2, kFirstPause, kMaxPause);
  endpoint->next_probe = absl::Now() + endpoint->pause;
  if (probe->answer.ok()) {
    Apply(probe->description, endpoint.get());
    return;
  }
  endpoint->error = FromGrpc(probe->answer);
  endpoint->state = absl::IsUnauthenticated(endpoint->error) ? RemoteEndpoint::State::kRefused
                                                             : RemoteEndpoint::State::kDown;
}

// Rereads the registry and probes the servers that are not up, all at the same time, until the pool
// is destroyed.
void RemotePool::Maintain() {
  grpc::CompletionQueue answers;
  absl::Time next_reading = absl::Now() + kReadRegister;
  void* probe = nullptr;
  bool ok = false;
  while (StartProbes(&answers)) {
    const auto tick = absl::ToChronoTime(absl::Now() + kTick);
    while (answers.AsyncNext(&probe, &ok, tick) == grpc::CompletionQueue::GOT_EVENT) {
      EndProbe(absl::WrapUnique(static_cast<Probe*>(probe)));
    }
    if (absl::Now() >= next_reading) {
      ReadRegisterAgain();
      next_reading = absl::Now() + kReadRegister;
    }
  }
  answers.Shutdown();
  while (answers.Next(&probe, &ok)) EndProbe(absl::WrapUnique(static_cast<Probe*>(probe)));
}

bool RemotePool::StartProbes(grpc::CompletionQueue* answers) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return false;
  for (const auto& [address, endpoint] : endpoints_) {
    if (endpoint->state != RemoteEndpoint::State::kUp && !endpoint->probing &&
        absl::Now() >= endpoint->next_probe) {
      StartProbe(endpoint, answers);
    }
  }
  return true;
}

absl::Status RemotePool::WaitReady(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bool decided = false;
    for (const auto& [address, endpoint] : endpoints_) {
      if (endpoint->state == RemoteEndpoint::State::kUnknown) return false;
      decided = decided || endpoint->state != RemoteEndpoint::State::kDown;
    }
    return decided;
  };
  mutex_.AwaitWithDeadline(absl::Condition(&ready), deadline);
  bool up = false;
  absl::Status refused;
  for (const auto& [address, endpoint] : endpoints_) {
    up = up || endpoint->state == RemoteEndpoint::State::kUp;
    if (endpoint->state != RemoteEndpoint::State::kRefused) continue;
    refused = AddContext(endpoint->error, absl::StrCat("server ", address));
    if (absl::IsInvalidArgument(refused)) return refused;
  }
  // A server that rejects the token may be somebody else's, at the address of a killed server, so
  // it is an error only if no server is up.
  if (up) return absl::OkStatus();
  RETURN_IF_ERROR(refused);
  if (endpoints_.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no server is registered in ", registry_dir_, "; start one with --register=", registry_dir_,
        problems_.empty() ? "" : "; ", problems_.empty() ? "" : problems_.front()));
  }
  const auto& [address, endpoint] = *endpoints_.begin();
  return absl::UnavailableError(
      absl::StrCat("no server answers; the first, ", address, ": ", endpoint->error.message()));
}

bool RemotePool::Takes(const RemoteEndpoint& endpoint, bool timing) {
  const ServerRole role = endpoint.description.role();
  return role == SERVER_ROLE_BOTH || role == (timing ? SERVER_ROLE_TIME : SERVER_ROLE_CHECK);
}

RemotePool::Endpoint RemotePool::Best(bool timing) {
  std::vector<Endpoint> best;
  double least = 0;
  for (const auto& [address, endpoint] : endpoints_) {
    if (endpoint->state != RemoteEndpoint::State::kUp || !endpoint->listed ||
        !Takes(*endpoint, timing) || absl::Now() < endpoint->busy_until) {
      continue;
    }
    const double load =
        static_cast<double>(endpoint->in_flight) / std::max(1, endpoint->description.concurrency());
    if (best.empty() || load < least) {
      best = {endpoint};
      least = load;
    } else if (load == least) {
      best.push_back(endpoint);
    }
  }
  return best.empty() ? nullptr : best[turn_++ % best.size()];
}

std::shared_ptr<RemoteEndpoint> RemotePool::Pick(bool timing, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    Endpoint endpoint = Best(timing);
    if (endpoint != nullptr) {
      ++endpoint->in_flight;
      return endpoint;
    }
    if (absl::Now() >= deadline) return nullptr;
    // Polls, as the passage of busy_until signals no condition.
    const absl::Duration left = deadline - absl::Now();
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), std::min(left, absl::Milliseconds(20)));
  }
  return nullptr;
}

void RemotePool::Done(RemoteEndpoint* endpoint) {
  absl::MutexLock lock(&mutex_);
  --endpoint->in_flight;
}

void RemotePool::DoneBusy(RemoteEndpoint* endpoint, absl::Duration retry_after) {
  absl::MutexLock lock(&mutex_);
  --endpoint->in_flight;
  endpoint->busy_until = absl::Now() + retry_after;
}

void RemotePool::DoneLost(RemoteEndpoint* endpoint, const absl::Status& error) {
  absl::MutexLock lock(&mutex_);
  --endpoint->in_flight;
  if (endpoint->state == RemoteEndpoint::State::kUp) {
    endpoint->state = RemoteEndpoint::State::kDown;
    endpoint->next_probe = absl::Now() + kFirstPause;
  }
  endpoint->error = error;
}

bool RemotePool::Split() const {
  absl::MutexLock lock(&mutex_);
  bool check = false, time = false;
  for (const auto& [address, endpoint] : endpoints_) {
    check = check || endpoint->description.role() == SERVER_ROLE_CHECK;
    time = time || endpoint->description.role() == SERVER_ROLE_TIME;
  }
  return check && time;
}

int RemotePool::concurrency() const {
  absl::MutexLock lock(&mutex_);
  int sum = 0;
  for (const auto& [address, endpoint] : endpoints_) {
    if (endpoint->state == RemoteEndpoint::State::kUp) sum += endpoint->description.concurrency();
  }
  return std::max(1, sum);
}

ServerDescription RemotePool::description() const {
  absl::MutexLock lock(&mutex_);
  return seen_;
}

std::string RemotePool::Summary() const {
  absl::MutexLock lock(&mutex_);
  int up = 0;
  std::string rest;
  for (const auto& [address, endpoint] : endpoints_) {
    if (endpoint->state == RemoteEndpoint::State::kUp) {
      ++up;
    } else {
      absl::StrAppend(&rest, "; ", address, ": ", endpoint->error.message());
    }
  }
  for (const std::string& problem : problems_) absl::StrAppend(&rest, "; ", problem);
  return absl::StrCat(up, " of ", endpoints_.size(), " servers", rest);
}

}  // namespace tritonrl
