#include "rollout/serve/metrics.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"

namespace tritonrl {
namespace {

TEST(Metrics, CountsAndGauges) {
  Metrics metrics;
  metrics.CountRequest("/v1/completions", 200);
  metrics.CountRequest("/v1/completions", 200);
  metrics.CountRequest("/v1/completions", 429);
  metrics.CountTokens(5, 7);
  metrics.CountTokens(1, 2);
  metrics.CountCompletion("stop");
  metrics.CountCompletion("length");
  metrics.CountCompletion("stop");
  ServerGauges gauges{3, 4, 5, {}};
  gauges.engine.decode_steps = 11;
  gauges.engine.preemptions = 12;
  const std::string text = metrics.Text(gauges);
  for (const char* line :
       {"\n# TYPE tritonrl_prompt_tokens_total counter\n",
        "\ntritonrl_requests_total{endpoint=\"/v1/completions\",status=\"200\"} 2\n",
        "\ntritonrl_requests_total{endpoint=\"/v1/completions\",status=\"429\"} 1\n",
        "\ntritonrl_prompt_tokens_total 6\n", "\ntritonrl_completion_tokens_total 9\n",
        "\ntritonrl_requests_in_progress 3\n", "\ntritonrl_samples_running 4\n",
        "\ntritonrl_samples_waiting 5\n", "\ntritonrl_engine_decode_steps_total 11\n",
        "\ntritonrl_engine_preemptions_total 12\n",
        "\ntritonrl_completions_total{finish_reason=\"stop\"} 2\n",
        "\ntritonrl_completions_total{finish_reason=\"length\"} 1\n"}) {
    EXPECT_TRUE(absl::StrContains(text, line)) << line << text;
  }
}

TEST(Metrics, BucketsAreCumulative) {
  Metrics metrics;
  // On a bound, between two bounds, above all bounds.
  for (const double seconds : {0.001, 0.3, 0.3, 1000.0}) {
    metrics.ObserveFirstToken(absl::Seconds(seconds));
  }
  const std::string text = metrics.Text({});
  const std::string name = "tritonrl_time_to_first_token_seconds";
  for (const std::string line :
       {"_bucket{le=\"0.001\"} 1\n", "_bucket{le=\"0.25\"} 1\n", "_bucket{le=\"0.5\"} 3\n",
        "_bucket{le=\"300\"} 3\n", "_bucket{le=\"+Inf\"} 4\n", "_sum 1000.6\n", "_count 4\n"}) {
    EXPECT_TRUE(absl::StrContains(text, name + line)) << line << text;
  }
  EXPECT_TRUE(absl::StrContains(text, "tritonrl_time_per_output_token_seconds_count 0\n"));
}

}  // namespace
}  // namespace tritonrl
