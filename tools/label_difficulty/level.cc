#include "tools/label_difficulty/level.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tritonrl {

namespace {

// The text after "NAME:" if the line begins with it; false if not.
bool TakeField(absl::string_view line, absl::string_view name, std::string* value) {
  if (!absl::StartsWithIgnoreCase(line, name)) return false;
  line.remove_prefix(name.size());
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, ":")) return false;
  *value = std::string(absl::StripAsciiWhitespace(line));
  return true;
}

}  // namespace

absl::StatusOr<LevelAnswer> ParseLevel(const std::string& answer) {
  LevelAnswer parsed;
  const std::string plain = absl::StrReplaceAll(answer, {{"*", ""}, {"#", ""}});
  const std::vector<std::string> lines = absl::StrSplit(plain, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const absl::string_view text = absl::StripAsciiWhitespace(*line);
    std::string value;
    if (parsed.level == 0 && TakeField(text, "level", &value)) {
      absl::string_view digits = value;
      (void)absl::ConsumeSuffix(&digits, ".");
      int level = 0;
      if (absl::SimpleAtoi(digits, &level) && level >= kLowestLevel && level <= kHighestLevel) {
        parsed.level = level;
      }
    } else if (parsed.level != 0 && TakeField(text, "reason", &value)) {
      parsed.reason = value;
      return parsed;
    }
  }
  if (parsed.level == 0) {
    return absl::DataLossError("the answer has no line \"Level: N\" with N from 1 to 3");
  }
  return parsed;
}

int MajorityLevel(absl::Span<const int> votes) {
  std::vector<int> sorted(votes.begin(), votes.end());
  std::sort(sorted.begin(), sorted.end());
  const int median = sorted[(sorted.size() - 1) / 2];
  std::array<int, kHighestLevel + 1> counts = {};
  for (const int vote : sorted) ++counts[vote];
  int best = kLowestLevel;
  for (int level = kLowestLevel + 1; level <= kHighestLevel; ++level) {
    const bool nearer = std::abs(level - median) < std::abs(best - median);
    if (counts[level] > counts[best] || (counts[level] == counts[best] && nearer)) best = level;
  }
  return best;
}

std::string NameWithoutLevel(const std::string& task_id) {
  std::vector<std::string> parts = absl::StrSplit(task_id, '/');
  const auto is_level = [](absl::string_view part) {
    int number = 0;
    return absl::ConsumePrefix(&part, "level") && absl::SimpleAtoi(part, &number);
  };
  parts.erase(std::remove_if(parts.begin(), parts.end() - 1, is_level), parts.end() - 1);
  return absl::StrJoin(parts, "/");
}

}  // namespace tritonrl
