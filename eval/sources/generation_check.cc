#include "eval/sources/generation_check.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "eval/sources/task_index.h"

namespace tritonrl {
namespace {

constexpr size_t kNamesInMessage = 3;

// A generation with the position of its task.
struct Placed {
  int task = 0;
  ReadGeneration read;

  std::tuple<int, int, int> Key() const {
    return {task, read.generation.sample, read.generation.turn};
  }
};

// Finds the task of each generation. Those of other levels are left out.
absl::StatusOr<std::vector<Placed>> Place(std::vector<ReadGeneration> reads,
                                          absl::Span<const Task> tasks,
                                          std::map<int, int>* left_out) {
  const TaskIndex index(tasks);
  std::vector<Placed> placed;
  for (ReadGeneration& read : reads) {
    const std::string& name = read.generation.task;
    const int level = name.empty() ? read.level : LevelInId(name);
    if ((name.empty() || level > 0) && !index.HasLevel(level)) {
      ++(*left_out)[level];
      continue;
    }
    const absl::StatusOr<int> task =
        name.empty() ? index.ByNumber(read.level, read.problem) : index.ByName(name);
    if (!task.ok()) {
      return absl::Status(
          task.status().code(),
          absl::StrCat(read.where, ": ", task.status().message(),
                       absl::IsNotFound(task.status())
                           ? "; give the tasks that the generations were made for, or correct it"
                           : ""));
    }
    placed.push_back({*task, std::move(read)});
  }
  return placed;
}

// Sorts by task, sample and turn.
absl::Status SortAndRefuseDuplicates(absl::Span<const Task> tasks, std::vector<Placed>* placed) {
  std::stable_sort(placed->begin(), placed->end(),
                   [](const Placed& a, const Placed& b) { return a.Key() < b.Key(); });
  for (size_t i = 1; i < placed->size(); ++i) {
    const Placed& before = (*placed)[i - 1];
    const Placed& each = (*placed)[i];
    if (before.Key() != each.Key()) continue;
    const Generation& generation = each.read.generation;
    return absl::InvalidArgumentError(absl::StrCat(
        each.read.where, ": sample ", generation.sample, " of task \"", tasks[each.task].id, "\"",
        generation.turn > 0 ? absl::StrCat(", turn ", generation.turn, ",") : "",
        " was already given in ", before.read.where,
        "; give one run, or number the samples apart"));
  }
  return absl::OkStatus();
}

// The sample numbers of each task that has any.
std::map<int, std::set<int>> SamplesByTask(const std::vector<Placed>& placed) {
  std::map<int, std::set<int>> samples;
  for (const Placed& each : placed) samples[each.task].insert(each.read.generation.sample);
  return samples;
}

// The number of samples to take of each task.
absl::StatusOr<int> ChooseK(const std::string& path, const std::map<int, std::set<int>>& samples,
                            absl::Span<const Task> tasks, int k) {
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto least = std::min_element(samples.begin(), samples.end(), fewer);
  const auto most = std::max_element(samples.begin(), samples.end(), fewer);
  const int smallest = static_cast<int>(least->second.size());
  const int largest = static_cast<int>(most->second.size());
  if (k == 0 && smallest != largest) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": task \"", tasks[most->first].id, "\" has ", largest,
                     " generations, task \"", tasks[least->first].id, "\" ", smallest,
                     "; --k=", smallest, " takes the first ", smallest, " of each"));
  }
  if (k > smallest) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": --k is ", k, ", but task \"",
                                                   tasks[least->first].id, "\" has ", smallest,
                                                   " generations; it may be at most ", smallest));
  }
  return k > 0 ? k : smallest;
}

// Ids of tasks without a generation, of the levels that have one.
std::vector<std::string> TasksWithout(const std::map<int, std::set<int>>& samples,
                                      absl::Span<const Task> tasks) {
  std::set<int> levels;
  for (const auto& [task, numbers] : samples) levels.insert(tasks[task].level);
  std::vector<std::string> without;
  for (int i = 0; i < static_cast<int>(tasks.size()); ++i) {
    if (levels.count(tasks[i].level) > 0 && samples.count(i) == 0) without.push_back(tasks[i].id);
  }
  return without;
}

std::string WithoutSentence(const std::string& path, const std::vector<std::string>& without) {
  const auto end = without.begin() + std::min(without.size(), kNamesInMessage);
  return absl::StrCat(path, ": tasks without a generation: ", without.size(), " (",
                      absl::StrJoin(without.begin(), end, ", "),
                      end == without.end() ? ")" : ", ...)");
}

// Sentences about generations of levels that no task has.
std::vector<std::string> LeftOutSentences(const std::string& path,
                                          const std::map<int, int>& left_out) {
  std::vector<std::string> sentences;
  for (const auto& [level, count] : left_out) {
    sentences.push_back(absl::StrCat(path, ": ", count, " generations of level ", level,
                                     " are left out, because no task of it is given"));
  }
  return sentences;
}

}  // namespace

absl::StatusOr<LoadedGenerations> CheckGenerations(const std::string& path, ReadInput input,
                                                   absl::Span<const Task> tasks, int k) {
  LoadedGenerations loaded;
  loaded.layout = std::move(input.layout);
  std::map<int, int> left_out;
  ASSIGN_OR_RETURN(std::vector<Placed> placed,
                   Place(std::move(input.generations), tasks, &left_out));
  loaded.problems = LeftOutSentences(path, left_out);
  if (placed.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " (", loaded.layout, ") has no generation of the ", tasks.size(), " tasks given",
        loaded.problems.empty() ? "" : absl::StrCat("; ", loaded.problems.back())));
  }
  RETURN_IF_ERROR(SortAndRefuseDuplicates(tasks, &placed));
  std::map<int, std::set<int>> samples = SamplesByTask(placed);
  ASSIGN_OR_RETURN(loaded.k, ChooseK(path, samples, tasks, k));
  loaded.tasks_without = TasksWithout(samples, tasks);
  if (!loaded.tasks_without.empty()) {
    loaded.problems.push_back(WithoutSentence(path, loaded.tasks_without));
  }
  std::map<int, int> last;  // the last sample number to take, by task
  for (const auto& [task, numbers] : samples)
    last[task] = *std::next(numbers.begin(), loaded.k - 1);
  for (Placed& each : placed) {
    Generation& generation = each.read.generation;
    if (generation.sample > last[each.task]) continue;
    generation.task = tasks[each.task].id;
    loaded.generations.push_back(std::move(generation));
  }
  return loaded;
}

}  // namespace tritonrl
