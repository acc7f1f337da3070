// Scheduler simulator: the real Scheduler makes every step, a cost model gives its time on a GPU.
// No model runs; all figures are estimates.
#ifndef TRITONRL_BENCH_ROLLOUT_SCHEDULER_SIMULATOR_H_
#define TRITONRL_BENCH_ROLLOUT_SCHEDULER_SIMULATOR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "rollout/scheduler/scheduler.h"

namespace tritonrl {

// Sizes of a step, as far as its time depends on them.
struct StepShape {
  int64_t rows = 0;          // sequences that decode
  int64_t context = 0;       // tokens that these read from the cache
  int64_t chunk_tokens = 0;  // of prompts, and of samples that are recomputed
  double pairs = 0;          // of a chunk's token and one that it reads
};

// Of one pass through the model; all that has to wait for another is added up. The defaults are
// for Qwen3-8B in bf16 on one H200.
struct StepCostModel {
  // Products by rows: they read all weights once. Between two entries on the line through them.
  std::vector<std::pair<int64_t, double>> gemm_ms = {{1, 3.9}, {32, 4.4}, {128, 4.6}, {256, 6.0}};
  double token_flop = 16.4e9;  // of products
  double gemm_tflops = 700;
  double token_bytes = 147456;  // of the cache
  double attention_tb_per_s = 4.3;
  double pair_flop = 4.0 * 32 * 128 * 36;  // of a chunk's attention
  double prefill_tflops = 550;
  double row_ms = 0.0025;  // draws and the like
  double fixed_ms = 0.3;
  double prefill_step_ms = 0;  // of a step with chunks: it is no replay of a graph

  // GEMM time of a step of `rows` rows: reading the weights, or the arithmetic if that is longer.
  double GemmMs(int64_t rows) const;
  double StepMs(const StepShape& shape) const;
};

StepShape ShapeOf(const Scheduler::Step& step);

// Requests of `group` samples each, all submitted at once.
struct ScheduleLoad {
  int64_t prompt = 0;
  int64_t max_tokens = 0;
  int group = 1;
  std::vector<int64_t> lengths;  // of the samples, the first group's first
};

struct ScheduleReport {
  double seconds = 0;
  double tokens_per_s = 0;  // generated
  int64_t steps = 0;
  double rows = 0;             // samples that decode in a step, on average
  double prefill_share = 0;    // of the time: what steps take longer for prompts,
  double recompute_share = 0;  // and for recomputed tokens
  double occupancy = 0;        // pages in use, on average over time
  double idle_share = 0;       // of the places, over time
  Scheduler::Stats stats;
};

// Runs the load as BatchedEngine does, with two steps in flight.
ScheduleReport SimulateSchedule(const Scheduler::Options& options, const ScheduleLoad& load,
                                const StepCostModel& cost);

// Seconds in which the load could be done at best, by an order that need not exist: nothing is
// recomputed, the cache (or max_num_seqs) is always full, and prompts are spread over all
// steps.
double IdealSeconds(const Scheduler::Options& options, const ScheduleLoad& load,
                    const StepCostModel& cost);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_ROLLOUT_SCHEDULER_SIMULATOR_H_
