#include "exec/service/remote_backend.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/utf8.h"
#include "exec/service/server_registry.h"
#include "exec/service/wire.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kSilence = absl::Seconds(2);           // wait before the user is told
constexpr absl::Duration kBusyPause = absl::Milliseconds(500);  // if the server names no pause

ExecResult InfraErrorResult(Outcome::Reason reason, const std::string& message) {
  ExecResult result;
  SetOutcome(reason, message, result.mutable_outcome());
  result.set_phase("queue");
  return result;
}

// Returns the pause in the server's trailer. Nullopt if there is none, as the refusal then did not
// come from the server's queue.
std::optional<absl::Duration> RetryAfter(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find(kRetryTrailer);
  int64_t milliseconds = 0;
  if (found == trailers.end() ||
      !absl::SimpleAtoi(absl::string_view(found->second.data(), found->second.size()),
                        &milliseconds)) {
    return std::nullopt;
  }
  return absl::Milliseconds(std::min<int64_t>(std::max<int64_t>(milliseconds, 10), 10000));
}

absl::Status CheckSendable(const RunRequest& request) {
  RETURN_IF_ERROR(CheckRunRequest(request));
  for (const std::string* text :
       {&request.request().task_id(), &request.request().reference_source(),
        &request.request().candidate_source(), &request.request().device_model()}) {
    if (!IsValidUtf8(*text)) {
      return absl::InvalidArgumentError("request: a source or name is not UTF-8 text");
    }
  }
  if (static_cast<int64_t>(request.ByteSizeLong()) > kMaxRequestBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("request: larger than ", kMaxRequestBytes, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RemoteOptions> ParseServers(const std::string& servers,
                                           const std::string& token_file) {
  RemoteOptions options;
  if (DirectoryExists(servers) || absl::StrContains(servers, '/')) {
    options.registry_dir = servers;
    return options;
  }
  if (token_file.empty()) {
    return absl::InvalidArgumentError(
        "servers given by address need the file with their token (--token_file)");
  }
  ASSIGN_OR_RETURN(const std::string token, TokenFromFile(token_file, /*create=*/false));
  for (const absl::string_view address : absl::StrSplit(servers, ',', absl::SkipEmpty())) {
    int port = 0;
    const size_t colon = address.rfind(':');
    if (colon == absl::string_view::npos || colon == 0 ||
        !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 1 || port > 65535) {
      return absl::InvalidArgumentError(
          absl::StrCat("server \"", address, "\" must be HOST:PORT, or a folder with a '/'"));
    }
    options.servers.push_back({.address = std::string(address), .token = token});
  }
  if (options.servers.empty()) return absl::InvalidArgumentError("no server is given");
  return options;
}

absl::StatusOr<std::unique_ptr<RemoteBackend>> RemoteBackend::Connect(
    const RemoteOptions& options) {
  std::unique_ptr<RemoteBackend> backend(new RemoteBackend(options));
  RETURN_IF_ERROR(backend->pool_.WaitReady(absl::Now() + options.connect_timeout));
  return backend;
}

std::string RemoteBackend::sandbox_description() const {
  return absl::StrCat(pool_.description().sandbox(), ", at ", pool_.Summary());
}

absl::StatusOr<ExecResult> RemoteBackend::RunAt(bool timing, const RunRequest& request,
                                                absl::Time deadline) {
  absl::Status last;
  for (int losses = 0; losses < options_.max_losses;) {
    const std::shared_ptr<RemoteEndpoint> endpoint = pool_.Pick(timing, deadline);
    if (endpoint == nullptr) {
      return InfraErrorResult(Outcome::WORKER_LOST,
                              absl::StrCat("no server took the job in time: ", pool_.Summary()));
    }
    grpc::ClientContext context;
    PrepareCall(*endpoint, deadline, &context);
    RunReply reply;
    const grpc::Status answer = endpoint->stub->Run(&context, request, &reply);
    absl::Status status = FromGrpc(answer);
    if (status.ok() && reply.result().outcome().reason() == Outcome::CANCELLED) {
      status = absl::UnavailableError("it stopped its workers while it had the job");
    }
    if (status.ok()) {
      pool_.Done(endpoint.get());
      reply.mutable_result()->set_server(endpoint->address);
      return std::move(*reply.mutable_result());
    }
    switch (status.code()) {
      case absl::StatusCode::kInvalidArgument:
      case absl::StatusCode::kFailedPrecondition:
        pool_.Done(endpoint.get());
        return AddContext(status, absl::StrCat("server ", endpoint->address));
      case absl::StatusCode::kDeadlineExceeded:
        pool_.Done(endpoint.get());
        return InfraErrorResult(Outcome::DEADLINE, absl::StrCat("the deadline passed while server ",
                                                                endpoint->address, " had the job"));
      case absl::StatusCode::kResourceExhausted:
        pool_.DoneBusy(endpoint.get(), RetryAfter(context).value_or(kBusyPause));
        break;
      default:
        // The server is shutting down or was lost with the job: try another server.
        pool_.DoneLost(endpoint.get(), status);
        last = status;
        ++losses;
        ++losses_;
    }
  }
  return InfraErrorResult(
      Outcome::WORKER_LOST,
      absl::StrCat("its server was lost ", options_.max_losses, " times: ", last.message()));
}

absl::StatusOr<ExecResult> RemoteBackend::Run(const ExecRequest& request, absl::Time deadline) {
  RunRequest run;
  *run.mutable_request() = request;
  run.set_memory_bytes(options_.memory_bytes);
  RETURN_IF_ERROR(CheckSendable(run));
  const bool timing = !request.skip_timing() && !request.reference_only();
  if (!timing) return RunAt(/*timing=*/false, run, deadline);
  if (pool_.Split()) {
    RunRequest check = run;
    check.mutable_request()->set_skip_timing(true);
    ASSIGN_OR_RETURN(ExecResult checked, RunAt(/*timing=*/false, check, deadline));
    if (checked.outcome().reason() != Outcome::OK) return checked;
  }
  return RunAt(/*timing=*/true, run, deadline);
}

absl::StatusOr<std::unique_ptr<RemoteBackend>> ConnectToServers(
    const std::string& servers, const std::string& token_file,
    const std::function<void(const std::string&)>& tell) {
  const bool folder = absl::StrContains(servers, '/');
  ASSIGN_OR_RETURN(const RemoteOptions options,
                   ParseServers(folder ? UserPath(servers) : servers, UserPath(token_file)));
  RemoteOptions hasty = options;
  hasty.connect_timeout = std::min(options.connect_timeout, kSilence);
  auto backend = RemoteBackend::Connect(hasty);
  const bool may_come = absl::IsUnavailable(backend.status()) || absl::IsNotFound(backend.status());
  if (!may_come) return backend;
  tell(absl::StrCat("waiting ", absl::FormatDuration(options.connect_timeout),
                    " for a server: ", Message(backend.status())));
  return RemoteBackend::Connect(options);
}

}  // namespace tritonrl
