// What the requests to an endpoint may cost, and how fast they may follow each other.
#ifndef TRITONRL_BASE_ENDPOINT_BUDGET_H_
#define TRITONRL_BASE_ENDPOINT_BUDGET_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/endpoint/client.h"
#include "base/endpoint/window_limit.h"

namespace tritonrl {

// Holds requests to the limits of EndpointOptions: requests and tokens a minute, and the cost
// ceiling. Used by one thread.
class EndpointBudget {
 public:
  // The part of the budget that a request in flight reserves.
  struct Share {
    double cost = 0;            // US dollars, the most that the request can cost
    int64_t tokens_entry = -1;  // its number in the limit of tokens
  };

  explicit EndpointBudget(const EndpointOptions& options);

  // The first time, not before `now`, at which the rate limits let the request start.
  absl::Time EarliestStart(const EndpointRequest& request, absl::Time now);
  // Whether the request fits under the cost ceiling beside those in flight, once `spent` US dollars
  // are spent.
  bool Fits(const EndpointRequest& request, double spent) const;
  // Whether some request in flight may release a part of its reservation.
  bool holds() const { return reserved_ > 0; }
  // ResourceExhausted: the request does not fit.
  absl::Status CeilingError(const EndpointRequest& request, double spent) const;

  // A request starts, and ends. `none_left`: no request is in flight any more.
  Share Start(const EndpointRequest& request, absl::Time now);
  void End(const Share& share, bool none_left);
  // The usage of a request that got its response.
  void NoteAnswer(const Share& share, const EndpointUsage& usage);

  // US dollars for the tokens of `usage`.
  double Cost(const EndpointUsage& usage) const;

 private:
  double CostBound(const EndpointRequest& request) const;
  int64_t ExpectedTokens(const EndpointRequest& request) const;

  const double price_in_, price_out_, max_cost_;
  WindowLimit requests_, tokens_;
  double reserved_ = 0;  // US dollars
  int64_t answers_ = 0, answer_tokens_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_BUDGET_H_
