#include "trainer/grpo/evaluation_log.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/metrics_log.h"
#include "base/status.h"

namespace tritonrl {

absl::Status EvaluationLog::Open(int64_t done) {
  results_.clear();
  const std::string path = paths_.Evaluations();
  RETURN_IF_ERROR(TruncateJsonLines(path, "step", done == 0 ? 0 : done + 1));
  if (!FileExists(path)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    ASSIGN_OR_RETURN(EvaluationResult result, EvaluationFromJson(line));
    results_[result.step] = std::move(result);
  }
  return absl::OkStatus();
}

const EvaluationResult* EvaluationLog::Find(int64_t step) const {
  auto it = results_.find(step);
  return it == results_.end() ? nullptr : &it->second;
}

absl::Status EvaluationLog::Add(const Evaluator::Finished& finished) {
  const EvaluationResult& result = finished.result;
  for (bool greedy : {false, true}) {
    const std::vector<SampleRecord>& records = greedy ? finished.greedy : finished.sampled;
    if (records.empty()) continue;
    RETURN_IF_ERROR(
        WriteFileAtomic(paths_.EvaluationSamples(result.step, greedy), RecordsToText(records)));
  }
  RETURN_IF_ERROR(AppendToFile(paths_.Evaluations(),
                               MetricsLine(result.step, EvaluationFields(result)) + "\n"));
  results_[result.step] = result;
  return absl::OkStatus();
}

std::string EvaluationLine(const EvaluationResult& result) {
  std::string line = absl::StrCat("Held-out tasks after ", result.step, " steps:");
  auto mean = result.pass_at.find(1);
  if (mean != result.pass_at.end()) {
    absl::StrAppendFormat(&line, " valid %.1f%% compiled %.1f%% correct %.1f%% fused %.1f%%",
                          100 * mean->second.valid, 100 * mean->second.compiled,
                          100 * mean->second.correct, 100 * result.fused_share);
    absl::StrAppendFormat(&line, " speedup %.2fx%s", mean->second.mean_speedup,
                          mean->second.modelled ? " (modelled)" : "");
  }
  if (result.has_greedy) {
    absl::StrAppendFormat(&line, " greedy correct %.1f%%", 100 * result.greedy.correct);
  }
  absl::StrAppendFormat(&line, " (%.0fs)", result.seconds);
  return line;
}

}  // namespace tritonrl
