#include "exec/service/exec_server.h"

#include <arpa/inet.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "exec/service/remote_pool.h"
#include "exec/service/server_registry.h"
#include "exec/service/service.grpc.pb.h"
#include "exec/service/wire.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

constexpr int kMinTokenLength = 32;
constexpr int kCallsBeside = 16;             // Describe, health, and calls about to be refused
constexpr size_t kMemory = size_t{1} << 30;  // limit of gRPC's buffers, over all connections
constexpr int kMaxStreams = 1024;            // concurrent calls of one connection
constexpr int kMaxMetadataBytes = 16 << 10;
constexpr int kPingMilliseconds = 5000;  // interval at which clients may send keepalive pings

// gRPC and absl use the same numbers for their codes.
grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

std::string AddressText(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
              sizeof(text));
    return text;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  // A link-local address is useless without the name of its interface.
  if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return "";
  inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
  return absl::StrCat("[", text, "]");
}

}  // namespace

absl::StatusOr<std::string> InterfaceAddress(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return ErrnoStatus(errno, "list", "network interfaces");
  absl::Cleanup free_list = [list] { freeifaddrs(list); };
  std::set<std::string> names;
  std::string v4, v6;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    names.insert(entry->ifa_name);
    if (entry->ifa_addr == nullptr || interface != entry->ifa_name) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET && v4.empty()) v4 = AddressText(entry->ifa_addr);
    if (family == AF_INET6 && v6.empty()) v6 = AddressText(entry->ifa_addr);
  }
  if (!v4.empty()) return v4;
  if (!v6.empty()) return v6;
  return absl::NotFoundError(
      absl::StrCat("network interface \"", interface,
                   "\" is missing or has no address; there are: ", absl::StrJoin(names, ", ")));
}

class ExecServer::Service : public ExecService::Service {
 public:
  Service(const ExecServerOptions& options, Dispatcher* dispatcher)
      : options_(options), dispatcher_(dispatcher) {}

  grpc::Status Describe(grpc::ServerContext* context, const DescribeRequest*,
                        ServerDescription* description) override {
    if (absl::Status known = CheckToken(*context); !known.ok()) return ToGrpc(known);
    *description = dispatcher_->Describe();
    MakeTextValid(description);
    return grpc::Status::OK;
  }

  grpc::Status Run(grpc::ServerContext* context, const RunRequest* request,
                   RunReply* reply) override {
    const absl::Time start = absl::Now();
    const int64_t id = next_call_++;
    const grpc::Status status = RunCall(context, request, reply);
    Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
        absl::StrCat("call ", id, " of ", context->peer(), ": ",
                     status.ok() ? ReasonName(reply->result().outcome().reason())
                                 : absl::CEscape(status.error_message()),
                     " after ", absl::ToInt64Milliseconds(absl::Now() - start), " ms"));
    return status;
  }

 private:
  grpc::Status RunCall(grpc::ServerContext* context, const RunRequest* request, RunReply* reply) {
    absl::Status status = CheckToken(*context);
    if (status.ok()) status = CheckRunRequest(*request);
    if (!status.ok()) return ToGrpc(status);
    const absl::Time deadline =
        std::min(absl::FromChrono(context->deadline()), absl::Now() + options_.max_call);
    absl::StatusOr<ExecResult> result =
        dispatcher_->Run(request->request(), request->memory_bytes(), deadline,
                         [context] { return context->IsCancelled(); });
    if (!result.ok()) {
      if (absl::IsResourceExhausted(result.status())) {
        context->AddTrailingMetadata(kRetryTrailer, absl::StrCat(dispatcher_->RetryHint()));
      }
      return ToGrpc(result.status());
    }
    *reply->mutable_result() = *std::move(result);
    MakeTextValid(reply);
    return grpc::Status::OK;
  }

  absl::Status CheckToken(const grpc::ServerContext& context) const {
    const auto range = context.client_metadata().equal_range(kAuthorizationHeader);
    if (range.first != range.second && std::next(range.first) == range.second) {
      absl::string_view value(range.first->second.data(), range.first->second.size());
      if (absl::ConsumePrefix(&value, kTokenPrefix) && EqualTokens(value, options_.token)) {
        return absl::OkStatus();
      }
    }
    return absl::UnauthenticatedError("the token is missing or is not this server's");
  }

  const ExecServerOptions options_;
  Dispatcher* const dispatcher_;
  std::atomic<int64_t> next_call_{0};  // number of a call in the log
};

struct ExecServer::Parts {
  Dispatcher* dispatcher = nullptr;
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::Server> server;
};

