#include "exec/ttir/run/marks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/observer.h"

namespace tritonrl::ttir {

namespace {

constexpr size_t kMaxMarks = std::numeric_limits<Mark>::max();

uint64_t BitsAt(const Program& program, int32_t offset, int64_t i, int bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, program.arena + offset + i * bytes, static_cast<size_t>(bytes));
  return bits;
}

// One elementwise step of a launch that checks, before it runs.
class ElementwiseMarks {
 public:
  ElementwiseMarks(const Step& step, Program& program)
      : step_(step),
        program_(program),
        rule_(step.marking.rule),
        count_(step.CountFor(program)),
        operands_(std::min(step.in.size(), size_t{3})) {}

  void Run() {
    if (rule_ == MarkRule::kDivide || rule_ == MarkRule::kShift) FindBad();
    if (program_.marks == nullptr) return;
    const MarkedElements out(program_, step_.out[0], step_.marking.out_bytes);
    bool any = mark_ != 0;
    for (size_t k = 0; k < operands_ && !any; ++k) {
      any = Operand(k).Any(Bytes(k) == 0 ? 1 : count_);
    }
    if (!any) return out.Clear(count_);
    for (int64_t i = 0; i < count_; ++i) out.Set(i, MarkOf(i));
  }

 private:
  int Bytes(size_t k) const { return step_.marking.in_bytes[k]; }
  MarkedElements Operand(size_t k) const { return {program_, step_.in[k], Bytes(k)}; }
  Mark OperandMark(size_t k, int64_t i) const { return Operand(k)[i]; }
  uint64_t Value(size_t k, int64_t i) const {
    const int bytes = Bytes(k) == 0 ? step_.marking.out_bytes : Bytes(k);
    return BitsAt(program_, step_.in[k], Bytes(k) == 0 ? 0 : i, bytes);
  }

  bool IsBad(int64_t i) const {
    const uint64_t value = Value(1, i);
    return rule_ == MarkRule::kDivide ? value == 0 : value >= step_.marking.width;
  }

  // A second operand that is itself bad makes no new mark.
  void FindBad() {
    const int64_t values = Bytes(1) == 0 ? 1 : count_;
    int64_t bad = 0;
    int64_t first = -1;
    for (int64_t i = 0; i < values; ++i) {
      if (IsBad(i) && OperandMark(1, i) == 0 && bad++ == 0) first = i;
    }
    if (bad == 0) return;
    const bool divides = rule_ == MarkRule::kDivide;
    const int width = step_.marking.width;
    const int shift = 64 - width;
    const std::string what =
        divides ? "an integer is divided by 0"
                : absl::StrCat("a number of ", width, " bits is shifted by ",
                               static_cast<int64_t>(Value(1, first) << shift) >> shift, " places");
    mark_ = program_.check->marks().Of(
        {divides ? Finding::Kind::kDivisionByZero : Finding::Kind::kWideShift, &step_, first,
         absl::StrCat(what, ": ", bad, " of ", values, " elements, first element ", first)},
        program_);
  }

  // Whether operand `k`, which is good, decides alone.
  bool Decides(size_t k, int64_t i) const {
    if (OperandMark(k, i) != 0) return false;
    const uint64_t value = Value(k, i);
    if (rule_ != MarkRule::kOr) return value == 0;
    const int width = step_.marking.width;
    return value == (width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1);
  }

  Mark MarkOf(int64_t i) const {
    Marks& marks = program_.check->marks();
    switch (rule_) {
      case MarkRule::kSelect: {
        const bool first = program_.At<uint8_t>(step_.in[0])[Bytes(0) == 0 ? 0 : i] != 0;
        return marks.Join(OperandMark(0, i), OperandMark(first ? 1 : 2, i));
      }
      case MarkRule::kAnd:
      case MarkRule::kOr:
      case MarkRule::kMultiply:
        if (Decides(0, i) || Decides(1, i)) return 0;
        break;
      default:
        break;
    }
    Mark mark = 0;
    for (size_t k = 0; k < operands_; ++k) mark = marks.Join(mark, OperandMark(k, i));
    const bool makes = mark_ != 0 && OperandMark(1, i) == 0 && IsBad(i);
    return makes ? marks.Join(mark, mark_) : mark;
  }

