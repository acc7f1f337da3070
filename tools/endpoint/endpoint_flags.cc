#include "tools/endpoint/endpoint_flags.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, endpoint, "",
          "OpenAI-compatible endpoint, such as https://api.deepseek.com/v1.");
ABSL_FLAG(std::string, model, "", "Name of the endpoint's model.");
ABSL_FLAG(std::string, api_key_variable, "",
          "Environment variable that holds the endpoint's key; empty: no key is sent.");
ABSL_FLAG(std::string, extra, "",
          "JSON object of further members of each request, such as '{\"top_k\": 20}'.");
ABSL_FLAG(int, max_in_flight, 64, "Requests that are in flight at the same time.");
ABSL_FLAG(int64_t, requests_per_minute, 0, "Rate limit of the endpoint; 0: none.");
ABSL_FLAG(int64_t, tokens_per_minute, 0,
          "Rate limit of the endpoint for prompts and answers together; 0: none.");
ABSL_FLAG(int, max_attempts, 6,
          "Attempts of one request, and its answers in another form than asked for, before it "
          "fails; attempts that end in HTTP 429 do not count.");
ABSL_FLAG(absl::Duration, request_timeout, absl::Minutes(15), "Time limit of one attempt.");
ABSL_FLAG(absl::Duration, total_timeout, absl::Hours(1),
          "Time limit of one request with all its attempts and pauses.");
ABSL_FLAG(double, price_in, 0, "US dollars for a million prompt tokens.");
ABSL_FLAG(double, price_out, 0, "US dollars for a million tokens of answers.");
ABSL_FLAG(double, max_cost, 0,
          "US dollars that all responses in --out may cost; 0: no ceiling. Needs the prices.");

namespace tritonrl {

std::string EndpointUrlFlag() { return absl::GetFlag(FLAGS_endpoint); }
std::string EndpointModelFlag() { return absl::GetFlag(FLAGS_model); }
std::string EndpointExtraFlag() { return absl::GetFlag(FLAGS_extra); }

EndpointOptions OwnEndpointOptionsFromFlags() {
  EndpointOptions options;
  options.api_key_variable = absl::GetFlag(FLAGS_api_key_variable);
  options.max_in_flight = absl::GetFlag(FLAGS_max_in_flight);
  options.requests_per_minute = absl::GetFlag(FLAGS_requests_per_minute);
  options.tokens_per_minute = absl::GetFlag(FLAGS_tokens_per_minute);
  options.max_attempts = absl::GetFlag(FLAGS_max_attempts);
  options.attempt_timeout = absl::GetFlag(FLAGS_request_timeout);
  options.total_timeout = absl::GetFlag(FLAGS_total_timeout);
  options.price_in = absl::GetFlag(FLAGS_price_in);
  options.price_out = absl::GetFlag(FLAGS_price_out);
  options.max_cost = absl::GetFlag(FLAGS_max_cost);
  return options;
}

absl::StatusOr<EndpointOptions> EndpointOptionsFromFlags() {
  EndpointOptions options = OwnEndpointOptionsFromFlags();
  options.url = absl::GetFlag(FLAGS_endpoint);
  if (options.url.empty()) {
    return absl::InvalidArgumentError("--endpoint is missing: the address of a model, .../v1");
  }
  if (absl::GetFlag(FLAGS_model).empty()) {
    return absl::InvalidArgumentError("--model is missing: the name of the endpoint's model");
  }
  return options;
}

}  // namespace tritonrl
