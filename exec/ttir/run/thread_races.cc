#include "exec/ttir/run/thread_races.h"

namespace tritonrl::ttir {

bool ThreadRaces::Races(const Access& access, int32_t element) const {
  if (access.turn < ordered_ || access.turn == turn_) return false;
  if (access.shape != shape_) return true;
  // Several that stored wrote one value, and this one may have been among them.
  if (access.element == kSeveralElements) return access.is_atomic;
  return access.element != element;
}

std::optional<ThreadAccess> ThreadRaces::RaceOf(const Cell& cell, int32_t element,
                                                bool changes) const {
  if (!changes) return std::nullopt;
  std::optional<ThreadAccess> race;
  for (const Access& read : cell.reads) {
    if (Races(read, element)) race = Found(read, /*writes=*/false);
  }
  const Access& write = cell.write.turn == turn_ ? cell.before : cell.write;
  if (Races(write, element)) race = Found(write, /*writes=*/true);
  return race;
}

void ThreadRaces::Put(int32_t element, bool is_atomic, Cell* cell) const {
  if (cell->write.turn != turn_) cell->before = cell->write;
  const bool again = cell->write.turn == turn_ && cell->write.element != element;
  cell->write = {turn_, again ? kSeveralElements : element, site_, shape_, is_atomic};
}

std::optional<ThreadAccess> ThreadRaces::Read(int64_t address, int bytes, int32_t element) {
  std::optional<ThreadAccess> race;
  for (Cell& cell : cells_.Find(address, bytes)) {
    if (Races(cell.write, element)) race = Found(cell.write, /*writes=*/true);
    const Access& first = cell.reads[0];
    const bool known =
        first.turn >= ordered_ && (first.shape != shape_ || first.element != element);
    cell.reads[known ? 1 : 0] = {turn_, element, site_, shape_, false};
  }
  return race;
}

std::optional<ThreadAccess> ThreadRaces::Write(int64_t address, int bytes, int32_t element,
                                               bool changes) {
  std::optional<ThreadAccess> race;
  for (Cell& cell : cells_.Find(address, bytes)) {
    const auto found = RaceOf(cell, element, changes);
    if (found.has_value()) race = found;
    // Who wrote the same value before reads it in any case.
    if (!changes && cell.write.turn >= ordered_ && cell.write.turn != turn_) continue;
    Put(element, /*is_atomic=*/false, &cell);
  }
  return race;
}

std::optional<ThreadAccess> ThreadRaces::Modify(int64_t address, int bytes, int32_t element) {
  std::optional<ThreadAccess> race;
  for (Cell& cell : cells_.Find(address, bytes)) {
    const auto found = RaceOf(cell, element, /*changes=*/true);
    if (found.has_value() && !found->is_atomic) race = found;
    Put(element, /*is_atomic=*/true, &cell);
  }
  return race;
}

}  // namespace tritonrl::ttir
