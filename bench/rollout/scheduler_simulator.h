// Scheduler simulator: the real Scheduler makes every step, a cost model estimates its time on a
// GPU. No model runs; all figures are modelled.
#ifndef TRITONRL_BENCH_ROLLOUT_SCHEDULER_SIMULATOR_H_
#define TRITONRL_BENCH_ROLLOUT_SCHEDULER_SIMULATOR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "rollout/scheduler/scheduler.h"

namespace tritonrl {

// The sizes of a step that its time depends on.
struct StepShape {
  int64_t rows = 0;          // sequences that decode
  int64_t context = 0;       // cached tokens that they read
  int64_t chunk_tokens = 0;  // prefilled tokens of prompts and of recomputed samples
  double pairs = 0;          // (query, key) pairs of the prefilled tokens
};

// Cost of one forward pass; costs that cannot overlap are added. The defaults are for Qwen3-8B in
// bf16 on one H200.
struct StepCostModel {
  // GEMM time by rows (all weights are read once), interpolated linearly between entries.
  std::vector<std::pair<int64_t, double>> gemm_ms = {{1, 3.9}, {32, 4.4}, {128, 4.6}, {256, 6.0}};
  double token_flop = 16.4e9;  // GEMM FLOP per token
  double gemm_tflops = 700;
  double token_bytes = 147456;  // KV cache bytes per token
  double attention_tb_per_s = 4.3;
  double pair_flop = 4.0 * 32 * 128 * 36;  // attention FLOP per pair
  double prefill_tflops = 550;
  double row_ms = 0.0025;  // sampling and other work per row
  double fixed_ms = 0.3;
  double prefill_step_ms = 0;  // extra cost of a step with prefill, which replays no CUDA graph

  // GEMM time of a step of `rows` rows: the time to read the weights or the arithmetic, whichever
  // is longer.
  double GemmMs(int64_t rows) const;
  double StepMs(const StepShape& shape) const;
};

StepShape ShapeOf(const Scheduler::Step& step);

// Requests of `group` samples each, all submitted at once.
struct ScheduleLoad {
  int64_t prompt = 0;
  int64_t max_tokens = 0;
  int group = 1;
  std::vector<int64_t> lengths;  // by sample, group by group
};

struct ScheduleReport {
  double seconds = 0;
  double tokens_per_s = 0;  // generated
  int64_t steps = 0;
  double rows = 0;             // mean number of decoding samples in a step
  double prefill_share = 0;    // share of the time that prompts add to steps
  double recompute_share = 0;  // share of the time that recomputed tokens add to steps
  double occupancy = 0;        // share of pages in use, mean over time
  double idle_share = 0;       // share of idle batch slots, mean over time
  Scheduler::Stats stats;
};

// Runs the load as BatchedEngine does, with two steps in flight.
ScheduleReport SimulateSchedule(const Scheduler::Options& options, const ScheduleLoad& load,
                                const StepCostModel& cost);

// Lower bound of the load's seconds, which no schedule may reach: nothing is recomputed, the cache
// (or max_num_seqs) is always full, and prompts are spread evenly over all steps.
double IdealSeconds(const Scheduler::Options& options, const ScheduleLoad& load,
                    const StepCostModel& cost);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_ROLLOUT_SCHEDULER_SIMULATOR_H_
