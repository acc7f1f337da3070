// Kernels with planted defects, each of which is found at its line, and correct launches, in which
// nothing is found. testing/seeded holds the kernels and what testing/make_seeded.py made of them.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr char kSeededFolder[] = "exec/ttir/run/testing/seeded/";
constexpr char kLaunches[] = "exec/ttir/run/testing/launch_counts.txt";

// A part of a text that make_seeded.py wrote.
struct Part {
  std::string name;
  std::string kind;
  int line = 0;
  std::vector<std::string> bad;
  std::vector<std::string> good;
  std::string text;
};

std::string ReadRunfile(const std::string& path) {
  const auto found = Runfile(path);
  EXPECT_TRUE(found.ok()) << found.status();
  const auto text = found.ok() ? ReadFile(*found) : found;
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

std::vector<Part> ReadParts(const std::string& file) {
  std::vector<Part> parts;
  bool in_text = true;
  for (absl::string_view line : absl::StrSplit(ReadRunfile(file), '\n')) {
    if (!absl::ConsumePrefix(&line, "//// ")) {
      in_text = true;
      if (!parts.empty()) absl::StrAppend(&parts.back().text, line, "\n");
    } else if (in_text) {
      in_text = false;
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      Part& part = parts.emplace_back();
      part.name = words[0];
      part.kind = words[1];
      EXPECT_TRUE(absl::SimpleAtoi(words[2], &part.line));
    } else if (absl::ConsumePrefix(&line, "bad ")) {
      parts.back().bad.emplace_back(line);
    } else if (absl::ConsumePrefix(&line, "good ")) {
      parts.back().good.emplace_back(line);
    }
  }
  return parts;
}

int64_t NumberOf(absl::string_view text) {
  int64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

// The arguments of a launch and their memory.
class Arguments {
 public:
  // As seeded_case.py and launch_counts.txt describe it.
  void Add(absl::string_view text) {
    const char kind = text[0];
    text.remove_prefix(1);
    if (kind == 'i') return list_.push_back(KernelArgument::Integer(NumberOf(text)));
    if (kind == 'f') {
      double number = 0;
      EXPECT_TRUE(absl::SimpleAtod(text, &number)) << text;
      return list_.push_back(KernelArgument::Float(number));
    }
    const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::ByAnyChar("%@+"));
    const int64_t bytes = NumberOf(parts[0]) * (kind == 'm' ? 4 : 1);
    Memory& memory = memories_.emplace_back();
    memory.words.resize(static_cast<size_t>(bytes / 64 + 1));
    memory.shadow.resize(static_cast<size_t>(bytes), 1);
    char* const data = memory.words[0].bytes;
    KernelArgument argument = KernelArgument::Tensor(data, bytes);
    if (kind == 'm') {
      const int64_t modulus = NumberOf(parts[1]);
      for (int64_t i = 0; i < bytes / 4; ++i) {
        const auto value = static_cast<int32_t>(i % modulus);
        std::memcpy(data + 4 * i, &value, sizeof(value));
      }
    } else if (kind == 'u') {
      std::fill(memory.shadow.begin() + NumberOf(parts[1]), memory.shadow.end(), 0);
    } else if (kind == 'v') {
      argument.data = data + NumberOf(parts[1]);
      argument.view_bytes = NumberOf(parts[2]);
    }
    argument.shadow = memory.shadow.data();
    list_.push_back(argument);
  }
  const std::vector<KernelArgument>& list() const { return list_; }

 private:
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  struct Memory {
    std::vector<Line> words;
    std::vector<uint8_t> shadow;
  };
  std::deque<Memory> memories_;
  std::vector<KernelArgument> list_;
};

absl::Status CheckLaunch(const Kernel& kernel, absl::string_view launch, LaunchFindings* findings) {
  const std::vector<absl::string_view> words = absl::StrSplit(launch, ' ');
  const std::vector<absl::string_view> grid = absl::StrSplit(words[0], ',');
  Arguments arguments;
  for (size_t i = 1; i < words.size(); ++i) arguments.Add(words[i]);
  LaunchOptions options;
  options.check = findings;
  return kernel.Launch(
      {static_cast<int32_t>(NumberOf(grid[0])), static_cast<int32_t>(NumberOf(grid[1])),
       static_cast<int32_t>(NumberOf(grid[2]))},
      arguments.list(), options);
}

Finding::Kind KindOf(const std::string& kind) {
  const std::map<std::string, Finding::Kind> kinds = {
      {"race", Finding::Kind::kRace},
      {"view", Finding::Kind::kOutsideView},
      {"unwritten", Finding::Kind::kUnwrittenRead},
      {"division", Finding::Kind::kDivisionByZero},
      {"shift", Finding::Kind::kWideShift},
      {"divisibility", Finding::Kind::kDivisibility},
      {"descriptor", Finding::Kind::kDescriptor},
  };
  return kinds.at(kind);
}

// Whether the defect, and nothing of another kind, is found at its line.
void ExpectFound(const Kernel& kernel, const Part& part, const std::string& launch) {
  SCOPED_TRACE(absl::StrCat(part.name, " ", launch));
  const std::string place = absl::StrCat("line ", part.line, " of ", kSeededFolder);
  LaunchFindings findings;
  const absl::Status status = CheckLaunch(kernel, launch, &findings);
  if (part.kind == "bounds") {
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), place)) << status;
    EXPECT_TRUE(findings.list.empty()) << findings.list[0].text;
    return;
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(findings.complete);
  bool found = false;
  for (const Finding& finding : findings.list) {
    EXPECT_EQ(finding.kind, KindOf(part.kind)) << finding.place << ": " << finding.text;
    found = found || absl::StartsWith(finding.place, place);
  }
  EXPECT_TRUE(found) << findings.list.size() << " findings"
                     << (findings.list.empty() ? "" : ", first at " + findings.list[0].place);
}

