#include "bench/rollout/scheduler_simulator.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include "rollout/scheduler/page_allocator.h"

namespace tritonrl {
namespace {

constexpr int kInFlight = 2;

// Plays the engine: launches the scheduler's steps and ends samples at their lengths.
class ModelledEngine {
 public:
  ModelledEngine(const Scheduler::Options& options, const ScheduleLoad& load,
                 const StepCostModel& cost)
      : options_(options), load_(load), cost_(cost), scheduler_(options) {
    const auto samples = static_cast<int64_t>(load.lengths.size());
    CheckInvariant(load.group > 0 && samples % load.group == 0, "the last group is not whole");
    for (int64_t group = 0; group < samples / load.group; ++group) {
      scheduler_.Add(group, load.prompt, load.max_tokens, load.group);
    }
    ended_.resize(samples);
    left_ = samples;
  }

  ScheduleReport Run() {
    while (left_ > 0) {
      Scheduler::Step step = scheduler_.Schedule();
      const bool idle = step.slices.empty();
      CheckInvariant(!idle || !in_flight_.empty(), "nothing to do for samples that wait");
      if (!idle) Launch(std::move(step));
      if (idle || in_flight_.size() >= kInFlight) CollectOldest();
    }
    return Finished();
  }

 private:
  void Launch(Scheduler::Step step) {
    const StepShape shape = ShapeOf(step);
    const double ms = cost_.StepMs(shape);
    const double decoding =
        shape.rows > 0 ? cost_.StepMs({.rows = shape.rows, .context = shape.context}) : 0;
    const int64_t again = scheduler_.stats().recomputed_tokens - recomputed_;
    recomputed_ += again;
    if (shape.chunk_tokens > 0) {
      const double share = static_cast<double>(again) / static_cast<double>(shape.chunk_tokens);
      recompute_ms_ += share * (ms - decoding);
      chunk_ms_ += (1 - share) * (ms - decoding);
    }
    ms_ += ms;
    ++report_.steps;
    rows_ += shape.rows;
    const BlockPool& pool = scheduler_.pool();
    used_ms_ += ms * (pool.num_pages() - pool.num_free()) / pool.num_pages();
    running_ms_ += ms * scheduler_.num_running() / options_.max_num_seqs;
    in_flight_.push_back(std::move(step.draws));
  }

  void CollectOldest() {
    const std::vector<Scheduler::Draw> draws = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (const Scheduler::Draw& draw : draws) {
      const int64_t sample = draw.group * load_.group + draw.sample;
      if (ended_[sample]) continue;
      scheduler_.UpdateFromDraw(draw);
      if (draw.index + 1 < load_.lengths[sample]) continue;
      scheduler_.Finish(draw.group, draw.sample);
      ended_[sample] = true;
      --left_;
    }
  }

  ScheduleReport Finished() {
    const auto tokens = std::accumulate(load_.lengths.begin(), load_.lengths.end(), int64_t{0});
    report_.seconds = ms_ / 1000;
    report_.tokens_per_s = static_cast<double>(tokens) / report_.seconds;
    report_.rows = static_cast<double>(rows_) / static_cast<double>(report_.steps);
    report_.prefill_share = chunk_ms_ / ms_;
    report_.recompute_share = recompute_ms_ / ms_;
    report_.occupancy = used_ms_ / ms_;
    report_.idle_share = 1 - running_ms_ / ms_;
    report_.stats = scheduler_.stats();
    return report_;
  }

  const Scheduler::Options options_;
  const ScheduleLoad& load_;
  const StepCostModel& cost_;
  Scheduler scheduler_;
  std::deque<std::vector<Scheduler::Draw>> in_flight_;
  std::vector<bool> ended_;
  int64_t left_ = 0;
  int64_t rows_ = 0, recomputed_ = 0;
  double ms_ = 0, chunk_ms_ = 0, recompute_ms_ = 0, used_ms_ = 0, running_ms_ = 0;
  ScheduleReport report_;
};

}  // namespace

double StepCostModel::GemmMs(int64_t rows) const {
  const double arithmetic = static_cast<double>(rows) * token_flop / gemm_tflops / 1e9;
  if (gemm_ms.empty()) return arithmetic;
  const auto after =
      std::find_if(gemm_ms.begin(), gemm_ms.end(),
                   [rows](const std::pair<int64_t, double>& entry) { return entry.first >= rows; });
  if (after == gemm_ms.end()) return std::max(arithmetic, gemm_ms.back().second);
  if (after == gemm_ms.begin()) return std::max(arithmetic, after->second);
  const auto before = after - 1;
  const double part =
      static_cast<double>(rows - before->first) / static_cast<double>(after->first - before->first);
  return std::max(arithmetic, before->second + part * (after->second - before->second));
}

double StepCostModel::StepMs(const StepShape& shape) const {
  const double attention =
      static_cast<double>(shape.context) * token_bytes / attention_tb_per_s / 1e9;
  const double chunks = shape.pairs * pair_flop / prefill_tflops / 1e9;
  return GemmMs(shape.rows + shape.chunk_tokens) + attention + chunks +
         row_ms * static_cast<double>(shape.rows) + fixed_ms +
         (shape.chunk_tokens > 0 ? prefill_step_ms : 0);
}

StepShape ShapeOf(const Scheduler::Step& step) {
  StepShape shape;
  for (const auto& [group, sample, slice] : step.slices) {
    if (sample >= 0 && slice.count == 1 + slice.num_draft_tokens) {
      shape.rows += slice.count;
      shape.context += slice.count * slice.first + slice.count * (slice.count + 1) / 2;
      continue;
    }
    shape.chunk_tokens += slice.count;
    shape.pairs += static_cast<double>(slice.count) *
                   (static_cast<double>(slice.first) + (static_cast<double>(slice.count) + 1) / 2);
  }
  return shape;
}

ScheduleReport SimulateSchedule(const Scheduler::Options& options, const ScheduleLoad& load,
                                const StepCostModel& cost) {
  return ModelledEngine(options, load, cost).Run();
}

double IdealSeconds(const Scheduler::Options& options, const ScheduleLoad& load,
                    const StepCostModel& cost) {
  double decoded = 0, context = 0, held = 0, longest = 0;
  for (const int64_t length : load.lengths) {
    const auto tokens = static_cast<double>(length);
    decoded += tokens;
    context += tokens * (static_cast<double>(load.prompt) + (tokens + 1) / 2);
    // A group shares its prompt.
    held += tokens * (static_cast<double>(load.prompt) / load.group + (tokens + 1) / 2);
    longest = std::max(longest, tokens);
  }
  const double capacity = static_cast<double>(options.num_pages) * options.page_size;
  const double steps = std::max({held / capacity, decoded / options.max_num_seqs, longest});
  const auto prompt = static_cast<double>(load.prompt);
  const double prompts = static_cast<double>(load.lengths.size()) / load.group;
  const StepShape mean = {.rows = std::llround(decoded / steps),
                          .context = std::llround(context / steps),
                          .chunk_tokens = std::llround(prompts * prompt / steps),
                          .pairs = prompts * prompt * (prompt + 1) / 2 / steps};
  StepCostModel replayed = cost;
  replayed.prefill_step_ms = 0;  // an ideal schedule needs few chunks
  return steps * replayed.StepMs(mean) / 1000;
}

}  // namespace tritonrl
