#include "tools/augment_inputs/augment_summary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/endpoint/data_tool.h"

namespace tritonrl {

std::string AugmentTable(const AugmentSummary& summary) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"tasks", absl::StrCat(summary.tasks)},
      {"tasks that do not run", absl::StrCat(summary.broken)},
      {"variants proposed", absl::StrCat(summary.proposed)},
      {"variants kept", absl::StrCat(summary.kept)}};
  for (const auto& [kept, count] : summary.tasks_by_kept) {
    rows.emplace_back(absl::StrCat("tasks with ", kept), absl::StrCat(count));
  }
  rows.emplace_back("prompt tokens", absl::StrCat(summary.counts.prompt_tokens));
  rows.emplace_back("answer tokens", absl::StrCat(summary.counts.completion_tokens));
  if (summary.counts.cost > 0) {
    rows.emplace_back("cost", absl::StrFormat("$%.2f", summary.counts.cost));
  }
  std::string text = TwoColumns(rows);
  for (const auto& [reason, count] : summary.left_out) {
    absl::StrAppend(&text, "left out, ", reason, ": ", count, "\n");
  }
  for (const auto& [reason, count] : summary.originals) {
    absl::StrAppend(&text, "tasks themselves, ", reason, ": ", count, "\n");
  }
  return text;
}

std::string CompleteTasksText(const AugmentSummary& summary) {
  constexpr size_t kMostNames = 5;
  const std::vector<std::string>& without = summary.incomplete;
  std::string text =
      absl::StrCat(summary.tasks - static_cast<int64_t>(without.size()), " of ", summary.tasks,
                   " tasks have ", summary.wanted, summary.wanted == 1 ? " variant" : " variants");
  if (without.empty()) return text;
  const size_t named = std::min(without.size(), kMostNames);
  absl::StrAppend(&text,
                  "; fewer: ", absl::StrJoin(without.begin(), without.begin() + named, ", "));
  if (named < without.size()) {
    absl::StrAppend(&text, " and ", without.size() - named, " more");
  }
  return text;
}

}  // namespace tritonrl
