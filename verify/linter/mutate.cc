#include "verify/linter/mutate.h"

#include <time.h>

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "tasks/response.h"
#include "verify/linter/linter.h"
#include "verify/linter/testdata_reader.h"

namespace tritonrl {
namespace {

// Tokens with bars between them.
constexpr absl::string_view kTokenText =
    "(|)|[|]|{|}|:|,|=|\n|\n    |lambda x: |yield |await |*|**|@|self.|forward|ModelNew|"
    "triton.jit|tl.load(|tl.store(|x|None|while True:\n|for i in x:\n|class A(A):\n|"
    "def f(x):\n|return |import *|\"\"\"|'|f\"{x!r:{y}}\"|if x:\n|else:\n|try:\n|"
    "except:\n|match x:\n|case _:\n|global x\n|del x\n|0x|1e999|99999999999999999999|"
    "\\\n|#|;|type x = |super()|getattr(|<think>|</think>|```|```python\n|\r\n|\t|\xff|"
    "\xc3\x28|\xed\xa0\x80|\xf4\x90\x80\x80|\xef\xbb\xbf|x if y else |not |-|[x for x in ";

const std::vector<absl::string_view>& Tokens() {
  static const auto* const tokens =
      new std::vector<absl::string_view>(absl::StrSplit(kTokenText, '|'));
  return *tokens;
}

constexpr absl::string_view kNests[] = {
    "(",    "[",  "{", "-",    "not ", "x if y else ", "lambda: ", "f(",
    "[0][", "a.", "*", "x = ", "((",   "[x for x in ", "if x: "};

size_t Below(uint64_t limit, std::mt19937_64* random) {
  return limit == 0 ? 0 : static_cast<size_t>((*random)() % limit);
}

std::string Repeat(absl::string_view text, size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) absl::StrAppend(&all, text);
  return all;
}

// Where the word at or behind `position` starts and ends.
std::pair<size_t, size_t> Word(const std::string& text, size_t position) {
  auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  size_t start = position;
  while (start < text.size() && !is_word(text[start])) ++start;
  size_t end = start;
  while (end < text.size() && is_word(text[end])) ++end;
  return {start, end};
}

absl::Duration ThreadCpu() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

// What a result must hold, whatever the input.
absl::Status CheckLint(const std::string& program, const LintResult& result) {
  const int lines = static_cast<int>(std::count(program.begin(), program.end(), '\n')) + 1;
  for (const LintFinding& finding : result.findings) {
    if (finding.line < 0 || finding.line > lines)
      return absl::InternalError(absl::StrCat("a finding in line ", finding.line, " of ", lines));
    if (finding.text.empty()) return absl::InternalError("a finding without a sentence");
  }
  return absl::OkStatus();
}

// The style in which response `i` is read. Joined code blocks are left out: CheckSplit expects the
// program to be a part of the text.
ResponseStyle StyleOf(uint64_t i) {
  using CodeBlock = ResponseStyle::CodeBlock;
  constexpr CodeBlock kBlocks[] = {CodeBlock::kOnly, CodeBlock::kFirst, CodeBlock::kLast};
  return {.plan = i % 4 < 2 ? ResponseStyle::Plan::kThinking : ResponseStyle::Plan::kPlain,
          .code_block = kBlocks[i % 3]};
}

absl::Status CheckSplit(const std::string& text, const SplitResponse& split) {
  if (split.plan.size() + split.code.size() > text.size())
    return absl::InternalError("more plan and code than text");
  if (split.valid() && split.code.empty()) return absl::InternalError("valid without code");
  if (text.find(split.code) == std::string::npos || text.find(split.plan) == std::string::npos)
    return absl::InternalError("plan or code that is not in the text");
  return absl::OkStatus();
}

}  // namespace

void Mutator::ChangeStructure(std::string* text, int kind, Random* random) const {
  const size_t at = Below(text->size() + 1, random);
  // Mostly moderate, now and then beyond all limits.
  const size_t factor = Below(8, random) == 0 ? 50 : 1;
  switch (kind) {
    case 0: {  // the end of another program
      const std::string& other = corpus_[Below(corpus_.size(), random)];
      text->replace(at, std::string::npos, other, Below(other.size(), random), std::string::npos);
      return;
    }
    case 1: {  // a part of another program
      const std::string& other = corpus_[Below(corpus_.size(), random)];
      text->insert(at, other, Below(other.size(), random), Below(600, random));
      return;
    }
    case 2:  // deep nesting, closed or not
      text->insert(
          at, Repeat(kNests[Below(std::size(kNests), random)], 1 + factor * Below(60, random)));
      return;
    case 3: {  // blocks inside blocks
      std::string blocks = "\n";
      const size_t depth = 1 + Below(120, random);
      for (size_t i = 0; i < depth; ++i) absl::StrAppend(&blocks, Repeat(" ", i), "if x:\n");
      text->insert(at, blocks + Repeat(" ", depth) + "pass\n");
      return;
    }
    case 4:  // a huge line
      text->insert(at,
                   Repeat(Tokens()[Below(Tokens().size(), random)], factor * Below(400, random)));
      return;
    default: {  // a line many times
      const size_t start = text->rfind('\n', at == 0 ? 0 : at - 1);
      const size_t from = start == std::string::npos ? 0 : start;
      const std::string line = text->substr(from, text->find('\n', at) - from);
      text->insert(from, Repeat(line, 1 + factor * Below(4, random)));
    }
  }
}

