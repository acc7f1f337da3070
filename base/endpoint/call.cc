#include "base/endpoint/call.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {

absl::Status PrepareCall(const EndpointOptions& options, EndpointCall* call) {
  ASSIGN_OR_RETURN(call->body, RequestBody(call->request));
  call->url = options.exact_url ? options.url : RequestUrl(options.url, call->request);
  if (options.max_cost > 0 && call->request.max_tokens <= 0) {
    return absl::InvalidArgumentError(
        "a cost ceiling needs a limit on the tokens of an answer (max_tokens)");
  }
  return absl::OkStatus();
}

std::string WhyGivenUp(const EndpointOptions& options, const EndpointCall& call, absl::Time now,
                       absl::Duration pause, bool last) {
  const std::string attempts =
      absl::StrCat(call.attempts, call.attempts == 1 ? " attempt" : " attempts");
  if (call.counted >= options.max_attempts || last) return "in " + attempts;
  if (now + pause < call.deadline) return "";
  return absl::StrCat("within ", absl::FormatDuration(options.total_timeout), " (", attempts, ")");
}

}  // namespace tritonrl
