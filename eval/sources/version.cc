#include "eval/sources/version.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/hash.h"
#include "eval/sources/known_tasks.h"
#include "eval/sources/task_index.h"

namespace tritonrl {
namespace {

// A piece of a problem's text, and what it means. Variants with other shapes keep such pieces.
struct Mark {
  int level, problem;
  absl::string_view text;
  absl::string_view meaning;
};

constexpr Mark kMarks[] = {
    {1, 12, "return torch.diag(A) @ B", "multiplies two matrices, one of them diagonal (v0, v0.1)"},
    {1, 12, "return A.unsqueeze(1) * B",
     "scales rows without a matrix product (main from 2026-01-19 on)"},
    {1, 92, "dim=self.dim)[:-1]", "drops the last row of the batch (v0, v0.1)"},
    {1, 92, "x.narrow(", "is the exclusive sum (main from 2025-12-24 on)"},
    {1, 97, "cosine_similarity", "is the cosine similarity loss (v0)"},
    {1, 97, "device='cuda'", "is attention in half precision, inputs on the GPU (v0.1)"},
    {1, 97, "scaled_dot_product_attention",
     "is attention in single precision (main from 2026-01-02 on)"},
    {2, 23, "x.mean(dim=[1, 2, 3, 4])", "is near zero for all inputs (v0, v0.1 and main)"},
    {2, 80, "x - x.mean(dim=1, keepdim=True)", "is zero for all inputs (v0, v0.1 and main)"},
    {2, 83, "torch.min(x, torch.tensor(min_value", "is zero for all inputs (v0, v0.1 and main)"},
};

struct Counts {
  int v0 = 0, v0_1 = 0, main = 0, unknown = 0, other = 0;
  std::string latest;       // date of the latest change of main that is there
  std::string missing;      // date of the earliest change that is not; "" if none is missing
  std::string unknown_one;  // id of a task with none of the texts

  int known() const { return v0 + v0_1 + main; }
};

Counts CountTexts(absl::Span<const Task> tasks) {
  Counts counts;
  for (const Task& task : tasks) {
    const KnownTask known =
        FindKnownTask(task.level, ProblemNumber(task.id), HashOfTask(task.source));
    switch (known.release) {
      case KnownTask::Release::kV0:
        ++counts.v0;
        break;
      case KnownTask::Release::kV0_1:
        ++counts.v0_1;
        if (known.date.empty()) break;
        if (counts.missing.empty() || known.date < counts.missing) counts.missing = known.date;
        break;
      case KnownTask::Release::kMain:
        ++counts.main;
        counts.latest = std::max(counts.latest, known.date);
        break;
      case KnownTask::Release::kOther:
        ++counts.other;
        break;
      case KnownTask::Release::kUnknown:
        if (counts.unknown++ == 0) counts.unknown_one = task.id;
        break;
    }
  }
  return counts;
}

std::string NameOf(const Counts& counts, bool has_marks) {
  std::string name;
  if (counts.known() == 0) return has_marks ? "KernelBench, every task changed" : "unknown";
  if (counts.v0 > 0 && counts.v0_1 + counts.main > 0) {
    name = "mixture of KernelBench v0 and later versions";
  } else if (counts.v0 > 0) {
    name = "KernelBench v0";
  } else if (counts.main > 0) {
    name = absl::StrCat("KernelBench main from ", counts.latest,
                        counts.missing.empty() ? " on" : absl::StrCat(" to ", counts.missing));
  } else {
    name = counts.missing.empty() ? "KernelBench v0.1 or main" : "KernelBench v0.1";
  }
  if (counts.unknown == 0) return name;
  return absl::StrCat(name, ", ", counts.unknown, " of ", counts.known() + counts.unknown,
                      " tasks changed");
}

// Sentences about the problems with a mark; the first task of each problem counts.
std::vector<std::string> MarkSentences(absl::Span<const Task> tasks) {
  std::vector<std::string> sentences;
  std::set<std::pair<int, int>> seen;
  for (const Mark& mark : kMarks) {
    for (const Task& task : tasks) {
      if (task.level != mark.level || ProblemNumber(task.id) != mark.problem) continue;
      if (!absl::StrContains(task.source, mark.text)) continue;
      if (!seen.insert({mark.level, mark.problem}).second) continue;
      sentences.push_back(absl::StrCat("level ", mark.level, ", problem ", mark.problem, " (",
                                       task.id, ") ", mark.meaning));
    }
  }
  return sentences;
}

// How get_inputs() draws: v0 by normal distributions, later versions by uniform ones.
std::string InputSentence(absl::Span<const Task> tasks) {
  int normal = 0, uniform = 0;
  for (const Task& task : tasks) {
    const absl::string_view source = task.source;
    const size_t start = source.find("def get_inputs");
    if (start == absl::string_view::npos) continue;
    normal += absl::StrContains(source.substr(start), "torch.randn(") ? 1 : 0;
    uniform += absl::StrContains(source.substr(start), "torch.rand(") ? 1 : 0;
  }
  return absl::StrCat("inputs: ", normal, " tasks draw from torch.randn (all of v0), ", uniform,
                      " from torch.rand (all of the later versions)");
}

std::string DigestOf(absl::Span<const Task> tasks) {
  std::set<std::string> lines;
  for (const Task& task : tasks) {
    lines.insert(absl::StrCat(task.id, " ", Sha256Hex(task.source), "\n"));
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return Sha256Hex(text);
}

}  // namespace

KernelBenchVersion DetectVersion(absl::Span<const Task> tasks) {
  const Counts counts = CountTexts(tasks);
  KernelBenchVersion version;
  std::vector<std::string> marks = MarkSentences(tasks);
  version.name = NameOf(counts, !marks.empty());
  version.digest = DigestOf(tasks);
  version.evidence.push_back(
      absl::StrCat(counts.v0, " of ", tasks.size(), " tasks have the text of v0, ", counts.v0_1,
                   " that of v0.1, ", counts.main, " that of main after it"));
  if (counts.unknown > 0) {
    version.evidence.push_back(absl::StrCat(
        counts.unknown, " tasks have none of these texts, such as \"", counts.unknown_one, "\""));
  }
  if (counts.other > 0) {
    version.evidence.push_back(
        absl::StrCat(counts.other, " tasks have other levels or numbers and are not compared"));
  }
  version.evidence.push_back(InputSentence(tasks));
  for (std::string& mark : marks) version.evidence.push_back(std::move(mark));
  return version;
}

}  // namespace tritonrl
