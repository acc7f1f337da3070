#include "base/endpoint/budget.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace tritonrl {
namespace {

constexpr double kMillion = 1e6;

// Tokens that a chat template adds to a prompt, at most.
constexpr int64_t kTemplateTokens = 256;

}  // namespace

EndpointBudget::EndpointBudget(const EndpointOptions& options)
    : price_in_(options.price_in),
      price_out_(options.price_out),
      max_cost_(options.max_cost),
      requests_(options.requests_per_minute),
      tokens_(options.tokens_per_minute) {}

absl::Time EndpointBudget::EarliestStart(const EndpointRequest& request, absl::Time now) {
  return std::max(requests_.EarliestStart(1, now),
                  tokens_.EarliestStart(ExpectedTokens(request), now));
}

bool EndpointBudget::Fits(const EndpointRequest& request, double spent) const {
  return max_cost_ <= 0 || spent + reserved_ + CostBound(request) <= max_cost_;
}

absl::Status EndpointBudget::CeilingError(const EndpointRequest& request, double spent) const {
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the cost ceiling of $%.2f is reached: $%.2f are spent and the next request may cost "
      "$%.4f; raise the ceiling to go on",
      max_cost_, spent, CostBound(request)));
}

EndpointBudget::Share EndpointBudget::Start(const EndpointRequest& request, absl::Time now) {
  requests_.Add(1, now);
  const Share share = {.cost = CostBound(request),
                       .tokens_entry = tokens_.Add(ExpectedTokens(request), now)};
  reserved_ += share.cost;
  return share;
}

void EndpointBudget::End(const Share& share, bool none_left) {
  reserved_ -= share.cost;
  if (none_left) reserved_ = 0;  // no rounding errors stay
}

void EndpointBudget::NoteAnswer(const Share& share, const EndpointUsage& usage) {
  tokens_.Correct(share.tokens_entry, usage.prompt_tokens + usage.completion_tokens);
  ++answers_;
  answer_tokens_ += usage.completion_tokens;
}

double EndpointBudget::Cost(const EndpointUsage& usage) const {
  return (static_cast<double>(usage.prompt_tokens) * price_in_ +
          static_cast<double>(usage.completion_tokens) * price_out_) /
         kMillion;
}

// The most that a request can cost: a token has at least one byte.
double EndpointBudget::CostBound(const EndpointRequest& request) const {
  const double in = static_cast<double>(request.prompt_bytes() + kTemplateTokens);
  const double out = static_cast<double>(request.max_tokens) * std::max(request.n, 1);
  return (in * price_in_ + out * price_out_) / kMillion;
}

// Tokens of prompt and response: the mean response so far, or before the first one its limit.
int64_t EndpointBudget::ExpectedTokens(const EndpointRequest& request) const {
  const int64_t answer = answers_ > 0 ? answer_tokens_ / answers_
                                      : int64_t{request.max_tokens} * std::max(request.n, 1);
  return request.prompt_bytes() / kBytesPerToken + answer;
}

}  // namespace tritonrl