void ExpectNothing(const Kernel& kernel, const std::string& name, absl::string_view launch) {
  LaunchFindings findings;
  const absl::Status status = CheckLaunch(kernel, launch, &findings);
  EXPECT_TRUE(status.ok()) << name << " " << launch << ": " << status;
  EXPECT_TRUE(findings.complete) << name << " " << launch;
  for (const Finding& finding : findings.list) {
    ADD_FAILURE() << name << " " << launch << ": " << finding.place << ": " << finding.text;
  }
}

TEST(SeededTest, DefectsAreFoundAndCorrectLaunchesHaveNoFindings) {
  std::map<std::string, int> planted;
  int defects = 0;
  int correct = 0;
  for (const std::string name : {"bounds", "program_race", "thread_race", "value", "hardware"}) {
    for (const Part& part : ReadParts(absl::StrCat(kSeededFolder, name, "_kernels.ttir"))) {
      const auto kernel = CompileText(part.text);
      ASSERT_NE(kernel, nullptr) << part.name;
      for (const std::string& launch : part.bad) {
        ExpectFound(*kernel, part, launch);
        ++planted[part.kind];
        ++defects;
      }
      for (const std::string& launch : part.good) {
        ExpectNothing(*kernel, part.name, launch);
        ++correct;
      }
    }
  }
  // Kernels for single operations, whose programs or threads do race.
  const std::set<std::string> racing = {
      "arg_reductions",  "scans",       "mapped",      "atomics",
      "histogram",       "dots",        "mathematics", "rows_and_columns",
      "nested_loops",    "while_loops", "branches",    "early_return",
      "several_returns", "calls",       "persistent",  "scalars"};
  for (const absl::string_view line : absl::StrSplit(ReadRunfile(kLaunches), '\n')) {
    const std::vector<absl::string_view> halves = absl::StrSplit(line, " = ");
    const std::pair<std::string, std::string> launch =
        absl::StrSplit(halves[0], absl::MaxSplits(' ', 1));
    if (launch.second.empty() || racing.contains(launch.first)) continue;
    const auto kernel = CompileText(CorpusTextOf(launch.first + ".ttir"));
    ASSERT_NE(kernel, nullptr) << launch.first;
    ExpectNothing(*kernel, launch.first, launch.second);
    ++correct;
  }
  for (const auto& [kind, count] : planted) std::printf("%d planted: %s\n", count, kind.c_str());
  std::printf("%d defects, %d correct launches\n", defects, correct);
  EXPECT_GE(defects, 60);
  EXPECT_GE(correct, 200);
}

}  // namespace
}  // namespace tritonrl::ttir
