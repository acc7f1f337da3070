#include "exec/ttir/run/program_clock.h"

#include <algorithm>
#include <utility>

namespace tritonrl::ttir {

uint32_t ProgramClock::TimeOf(uint32_t program) const {
  const auto next =
      std::upper_bound(runs_.begin(), runs_.end(), program,
                       [](uint32_t number, const Run& run) { return number < run.first; });
  if (next == runs_.begin()) return 0;
  const Run& run = *(next - 1);
  return program <= run.last ? run.time : 0;
}

void ProgramClock::Append(const Run& run, std::vector<Run>* runs) {
  if (!runs->empty() && runs->back().time == run.time && run.first == runs->back().last + 1) {
    runs->back().last = run.last;
  } else {
    runs->push_back(run);
  }
}

void ProgramClock::Join(const ProgramClock& other) {
  std::vector<Run> joined;
  size_t a = 0;
  size_t b = 0;
  uint64_t at = 0;  // programs before it are done
  while (a < runs_.size() || b < other.runs_.size()) {
    const Run* const left = a < runs_.size() ? &runs_[a] : nullptr;
    const Run* const right = b < other.runs_.size() ? &other.runs_[b] : nullptr;
    const uint64_t left_first = left != nullptr ? std::max<uint64_t>(left->first, at) : UINT64_MAX;
    const uint64_t right_first =
        right != nullptr ? std::max<uint64_t>(right->first, at) : UINT64_MAX;
    const uint64_t first = std::min(left_first, right_first);
    // To where the same runs hold.
    uint64_t end = UINT64_MAX;
    uint32_t time = 0;
    for (const auto& [run, begin] : {std::pair(left, left_first), std::pair(right, right_first)}) {
      if (run == nullptr) continue;
      if (begin > first) {
        end = std::min(end, begin);
      } else {
        end = std::min(end, uint64_t{run->last} + 1);
        time = std::max(time, run->time);
      }
    }
    Append({static_cast<uint32_t>(first), static_cast<uint32_t>(end - 1), time}, &joined);
    at = end;
    if (left != nullptr && left->last < at) ++a;
    if (right != nullptr && right->last < at) ++b;
  }
  runs_ = std::move(joined);
}

void ProgramClock::SetLast(uint32_t program, uint32_t time) {
  if (!runs_.empty() && runs_.back().last == program) {
    if (runs_.back().first == program) {
      runs_.pop_back();
    } else {
      --runs_.back().last;
    }
  }
  Append({program, program, time}, &runs_);
}

}  // namespace tritonrl::ttir
