#include "rollout/serve/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {

void AppendHead(const char* name, const char* type, const char* help, std::string* text) {
  absl::StrAppend(text, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

template <typename Number>
void AppendValue(const char* name, const char* type, const char* help, Number value,
                 std::string* text) {
  AppendHead(name, type, help, text);
  absl::StrAppend(text, name, " ", value, "\n");
}

void AppendEngineStats(const EngineStats& stats, std::string* text) {
  AppendValue("tritonrl_engine_prompt_tokens_total", "counter", "Prompt tokens computed.",
              stats.prompt_tokens, text);
  AppendValue("tritonrl_engine_generated_tokens_total", "counter", "Tokens drawn.",
              stats.generated_tokens, text);
  AppendValue("tritonrl_engine_decode_steps_total", "counter", "Batched forward passes.",
              stats.decode_steps, text);
  AppendValue("tritonrl_engine_finished_samples_total", "counter", "Samples ended or cancelled.",
              stats.finished_samples, text);
  AppendValue("tritonrl_engine_failed_samples_total", "counter",
              "Samples whose logits gave no distribution.", stats.failed_samples, text);
  AppendValue("tritonrl_engine_preemptions_total", "counter",
              "Samples preempted for lack of KV-cache pages.", stats.preemptions, text);
  AppendValue("tritonrl_engine_recomputed_tokens_total", "counter",
              "Tokens recomputed after preemption.", stats.recomputed_tokens, text);
  AppendValue("tritonrl_engine_cached_tokens_total", "counter",
              "Prompt tokens found in the prefix cache.", stats.cached_tokens, text);
  AppendValue("tritonrl_engine_shared_tokens_total", "counter",
              "Prompt tokens shared by the samples of a prompt.", stats.shared_tokens, text);
  AppendValue("tritonrl_engine_draft_tokens_total", "counter",
              "Draft tokens verified by the model.", stats.draft_tokens, text);
  AppendValue("tritonrl_engine_accepted_tokens_total", "counter",
              "Draft tokens that were accepted.", stats.accepted_tokens, text);
  AppendValue("tritonrl_engine_cache_pages", "gauge", "Pages of the KV cache.", stats.num_pages,
              text);
  AppendValue("tritonrl_engine_cache_pages_peak", "gauge", "Peak number of KV-cache pages in use.",
              stats.peak_pages, text);
  AppendValue("tritonrl_engine_busy_seconds_total", "counter", "Time with something to generate.",
              stats.busy_seconds, text);
}

}  // namespace

Metrics::Metrics() {
  first_token_.bounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                         0.5,   1,      2.5,   5,    10,    30,   60,  300};
  token_time_.bounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                        0.02,   0.03,    0.05,   0.1,   0.25,   0.5,   1};
  request_time_.bounds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,   2.5,
                          5,    10,    20,   30,  60,   120, 300, 600};
  for (Histogram* histogram : {&request_time_, &first_token_, &token_time_}) {
    histogram->counts.assign(histogram->bounds.size() + 1, 0);
  }
}

void Metrics::CountRequest(absl::string_view endpoint, int http_status) {
  absl::MutexLock lock(&mutex_);
  ++requests_[{std::string(endpoint), http_status}];
}

void Metrics::CountTokens(int64_t prompt_tokens, int64_t completion_tokens) {
  absl::MutexLock lock(&mutex_);
  prompt_tokens_ += prompt_tokens;
  completion_tokens_ += completion_tokens;
}

void Metrics::CountCompletion(absl::string_view finish_reason) {
  absl::MutexLock lock(&mutex_);
  ++completions_[std::string(finish_reason)];
}

void Metrics::Observe(absl::Duration time, Histogram* histogram) {
  const double seconds = absl::ToDoubleSeconds(time);
  const auto bound = std::lower_bound(histogram->bounds.begin(), histogram->bounds.end(), seconds);
  ++histogram->counts[bound - histogram->bounds.begin()];
  histogram->sum += seconds;
}

void Metrics::ObserveRequest(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  Observe(time, &request_time_);
}

void Metrics::ObserveFirstToken(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  Observe(time, &first_token_);
}

void Metrics::ObserveTokenTime(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  Observe(time, &token_time_);
}

void Metrics::AppendHistogram(const char* name, const char* help, const Histogram& histogram,
                              std::string* text) {
  AppendHead(name, "histogram", help, text);
  int64_t below = 0;
  for (size_t i = 0; i < histogram.bounds.size(); ++i) {
    below += histogram.counts[i];
    absl::StrAppend(text, name, "_bucket{le=\"", histogram.bounds[i], "\"} ", below, "\n");
  }
  below += histogram.counts.back();
  absl::StrAppend(text, name, "_bucket{le=\"+Inf\"} ", below, "\n");
  absl::StrAppend(text, name, "_sum ", histogram.sum, "\n", name, "_count ", below, "\n");
}

std::string Metrics::Text(const ServerGauges& gauges) const {
  std::string text;
  {
    absl::MutexLock lock(&mutex_);
    AppendHead("tritonrl_requests_total", "counter", "Answered requests; 499: the client left.",
               &text);
    for (const auto& [key, count] : requests_) {
      absl::StrAppend(&text, "tritonrl_requests_total{endpoint=\"", key.first, "\",status=\"",
                      key.second, "\"} ", count, "\n");
    }
    AppendHead("tritonrl_completions_total", "counter", "Completions by finish reason.", &text);
    for (const auto& [reason, count] : completions_) {
      absl::StrAppend(&text, "tritonrl_completions_total{finish_reason=\"", reason, "\"} ", count,
                      "\n");
    }
    AppendValue("tritonrl_prompt_tokens_total", "counter", "Tokens of answered prompts.",
                prompt_tokens_, &text);
    AppendValue("tritonrl_completion_tokens_total", "counter", "Tokens of answers.",
                completion_tokens_, &text);
    AppendHistogram("tritonrl_request_seconds",
                    "From a request's arrival until all its answers were there.", request_time_,
                    &text);
    AppendHistogram("tritonrl_time_to_first_token_seconds",
                    "From a request's arrival to an answer's first token.", first_token_, &text);
    AppendHistogram("tritonrl_time_per_output_token_seconds",
                    "Mean time between an answer's tokens after the first.", token_time_, &text);
  }
  AppendValue("tritonrl_requests_in_progress", "gauge", "Generating requests.", gauges.requests,
              &text);
  AppendValue("tritonrl_samples_running", "gauge", "Samples that are being generated.",
              gauges.running_samples, &text);
  AppendValue("tritonrl_samples_waiting", "gauge", "Samples without a token yet.",
              gauges.waiting_samples, &text);
  AppendEngineStats(gauges.engine, &text);
  return text;
}

}  // namespace tritonrl
