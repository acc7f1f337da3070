#include "eval/sources/task_index.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxName = 200;  // bytes of an unknown name that are compared and shown

// The number of characters to insert, remove or replace (Levenshtein).
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

int ProblemNumber(absl::string_view task_id) {
  const std::string name = BaseName(std::string(task_id));
  const size_t digits = std::min(name.find('_'), name.size());
  int number = 0;
  const absl::string_view text = absl::string_view(name).substr(0, digits);
  if (text.empty() || !absl::ascii_isdigit(text[0])) return 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

int LevelInId(absl::string_view task_id) {
  int level = 0;
  for (absl::string_view part : absl::StrSplit(task_id, '/')) {
    int number = 0;
    if (absl::ConsumePrefix(&part, "level") && absl::SimpleAtoi(part, &number) && number > 0) {
      level = number;
    }
  }
  return level;
}

TaskIndex::TaskIndex(absl::Span<const Task> tasks) : tasks_(tasks) {
  for (int i = 0; i < static_cast<int>(tasks.size()); ++i) {
    names_[tasks[i].id] = i;
    levels_.insert(tasks[i].level);
    numbers_[{tasks[i].level, ProblemNumber(tasks[i].id)}].push_back(i);
  }
}

absl::StatusOr<int> TaskIndex::ByName(const std::string& name) const {
  const auto found = names_.find(name);
  if (found != names_.end()) return found->second;
  const std::string shown = name.substr(0, kMaxName);
  std::string nearest;
  int distance = std::numeric_limits<int>::max();
  for (const auto& [known, index] : names_) {
    const int of_known = EditDistance(shown, known.substr(0, kMaxName));
    if (of_known >= distance) continue;
    distance = of_known;
    nearest = known;
  }
  return absl::NotFoundError(absl::StrCat("task \"", shown, "\" is not among the ", tasks_.size(),
                                          " tasks given; the nearest is \"", nearest, "\""));
}

absl::StatusOr<int> TaskIndex::ByNumber(int level, int problem) const {
  const auto found = numbers_.find({level, problem});
  if (found != numbers_.end() && found->second.size() == 1) return found->second[0];
  const std::string numbers = absl::StrCat("problem ", problem, " of level ", level);
  if (found != numbers_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(numbers, " may be any of ", found->second.size(), " tasks, such as \"",
                     tasks_[found->second[0]].id, "\" and \"", tasks_[found->second[1]].id,
                     "\"; give tasks with one file for each number, or JSON Lines that name them"));
  }
  std::string nearest;
  int distance = std::numeric_limits<int>::max();
  for (const auto& [place, indices] : numbers_) {
    if (place.first != level || std::abs(place.second - problem) >= distance) continue;
    distance = std::abs(place.second - problem);
    nearest = tasks_[indices[0]].id;
  }
  return absl::NotFoundError(absl::StrCat(
      numbers, " is not among the ", tasks_.size(), " tasks given",
      nearest.empty() ? "" : absl::StrCat("; the nearest number is that of \"", nearest, "\"")));
}

}  // namespace tritonrl
