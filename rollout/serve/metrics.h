// Metrics of the server in Prometheus' text format.
#ifndef TRITONRL_ROLLOUT_SERVE_METRICS_H_
#define TRITONRL_ROLLOUT_SERVE_METRICS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollout/engine/engine.h"

namespace tritonrl {

// Values that are measured when the metrics are requested.
struct ServerGauges {
  int64_t requests = 0;         // Generating requests that are not answered yet.
  int64_t running_samples = 0;  // Have drawn a token.
  int64_t waiting_samples = 0;  // Have not drawn a token.
  EngineStats engine;
};

class Metrics {
 public:
  Metrics();

  // Counts a request that was answered, or whose client disconnected (status 499).
  void CountRequest(absl::string_view endpoint, int http_status);
  // Counts the tokens of a generating request: those of its prompts, and those drawn for its
  // completions.
  void CountTokens(int64_t prompt_tokens, int64_t completion_tokens);
  // Counts a completion (one choice of a request) that ended by "stop", "length", "failed" or
  // "cancelled".
  void CountCompletion(absl::string_view finish_reason);
  // Time from a request's arrival until all its completions ended.
  void ObserveRequest(absl::Duration time);
  // Time from the request's arrival to a completion's first token.
  void ObserveFirstToken(absl::Duration time);
  // Mean time between a completion's tokens after its first.
  void ObserveTokenTime(absl::Duration time);

  // All metrics, in version 0.0.4 of the format.
  std::string Text(const ServerGauges& gauges) const;

 private:
  struct Histogram {
    std::vector<double> bounds;   // Upper ends of the buckets in seconds, without infinity.
    std::vector<int64_t> counts;  // One more than bounds; not cumulative.
    double sum = 0;
  };
  static void Observe(absl::Duration time, Histogram* histogram);
  static void AppendHistogram(const char* name, const char* help, const Histogram& histogram,
                              std::string* text);

  mutable absl::Mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> completions_ ABSL_GUARDED_BY(mutex_);  // By finish reason.
  int64_t prompt_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t completion_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  Histogram request_time_ ABSL_GUARDED_BY(mutex_);
  Histogram first_token_ ABSL_GUARDED_BY(mutex_);
  Histogram token_time_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_METRICS_H_
