#include "tools/distill/sample.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/hash.h"
#include "base/random.h"
#include "model/chat/thought.h"

namespace tritonrl {

namespace {

constexpr absl::string_view kThinkOpen = "<think>";
constexpr absl::string_view kThinkClose = "</think>";

// Separates these draws from others with the same seed.
constexpr uint64_t kEvalStream = 0x6576616c;

}  // namespace

absl::StatusOr<TeacherPreset> FindTeacher(const std::string& name) {
  for (const TeacherPreset& preset :
       {TeacherPreset{.name = "r1", .temperature = 0.6, .top_p = 0.95},
        TeacherPreset{.name = "gpt-oss-120b", .temperature = 1.0, .top_p = 1.0}}) {
    if (preset.name == name) return preset;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--teacher=", name, " is unknown: r1 or gpt-oss-120b"));
}

std::string TaughtText(const EndpointChoice& choice) {
  const absl::string_view text = choice.text;
  const absl::string_view reasoning = absl::StripAsciiWhitespace(choice.reasoning);
  if (!reasoning.empty()) {
    return WithThought(reasoning, absl::StripLeadingAsciiWhitespace(text));
  }
  const size_t close = text.find(kThinkClose);
  if (close == absl::string_view::npos || absl::StrContains(text.substr(0, close), kThinkOpen)) {
    return choice.text;
  }
  return absl::StrCat(kThinkOpen, "\n", absl::StripLeadingAsciiWhitespace(text));
}

absl::flat_hash_set<std::string> EvalTasks(const std::vector<Task>& tasks, double share,
                                           uint64_t seed) {
  std::vector<std::pair<uint64_t, const Task*>> order;
  for (const Task& task : tasks) {
    order.emplace_back(MixKeys({seed, kEvalStream, Hash64(task.id)}), &task);
  }
  std::sort(order.begin(), order.end());
  size_t count = static_cast<size_t>(std::lround(share * static_cast<double>(tasks.size())));
  if (share > 0 && tasks.size() >= 2) count = std::max<size_t>(count, 1);
  absl::flat_hash_set<std::string> ids;
  for (size_t i = 0; i < std::min(count, order.size()); ++i) ids.insert(order[i].second->id);
  return ids;
}

}  // namespace tritonrl
