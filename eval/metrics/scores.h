// The scores of an evaluation's samples, and what each task contributes to a metric: the values of
// which all figures of tables are means.
#ifndef TRITONRL_EVAL_METRICS_SCORES_H_
#define TRITONRL_EVAL_METRICS_SCORES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "verify/verdict/metrics.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// How far a sample came, in the order of the layers.
enum class FailureKind {
  kNoVerdict,      // infrastructure error
  kSyntax,         // no program with a Triton kernel
  kFunctionality,  // the kernels do not do the work; the judge's objection counts as this
  kCompile,
  kIncorrect,  // compiles, but fails or gives other results than the reference
  kCorrect,
};

FailureKind FailureOf(const Verdict& verdict);

// What one sample contributes to an evaluation.
struct ScoredSample {
  std::string task;  // id; of a variant with other shapes "level1/19_ReLU_v2"
  int level = 0;     // 0: without a level
  int sample = 0;    // number among the samples of the task
  int turn = 0;      // number in the sample's conversation
  SampleScore score;
  // The score without functionality checks; nullopt if there is no verdict of this kind.
  std::optional<SampleScore> open;
  FailureKind failure = FailureKind::kNoVerdict;
  bool modelled = false;  // The speedup comes from a model.
};

// The sample of a verdict: task, score, failure and modelled. The caller sets the other fields.
ScoredSample ScoreSample(const Verdict& verdict);

// One sample for each conversation, which stands for the best of its first `turns` turns: it passes
// what any of them passes, and has the highest speedup. A turn without a verdict adds nothing; as
// the later turns do not exist then, the result is a lower bound. The order is by task and sample.
// The result of several turns is not pass@k: a later turn has seen the verdict of the one before.
std::vector<ScoredSample> BestOfTurns(absl::Span<const ScoredSample> samples, int turns);

enum class Metric {
  kValid,
  kCompiled,
  kCorrect,
  kFast1,  // correct, and speedup_low > 1
  kFast2,
  kMeanSpeedup,   // 0 unless correct; not clipped
  kOpenCompiled,  // of the scores without functionality checks
  kOpenCorrect,
};

enum class Estimator {
  kMaxOverFirst,  // the paper's: the maximum over the first k samples of a task
  kUnbiased,      // the expected maximum over k samples drawn without replacement from all of them
};

enum class Shapes {
  kApart,  // Each variant is a task.
  // Variants "NAME_v1", "NAME_v2", ... and "NAME", if it is there, are one task, whose value is the
  // minimum over them: for indicators, all must pass. kUnbiased is the expected minimum if the
  // samples of each variant are drawn apart, which is the product of the chances of indicators.
  kAllMustPass,
};

// One value for each task.
struct Series {
  std::vector<std::string> tasks;  // sorted
  std::vector<double> values;      // indicators and chances in [0, 1], or speedups
  int lost = 0;                    // samples without a verdict
  int short_tasks = 0;  // tasks with a variant that has fewer than k samples with a verdict
  // Tasks with a variant that has no verdict at all: they have no value. Sorted.
  std::vector<std::string> left_out;
};

// Returns the value of each task. Samples without a verdict do not count as failures: the first k
// samples are the first k that have one, by number, and a task with fewer has the maximum over
// those that it has (`short_tasks`). InvalidArgument, naming the task and both numbers, if a task
// has fewer than k samples with and without a verdict; if it has a sample number twice; if k < 1;
// or if the metric is an open one and no sample has a score of that kind.
absl::StatusOr<Series> PerTask(absl::Span<const ScoredSample> samples, Metric metric,
                               Estimator estimator, int k, Shapes shapes);

// The task without the ending "_v1", "_v2", ... of its variant.
absl::string_view OriginOf(absl::string_view task);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_METRICS_SCORES_H_