  const Step& step_;
  Program& program_;
  MarkRule rule_;
  int64_t count_;
  size_t operands_;
  Mark mark_ = 0;  // of what the step itself makes bad
};

// What happens to marks when the step runs; before it does, as it may write over its operands.
void MarkResult(const Step& step, Program& program) {
  switch (step.marking.rule) {
    case MarkRule::kOwn:
      return;
    case MarkRule::kClear:
      MarkedElements(program, step.out[0], step.marking.out_bytes).Clear(step.CountFor(program));
      return;
    case MarkRule::kSame: {
      if (program.marks == nullptr) return;
      std::byte* const arena = std::exchange(program.arena, program.marks);
      step.run(step, program);
      program.arena = arena;
      return;
    }
    default:
      ElementwiseMarks(step, program).Run();
  }
}

}  // namespace

Mark Marks::Of(MarkOrigin origin, Program& program) {
  if (marks_ == nullptr) {
    marks_.reset(static_cast<std::byte*>(std::calloc(static_cast<size_t>(arena_bytes_), 1)));
    if (marks_ == nullptr) {
      complete_ = false;
      return 0;
    }
    program.marks = marks_.get();
  }
  size_t index = 0;
  while (index < origins_.size() &&
         (origins_[index].step != origin.step || origins_[index].kind != origin.kind)) {
    ++index;
  }
  if (index == kMaxMarks) {
    complete_ = false;
    return 0;
  }
  if (index == origins_.size()) origins_.emplace_back();
  origins_[index] = std::move(origin);
  return MarkOf({static_cast<uint8_t>(index)});
}

Mark Marks::MarkOf(const Parts& parts) {
  const auto found = std::find(parts_.begin(), parts_.end(), parts);
  if (found != parts_.end()) return static_cast<Mark>(found - parts_.begin() + 1);
  if (parts_.size() == kMaxMarks) {
    complete_ = false;
    return 0;
  }
  parts_.push_back(parts);
  return static_cast<Mark>(parts_.size());
}

Mark Marks::JoinOther(Mark a, Mark b) {
  const uint32_t key = uint32_t{std::min(a, b)} << 8 | std::max(a, b);
  const auto known = joined_.find(key);
  if (known != joined_.end()) return known->second;
  const Parts& left = parts_[a - 1u];
  const Parts& right = parts_[b - 1u];
  Parts both;
  std::set_union(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
  const Mark mark = MarkOf(both);
  return joined_[key] = mark != 0 ? mark : a;
}

std::vector<const MarkOrigin*> Marks::OriginsOf(Mark mark) const {
  std::vector<const MarkOrigin*> origins;
  if (mark == 0) return origins;
  for (const uint8_t index : parts_[mark - 1u]) origins.push_back(&origins_[index]);
  return origins;
}

void MarkedElements::Set(int64_t i, Mark mark) const {
  if (marks_ != nullptr) std::memset(marks_ + i * bytes_, mark, static_cast<size_t>(bytes_));
}

bool MarkedElements::Any(int64_t count) const {
  if (marks_ == nullptr || count == 0) return false;
  const auto bytes = static_cast<size_t>(std::max<int64_t>(count * bytes_, 1));
  return marks_[0] != 0 || std::memcmp(marks_, marks_ + 1, bytes - 1) != 0;
}

void MarkedElements::Clear(int64_t count) const {
  if (marks_ != nullptr) std::memset(marks_, 0, static_cast<size_t>(count * bytes_));
}

void ReportDecision(const Step& step, Program& program, int32_t offset) {
  const Mark mark = MarkedElements(program, offset, 1)[0];
  if (mark != 0) program.check->ReportMark(step, mark, "what runs depends on it");
}

bool RunCheckedCode(const Code& code, Program& program) {
  if (program.counting != nullptr) AddWork(code, program);
  program.steps_left -= static_cast<int64_t>(code.steps.size());
  for (const Step& step : code.steps) {
    program.work += step.cost;
    if (program.work > kWorkPerQuestion && !AskForTime(step, program)) return false;
    if (step.marking.crosses_threads) program.check->WaitForThreads();
    MarkResult(step, program);
    if (!step.run(step, program)) return false;
  }
  return true;
}

}  // namespace tritonrl::ttir
