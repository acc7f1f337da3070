// Requests to and replies of an OpenAI-compatible endpoint as plain values, and their JSON form.
#ifndef TRITONRL_BASE_ENDPOINT_MESSAGE_H_
#define TRITONRL_BASE_ENDPOINT_MESSAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

struct EndpointMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

struct EndpointRequest {
  std::vector<EndpointMessage> messages;  // sent to /chat/completions
  std::string prompt;                     // if there are no messages: sent to /completions
  std::string model;
  std::optional<double> temperature;  // unset members are not sent: the endpoint's own defaults
  std::optional<double> top_p;
  int max_tokens = 0;  // 0: not sent
  int n = 1;           // choices; not sent if 1
  std::optional<int64_t> seed;
  std::vector<std::string> stop;
  // JSON object whose members are added to the request, in place of equal ones; "": none.
  std::string extra;

  bool chat() const { return !messages.empty(); }
  int64_t prompt_bytes() const;  // of all contents, or of the prompt
};

struct EndpointChoice {
  std::string text;
  std::string reasoning;      // text that the endpoint returns apart (reasoning_content)
  std::string finish_reason;  // "stop", "length", ...; "" if the reply has none
};

struct EndpointUsage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  bool reported = false;  // false: estimated from the number of bytes
};

struct EndpointResponse {
  std::vector<EndpointChoice> choices;  // at least one
  EndpointUsage usage;
  std::string model;  // as the reply names it
  std::string raw;    // the whole body

  const std::string& text() const { return choices[0].text; }
};

// Tokens are estimated as a quarter of the bytes where an endpoint does not report them.
constexpr int64_t kBytesPerToken = 4;

// The request's body. Invalid UTF-8 is replaced by U+FFFD. InvalidArgument: the model is missing,
// there is neither message nor prompt, or `extra` is not a JSON object.
absl::StatusOr<std::string> RequestBody(const EndpointRequest& request);

// Parses the body of a successful reply to `request`. DataLoss names the part that the body lacks.
absl::StatusOr<EndpointResponse> ParseReply(const EndpointRequest& request, std::string body);

// The usage that the body of a reply reports which ParseReply refuses: it is paid for all the same.
// All zero if there is none.
EndpointUsage UsageOfBadReply(const std::string& body);

// The error message in a refused request's body, on one line of at most 300 bytes; "" if the body
// is empty. `code` gets the error's code or type, such as "insufficient_quota".
std::string ErrorText(const std::string& body, std::string* code);

// The address of `request` at the endpoint `url`, which is ".../v1" or already ends in
// "/chat/completions" or "/completions".
std::string RequestUrl(const std::string& url, const EndpointRequest& request);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_MESSAGE_H_
