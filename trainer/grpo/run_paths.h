// Paths of the files of a GRPO-HRD run in addition to those of base/run_dir.h.
#ifndef TRITONRL_TRAINER_GRPO_RUN_PATHS_H_
#define TRITONRL_TRAINER_GRPO_RUN_PATHS_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tritonrl {

struct RunPaths {
  std::string dir;

  // All verdicts of a rank, appended as they arrive; a resumed run does not verify these samples
  // again.
  std::string VerdictJournal(int rank) const {
    return absl::StrCat(dir, "/journal/verdicts_", rank, ".jsonl");
  }
  std::string InfraErrorJournal(int rank) const {
    return absl::StrCat(dir, "/journal/infra_errors_", rank, ".jsonl");
  }
  // Results of the preflight of tasks. They depend on each task's source and the rules alone, so
  // they outlive a change of the configuration.
  std::string PreflightJournal() const { return dir + "/preflight.jsonl"; }
  std::string JournalDir() const { return dir + "/journal"; }
  // One JSON object per evaluation.
  std::string Evaluations() const { return dir + "/evaluations.jsonl"; }
  std::string StepSamples(int64_t step) const {
    return absl::StrFormat("%s/samples/step_%06d.jsonl", dir, step);
  }
  std::string EvaluationSamples(int64_t step, bool greedy) const {
    return absl::StrFormat("%s/samples/%s_%06d.jsonl", dir, greedy ? "greedy" : "eval", step);
  }
  // The trained policy, in Hugging Face layout.
  std::string FinalModel() const { return dir + "/model"; }
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_RUN_PATHS_H_