ExecServer::ExecServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<ExecServer>> ExecServer::Start(const ExecServerOptions& options,
                                                              Dispatcher* dispatcher) {
  if (options.token.size() < kMinTokenLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server's token is shorter than ", kMinTokenLength, " characters"));
  }
  ASSIGN_OR_RETURN(const std::string host, InterfaceAddress(options.interface));
  auto parts = std::make_unique<Parts>();
  parts->dispatcher = dispatcher;
  parts->service = std::make_unique<Service>(options, dispatcher);
  const ServerDescription description = dispatcher->Describe();
  grpc::ResourceQuota quota("exec_server");
  quota.Resize(kMemory);
  // A call occupies a thread while it waits, so this also bounds the number of calls.
  quota.SetMaxThreads(description.concurrency() + description.queue() + kCallsBeside);

  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(absl::StrCat(host, ":", options.port), grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(parts->service.get());
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetMaxSendMessageSize(kMaxReplyBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kPingMilliseconds / 2);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // no second server on the same port
  parts->server = builder.BuildAndStart();
  if (parts->server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", host, ":", options.port, "; is the port taken?"));
  }
  std::unique_ptr<ExecServer> server(new ExecServer(std::move(parts)));
  server->address_ = absl::StrCat(host, ":", port);
  return server;
}

bool ExecServer::Drain(absl::Duration wait) {
  grpc::HealthCheckServiceInterface* health = parts_->server->GetHealthCheckService();
  if (health != nullptr) health->SetServingStatus(false);
  parts_->dispatcher->Drain();
  const absl::Time deadline = absl::Now() + wait;
  if (!parts_->dispatcher->WaitIdle(deadline)) return false;
  // Gives answers that are still being sent up to 2 s.
  parts_->server->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(2)));
  return true;
}

ExecServer::~ExecServer() {
  parts_->dispatcher->Drain();
  parts_->server->Shutdown(absl::ToChronoTime(absl::Now()));
  parts_->server->Wait();
}

namespace {

constexpr double kGib = 1 << 30;

const char* RoleName(ServerRole role) {
  switch (role) {
    case SERVER_ROLE_CHECK:
      return "check";
    case SERVER_ROLE_TIME:
      return "time";
    default:
      return "both";
  }
}

std::string DeviceText(const DeviceState& device) {
  std::string text =
      absl::StrCat("  ", device.gpu().empty() ? "its device" : absl::StrCat("GPU ", device.gpu()),
                   ": ", device.running(), " running");
  if (device.memory_bytes() > 0) {
    absl::StrAppendFormat(&text, ", %.1f GiB reserved of %.1f", device.reserved_bytes() / kGib,
                          device.memory_bytes() / kGib);
  }
  return text + "\n";
}

}  // namespace

absl::StatusOr<ServerDescription> AskServer(const ServerEntry& server, absl::Time deadline) {
  RemoteEndpoint endpoint;
  endpoint.address = server.address;
  endpoint.token = server.token;
  endpoint.stub = ConnectTo(server.address);
  grpc::ClientContext context;
  PrepareCall(endpoint, deadline, &context);
  ServerDescription description;
  const absl::Status status =
      FromGrpc(endpoint.stub->Describe(&context, DescribeRequest(), &description));
  if (!status.ok()) return status;
  return description;
}

std::string StatusText(const std::string& address, const ServerDescription& description) {
  std::vector<std::string> outcomes;
  for (const auto& [name, count] : description.outcomes()) {
    outcomes.push_back(absl::StrCat(count, " ", name));
  }
  std::sort(outcomes.begin(), outcomes.end());
  std::string text = absl::StrCat(
      address, ": ", RoleName(description.role()), ", ", description.backend(),
      description.draining() ? ", being shut down" : "",
      absl::StrFormat(", up %.0f s; ", description.uptime_seconds()), description.running(), " of ",
      description.concurrency(), " running, ", description.waiting(), " of ", description.queue(),
      " waiting, ", description.finished(), " finished");
  if (!outcomes.empty()) absl::StrAppend(&text, " (", absl::StrJoin(outcomes, ", "), ")");
  absl::StrAppend(&text, ", ", description.infra_errors(), " infrastructure errors, ",
                  description.refused(), " refused, ",
                  absl::StrFormat("busy %.1f s\n", description.busy_seconds()));
  for (const DeviceState& device : description.devices()) text += DeviceText(device);
  return text;
}

std::string StatusJson(const std::string& address, const ServerDescription& description) {
  std::string body;
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  (void)google::protobuf::util::MessageToJsonString(description, &body, options);
  nlohmann::ordered_json line = {{"address", address}};
  const auto fields = nlohmann::ordered_json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (fields.is_object()) line.update(fields);
  return line.dump() + "\n";
}

}  // namespace tritonrl
