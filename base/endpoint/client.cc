#include "base/endpoint/client.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/endpoint/http_transfers.h"
#include "base/endpoint/threaded_client.h"
#include "base/status.h"

namespace tritonrl {

namespace {

absl::Status CheckOptions(const EndpointOptions& options) {
  if (options.url.empty()) return absl::InvalidArgumentError("the endpoint's url is missing");
  if (!absl::StartsWith(options.url, "http://") && !absl::StartsWith(options.url, "https://")) {
    return absl::InvalidArgumentError(absl::StrCat("the endpoint's url \"", options.url,
                                                   "\" must begin with http:// or https://"));
  }
  if (options.max_attempts < 1) {
    return absl::InvalidArgumentError("the endpoint's attempts must be at least 1");
  }
  if (options.max_in_flight < 1 || options.max_in_flight > 10000) {
    return absl::InvalidArgumentError("the endpoint's requests in flight must be 1 to 10000");
  }
  if (options.requests_per_minute < 0 || options.tokens_per_minute < 0) {
    return absl::InvalidArgumentError("the endpoint's rate limits must not be negative");
  }
  for (const double number : {options.price_in, options.price_out, options.max_cost}) {
    if (!std::isfinite(number) || number < 0) {
      return absl::InvalidArgumentError("the endpoint's prices and cost ceiling must be 0 or more");
    }
  }
  if (options.max_cost > 0 && options.price_in <= 0 && options.price_out <= 0) {
    return absl::InvalidArgumentError("the cost ceiling needs the endpoint's prices");
  }
  if (options.attempt_timeout <= absl::ZeroDuration() ||
      options.total_timeout <= absl::ZeroDuration() ||
      options.connect_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("the endpoint's time limits must be above 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EndpointResponse> EndpointClient::Ask(EndpointRequest request) {
  absl::StatusOr<EndpointResponse> answer = absl::InternalError("no answer");
  absl::Notification answered;
  Submit(std::move(request), [&](absl::StatusOr<EndpointResponse> response) {
    answer = std::move(response);
    answered.Notify();
  });
  answered.WaitForNotification();
  return answer;
}

absl::StatusOr<std::unique_ptr<EndpointClient>> EndpointClient::Make(
    const EndpointOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::string key;
  if (!options.api_key_variable.empty()) {
    const char* value = std::getenv(options.api_key_variable.c_str());
    if (value == nullptr || value[0] == '\0') {
      return absl::InvalidArgumentError(
          absl::StrCat("the endpoint's key is to stand in the variable ", options.api_key_variable,
                       ", which is not set"));
    }
    key = value;
    if (key.find_first_of("\r\n") != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the endpoint's key in the variable ", options.api_key_variable, " has a line break"));
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<HttpTransfers> transfers,
                   HttpTransfers::Make(options.max_reply_bytes, options.connect_timeout));
  return MakeThreadedClient(options, std::move(key), std::move(transfers));
}

bool EndsAllRequests(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ||
         absl::IsNotFound(status) || absl::IsResourceExhausted(status);
}

}  // namespace tritonrl
