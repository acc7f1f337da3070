#include "exec/service/server_status.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "exec/service/remote_pool.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
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