// Whole lines deleted, doubled or exchanged: most of what comes out is Python still.
void Mutator::ChangeLines(std::string* text, Random* random) const {
  std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  const size_t a = Below(lines.size(), random), b = Below(lines.size(), random);
  switch (Below(4, random)) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(a));
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(b), std::string(lines[a]));
      break;
    case 2:
      std::swap(lines[a], lines[b]);
      break;
    default: {  // a line of another program
      const std::string& other = corpus_[Below(corpus_.size(), random)];
      const std::vector<std::string> others = absl::StrSplit(other, '\n');
      lines[a] = others[Below(others.size(), random)];
    }
  }
  *text = absl::StrJoin(lines, "\n");
}

void Mutator::Change(std::string* text, Random* random) const {
  const int kind = static_cast<int>(Below(24, random));
  const size_t at = Below(text->size(), random);
  if (kind < 3) {
    if (!text->empty()) (*text)[at] = static_cast<char>(Below(256, random));
  } else if (kind < 5) {
    if (!text->empty()) text->erase(at, 1 + Below(kind == 4 ? 400 : 12, random));
  } else if (kind < 7) {
    text->insert(at, std::string(Tokens()[Below(Tokens().size(), random)]));
  } else if (kind < 15) {  // one word in place of another
    const auto [from, from_end] = Word(*text, Below(text->size(), random));
    const std::string word = text->substr(from, from_end - from);
    const auto [to, to_end] = Word(*text, at);
    if (to < text->size()) text->replace(to, to_end - to, word);
  } else if (kind < 22) {
    ChangeLines(text, random);
  } else {
    ChangeStructure(text, static_cast<int>(Below(6, random)), random);
  }
}

std::string Mutator::Program(uint64_t index) const {
  std::seed_seq sequence{seed_ & 0xffffffff, seed_ >> 32, index & 0xffffffff, index >> 32};
  Random random(sequence);
  std::string text = corpus_[Below(corpus_.size(), &random)];
  const size_t changes = 1 + Below(4, &random);
  for (size_t i = 0; i < changes; ++i) Change(&text, &random);
  return text;
}

std::string Mutator::Response(uint64_t index) const {
  std::seed_seq sequence{seed_ & 0xffffffff, seed_ >> 32, index & 0xffffffff, (index >> 32) + 1};
  Random random(sequence);
  std::string text = absl::StrCat("<think>\nplan\n</think>\n```python\n",
                                  corpus_[Below(corpus_.size(), &random)], "\n```\n");
  const size_t changes = 1 + Below(4, &random);
  for (size_t i = 0; i < changes; ++i) Change(&text, &random);
  return text;
}

absl::StatusOr<std::vector<std::string>> FuzzCorpus() {
  std::vector<std::string> programs;
  for (const char* file : {"honest.py", "fresh1_honest.py", "fresh2_honest.py", "fresh3_honest.py",
                           "fresh4_honest.py", "fresh5_honest.py", "fresh6_honest.py",
                           "followed_honest.py", "certain_cheats.py", "left_cheats.py"}) {
    ASSIGN_OR_RETURN(std::vector<LintCase> cases, ReadLintCases(file));
    for (LintCase& c : cases) programs.push_back(std::move(c.source));
  }
  return programs;
}

absl::StatusOr<FuzzReport> Fuzz(const Mutator& mutator, uint64_t first, uint64_t count,
                                absl::Duration limit, absl::Time deadline) {
  FuzzReport report;
  for (uint64_t i = first; i < first + count && absl::Now() < deadline; ++i) {
    const std::string program = mutator.Program(i), response = mutator.Response(i);
    const absl::Duration start = ThreadCpu();
    const LintResult result = Lint(program);
    const SplitResponse split = ReadResponse(response, StyleOf(i), i % 2 == 0);
    const absl::Duration taken = ThreadCpu() - start;
    for (const absl::Status& status : {CheckLint(program, result), CheckSplit(response, split)}) {
      if (!status.ok())
        return absl::InternalError(absl::StrCat("input ", i, ": ", status.message()));
    }
    if (taken > limit) {
      return absl::DeadlineExceededError(
          absl::StrCat("input ", i, " took ", absl::FormatDuration(taken)));
    }
    if (taken > report.slowest) {
      report.slowest = taken;
      report.slowest_index = i;
    }
    ++report.inputs;
    ++(result.ok() ? report.accepted : report.refused);
  }
  return report;
}

}  // namespace tritonrl
