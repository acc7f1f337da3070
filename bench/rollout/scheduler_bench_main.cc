// Models the schedule of a load that exceeds the KV cache: the real Scheduler makes the steps, a
// formula gives their times (scheduler_simulator.h). Uses no GPU and no model.
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "bench/harness/harness.h"
#include "bench/rollout/scheduler_simulator.h"
#include "bench/rollout/scripted_runner.h"

ABSL_FLAG(int, requests, 256, "Samples.");
ABSL_FLAG(int, group, 1, "Samples of a prompt.");
ABSL_FLAG(int64_t, prompt, 4096, "Tokens of each prompt.");
ABSL_FLAG(int64_t, output, 4096, "Tokens of each sample; with --median the most.");
ABSL_FLAG(double, median, 0, "Median of log-normal lengths of samples; 0: all are of --output.");
ABSL_FLAG(double, sigma, 0.9, "Standard deviation of the logarithm of lengths.");
ABSL_FLAG(int64_t, longest, 16384, "With --median: samples are cut off after so many tokens.");
ABSL_FLAG(int, pages, 49375, "Number of KV pages, of 16 tokens each.");
ABSL_FLAG(int, max_num_seqs, 256, "Maximum number of sequences in a batch.");
ABSL_FLAG(int, max_num_batched_tokens, 8192, "Maximum number of tokens in a step.");
ABSL_FLAG(int, prefill_budget, 256,
          "Prefill budget of a step while samples wait; 0: --max_num_batched_tokens.");
ABSL_FLAG(bool, reserve_max_tokens, false,
          "Start a sample only when its largest size fits, as batch-invariant engines do.");
ABSL_FLAG(double, gemm_tflops, 700, "TFLOP/s of GEMMs of many rows.");
ABSL_FLAG(double, attention_tb_per_s, 4.3, "TB/s at which decode attention reads the KV cache.");
ABSL_FLAG(double, prefill_tflops, 550, "TFLOP/s of the attention of prompt chunks.");
ABSL_FLAG(double, token_flop, 16.4e9, "FLOP of one token's GEMMs.");
ABSL_FLAG(double, token_bytes, 147456, "Bytes of one token in the KV cache.");
ABSL_FLAG(double, pair_flop, 4.0 * 32 * 128 * 36,
          "FLOP of one pair of tokens in the attention of a prompt chunk.");
ABSL_FLAG(double, row_ms, 0.0025, "Milliseconds for each sample in a step: draws and the like.");
ABSL_FLAG(double, fixed_ms, 0.3, "Milliseconds for each step.");
ABSL_FLAG(double, prefill_step_ms, 0, "Additional milliseconds for each step with prompt chunks.");

namespace tritonrl {
namespace {

StepCostModel Cost() {
  StepCostModel cost;
  cost.token_flop = absl::GetFlag(FLAGS_token_flop);
  cost.gemm_tflops = absl::GetFlag(FLAGS_gemm_tflops);
  cost.token_bytes = absl::GetFlag(FLAGS_token_bytes);
  cost.attention_tb_per_s = absl::GetFlag(FLAGS_attention_tb_per_s);
  cost.pair_flop = absl::GetFlag(FLAGS_pair_flop);
  cost.prefill_tflops = absl::GetFlag(FLAGS_prefill_tflops);
  cost.row_ms = absl::GetFlag(FLAGS_row_ms);
  cost.prefill_step_ms = absl::GetFlag(FLAGS_prefill_step_ms);
  cost.fixed_ms = absl::GetFlag(FLAGS_fixed_ms);
  return cost;
}

ScheduleLoad Load() {
  const double median = absl::GetFlag(FLAGS_median);
  ScheduleLoad load = {
      .prompt = absl::GetFlag(FLAGS_prompt),
      .max_tokens = median > 0 ? absl::GetFlag(FLAGS_longest) : absl::GetFlag(FLAGS_output),
      .group = absl::GetFlag(FLAGS_group)};
  Philox random(1);
  for (int i = 0; i < absl::GetFlag(FLAGS_requests); ++i) {
    load.lengths.push_back(
        median > 0 ? LogNormalLength(median, absl::GetFlag(FLAGS_sigma), load.max_tokens, &random)
                   : load.max_tokens);
  }
  return load;
}

absl::Status Run(Bench* bench) {
  const ScheduleLoad load = Load();
  const Scheduler::Options options = {
      .num_pages = absl::GetFlag(FLAGS_pages),
      .max_num_seqs = absl::GetFlag(FLAGS_max_num_seqs),
      .max_num_batched_tokens = absl::GetFlag(FLAGS_max_num_batched_tokens),
      .prefill_budget = absl::GetFlag(FLAGS_prefill_budget),
      .reserve_max_tokens = absl::GetFlag(FLAGS_reserve_max_tokens)};
  if (load.group < 1 || load.lengths.empty() || load.lengths.size() % load.group != 0) {
    return absl::InvalidArgumentError("--requests must be a multiple of --group");
  }
  if (load.prompt < 1 || load.max_tokens < 1 || options.max_num_seqs < 1 ||
      options.max_num_batched_tokens < options.max_num_seqs) {
    return absl::InvalidArgumentError(
        "lengths must be at least 1, and --max_num_batched_tokens at least --max_num_seqs");
  }
  if (!Scheduler(options).Fits(load.prompt, load.max_tokens)) {
    return absl::InvalidArgumentError("a sample does not fit --pages even alone");
  }
  const StepCostModel cost = Cost();
  const ScheduleReport report = SimulateSchedule(options, load, cost);
  const double ideal = IdealSeconds(options, load, cost);
  bench->set_subject("scheduler (modelled)");
  bench->Add(absl::StrCat(load.lengths.size(), " x ", load.prompt, " x ", load.max_tokens),
             {{"generation rate (modelled)", report.tokens_per_s, "tokens/s", std::nullopt,
               report.tokens_per_s * report.seconds / ideal},
              {"time (modelled)", report.seconds, "s", std::nullopt, ideal},
              Count("steps", report.steps, "steps"),
              {"mean rows of a step", report.rows, "rows"},
              Count("preemptions", report.stats.preemptions, "preemptions"),
              Count("recomputed tokens", report.stats.recomputed_tokens, "tokens"),
              {"time of prompts (modelled)", 100 * report.prefill_share, "%"},
              {"time of recomputed tokens (modelled)", 100 * report.recompute_share, "%"},
              {"mean cache occupancy", 100 * report.occupancy, "%"},
              {"idle batch slots", 100 * report.idle_share, "%"}});
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "What the scheduler makes of a load, modelled."}, argc, argv,
                     tritonrl::Run);
}
