#include "base/endpoint/refusal.h"

#include "absl/strings/str_cat.h"

namespace tritonrl {

absl::Status RefusalError(const EndpointOptions& options, const HttpReply& reply,
                          const std::string& url, const std::string& model,
                          const std::string& error) {
  const std::string& variable = options.api_key_variable;
  if (reply.status == 401 || reply.status == 403) {
    const std::string text =
        variable.empty()
            ? absl::StrCat("the endpoint ", options.url, " wants a key (", error,
                           "); name the environment variable that holds it")
            : absl::StrCat("the endpoint ", options.url, " refuses the key in the variable ",
                           variable, " (", error, ")");
    return reply.status == 401 ? absl::UnauthenticatedError(text)
                               : absl::PermissionDeniedError(text);
  }
  if (reply.status == 404) {
    return absl::NotFoundError(
        absl::StrCat("the endpoint has no ", url, " or no model \"", model, "\" (", error, ")"));
  }
  if (reply.status == 402 || reply.status == 429) {
    return absl::PermissionDeniedError(
        absl::StrCat("the account at ", options.url, " has no quota left (", error, ")"));
  }
  if (reply.status >= 300 && reply.status < 400) {
    return absl::NotFoundError(absl::StrCat("the endpoint ", options.url, " has moved to \"",
                                            reply.location, "\"; give that address"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the endpoint ", options.url, " refuses the request (", error, ")"));
}

}  // namespace tritonrl
