// Evaluations: sampled and greedy responses to a fixed set of tasks, judged and gathered.
#ifndef TRITONRL_TRAINER_GRPO_EVALUATOR_H_
#define TRITONRL_TRAINER_GRPO_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/data_parallel.h"
#include "trainer/grpo/evaluation.h"
#include "trainer/grpo/sample_record.h"
#include "trainer/grpo/sample_runner.h"

namespace tritonrl {

struct EvaluatorOptions {
  int samples = 10;           // for each task; 0: none
  SamplingSettings sampling;  // of these samples
  bool greedy = true;         // also one greedy response for each task
  uint64_t seed = 0;
  // Numbers of the tasks that this rank generates for; none: r, r + size, ... on rank r.
  std::optional<std::vector<int>> share;
};

class Evaluator {
 public:
  // `runner` and `ranks` must outlive it.
  Evaluator(EvaluatorOptions options, std::vector<std::shared_ptr<const PreparedTask>> tasks,
            SampleRunner* runner, DataParallel* ranks);

  // One evaluation under way.
  struct Pending {
    int64_t step = 0;
    std::shared_ptr<SampleBatch> sampled;
    std::shared_ptr<SampleBatch> greedy;
    absl::Time started;

    int wanted() const { return sampled->wanted + greedy->wanted; }
    int generated() const { return sampled->generated + greedy->generated; }
    int judged() const { return sampled->judged + greedy->judged; }
  };

  // Submits all of it to the engine.
  absl::StatusOr<Pending> Start(int64_t step);
  absl::Status WaitGenerated(const Pending& pending, absl::Time deadline,
                             const std::function<bool()>& keep_going);
  absl::Status WaitJudged(const Pending& pending, absl::Time deadline,
                          const std::function<bool()>& keep_going);

  struct Finished {
    EvaluationResult result;
    std::vector<SampleRecord> sampled;
    std::vector<SampleRecord> greedy;
  };
  // After WaitJudged, on all ranks: everything, on every rank.
  absl::StatusOr<Finished> Gather(const Pending& pending);

 private:
  std::shared_ptr<SampleBatch> MakeBatch(int64_t step, bool greedy) const;

  EvaluatorOptions options_;
  std::vector<std::shared_ptr<const PreparedTask>> tasks_;
  SampleRunner* runner_;
  DataParallel* ranks_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_EVALUATOR_H_
