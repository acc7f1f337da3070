#include "exec/ttir/run/race_detector.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tritonrl::ttir {

namespace {

constexpr size_t kMaxRuns = 4096;                 // of a clock
constexpr size_t kMaxKeptRuns = size_t{1} << 24;  // 200 MB
constexpr uint32_t kLastTime = std::numeric_limits<uint16_t>::max();

}  // namespace

void RaceDetector::BeginProgram(uint32_t program) {
  program_ = program;
  time_ = 1;
  clock_.Clear();
  joined_.clear();
}

bool RaceDetector::IsOrdered(const Epoch& epoch) const {
  if (epoch.program == 0 || epoch.program == program_ + 1) return true;
  return clock_.TimeOf(epoch.program - 1) >= epoch.time;
}

RaceDetector::Epoch RaceDetector::Now(uint16_t site) const {
  return {program_ + 1, static_cast<uint16_t>(std::min(time_, kLastTime)), site};
}

std::optional<RacingAccess> RaceDetector::Read(int64_t address, int bytes, uint16_t site) {
  using Kind = RacingAccess::Kind;
  std::optional<RacingAccess> race;
  for (Cell& cell : Find(address, bytes)) {
    if (!IsOrdered(cell.write)) race = {Kind::kWrite, cell.write.program - 1, cell.write.site};
    if (!IsOrdered(cell.atomic)) race = {Kind::kAtomic, cell.atomic.program - 1, cell.atomic.site};
    cell.reads[IsOrdered(cell.reads[0]) ? 0 : 1] = Now(site);
  }
  return race;
}

std::optional<RacingAccess> RaceDetector::Write(int64_t address, int bytes, uint16_t site) {
  using Kind = RacingAccess::Kind;
  std::optional<RacingAccess> race;
  for (Cell& cell : Find(address, bytes)) {
    for (const Epoch& read : cell.reads) {
      if (!IsOrdered(read)) race = {Kind::kRead, read.program - 1, read.site};
    }
    if (!IsOrdered(cell.atomic)) race = {Kind::kAtomic, cell.atomic.program - 1, cell.atomic.site};
    if (!IsOrdered(cell.write)) race = {Kind::kWrite, cell.write.program - 1, cell.write.site};
    cell = Cell();
    cell.write = Now(site);
  }
  // What an atomic operation published here is no longer what the next one reads.
  if (!published_.empty()) published_.erase(address);
  return race;
}

std::optional<RacingAccess> RaceDetector::Modify(int64_t address, int bytes, bool writes,
                                                 uint16_t site) {
  using Kind = RacingAccess::Kind;
  std::optional<RacingAccess> race;
  for (Cell& cell : Find(address, bytes)) {
    for (const Epoch& read : cell.reads) {
      if (writes && !IsOrdered(read)) race = {Kind::kRead, read.program - 1, read.site};
    }
    if (!IsOrdered(cell.write)) race = {Kind::kWrite, cell.write.program - 1, cell.write.site};
    if (writes) cell.atomic = Now(site);
  }
  return race;
}

RaceDetector::Snapshot RaceDetector::Keep(ProgramClock clock) {
  const size_t runs = clock.runs();
  if (runs > kMaxRuns || kept_runs_ + runs > kMaxKeptRuns) {
    // Without this one, accesses that are ordered would seem to race.
    is_watching_ = false;
    return nullptr;
  }
  kept_runs_ += runs;
  return Snapshot(new ProgramClock(std::move(clock)), [this, runs](const ProgramClock* kept) {
    kept_runs_ -= runs;
    delete kept;
  });
}

void RaceDetector::Acquire(const std::vector<int64_t>& addresses) {
  if (!is_watching_) return;
  for (const int64_t address : addresses) {
    const auto found = published_.find(address);
    if (found == published_.end() || !joined_.insert(found->second).second) continue;
    clock_.Join(*found->second);
  }
}

void RaceDetector::Release(const std::vector<int64_t>& published) {
  if (published.empty() || !is_watching_) return;
  ProgramClock clock = clock_;
  clock.SetLast(program_, std::min(time_, kLastTime));
  ++time_;
  const Snapshot own = Keep(std::move(clock));
  if (own == nullptr) return;
  for (const int64_t address : published) {
    Snapshot& at = published_[address];
    if (at == nullptr || joined_.contains(at)) {
      at = own;
      continue;
    }
    // A release sequence: what others published here stays.
    ProgramClock both = *at;
    both.Join(*own);
    Snapshot kept = Keep(std::move(both));
    if (kept == nullptr) return;
    at = std::move(kept);
  }
}

}  // namespace tritonrl::ttir
