#include "exec/ttir/run/launch_state.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tritonrl::ttir {

void MemoryMap::SetArgument(size_t index, MemoryRegion region) {
  if (arguments_.size() <= index) arguments_.resize(index + 1);
  by_address_.push_back(region);
  arguments_[index] = std::move(region);
}

void MemoryMap::AddReachable(MemoryRegion region) { by_address_.push_back(std::move(region)); }

void MemoryMap::Sort() {
  std::sort(by_address_.begin(), by_address_.end(),
            [](const MemoryRegion& a, const MemoryRegion& b) {
              return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
            });
}

int64_t MemoryMap::NumberSectors() {
  int64_t sectors = 0;
  int64_t origin = 0;
  int64_t end = 0;  // of the regions that overlap
  for (MemoryRegion& region : by_address_) {
    if (&region == by_address_.data() || region.begin >= end) {
      sectors += (end - origin) / kSectorBytes + 1;
      origin = region.begin;
      end = origin;
    }
    end = std::max(end, region.begin + region.bytes);
    region.origin = origin;
    region.first_sector = sectors;
  }
  for (MemoryRegion& region : arguments_) {
    const auto same = std::lower_bound(
        by_address_.begin(), by_address_.end(), region.begin,
        [](const MemoryRegion& other, int64_t begin) { return other.begin < begin; });
    if (same == by_address_.end() || same->begin != region.begin) continue;
    region.origin = same->origin;
    region.first_sector = same->first_sector;
  }
  return sectors + (end - origin) / kSectorBytes + 1;
}

const MemoryRegion* MemoryMap::Find(int64_t pointer) const {
  const auto argument = static_cast<uint64_t>(pointer) >> kAddressBits;
  if (argument > 0) {
    return argument <= arguments_.size() ? &arguments_[argument - 1] : nullptr;
  }
  // The last region that begins at or before the address. Views of one storage are regions with
  // the same begin, of which the largest comes last.
  const auto next = std::upper_bound(
      by_address_.begin(), by_address_.end(), pointer,
      [](int64_t address, const MemoryRegion& region) { return address < region.begin; });
  return next == by_address_.begin() ? nullptr : &*(next - 1);
}

std::string PlaceOf(const Step& step, const Program& program) {
  const auto& places = program.launch->kernel->places;
  return absl::StrCat("program (", program.id[0], ", ", program.id[1], ", ", program.id[2], "), ",
                      step.place >= 0 ? places[step.place] : "unknown line");
}

bool Fail(Program& program, absl::Status error) {
  program.error = std::move(error);
  return false;
}

bool MayContinue(const Step& step, Program& program) {
  // Beyond a few iterations the program may wait for another one, whose thread then needs a core.
  constexpr int32_t kIterationsPerQuestion = 256;
  if (program.steps_left <= 0) {
    return Fail(program,
                absl::DeadlineExceededError(absl::StrCat(
                    "kernel ", program.launch->kernel->name, ": a program reached the limit of ",
                    program.launch->options->max_steps, " operations, ", PlaceOf(step, program))));
  }
  --program.steps_left;
  if (++program.loops < kIterationsPerQuestion) return true;
  std::this_thread::yield();
  return AskForTime(step, program, " in a loop");
}

bool AskForTime(const Step& step, Program& program, const char* where) {
  program.loops = 0;
  program.work = 0;
  const auto& expired = program.launch->options->expired;
  if (!expired || !expired()) return true;
  return Fail(program, absl::DeadlineExceededError(absl::StrCat(
                           "kernel ", program.launch->kernel->name, ": the time limit passed",
                           where, ", ", PlaceOf(step, program))));
}

}  // namespace tritonrl::ttir
