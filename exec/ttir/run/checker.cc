#include "exec/ttir/run/checker.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tritonrl::ttir {

namespace {

int64_t AddressOf(int64_t pointer) { return pointer & kAddressMask; }

// Places of accesses in the race detector; the last one stands for all that do not fit.
uint16_t SiteOf(const Step& step) {
  constexpr int32_t kLast = std::numeric_limits<uint16_t>::max();
  return static_cast<uint16_t>(step.place >= 0 ? std::min(step.place, kLast) : kLast);
}

int32_t ElementOf(const CheckedAccess& access, int64_t i) {
  return access.repeat > 1 ? kAllElements : static_cast<int32_t>(i);
}

absl::string_view VerbOf(RacingAccess::Kind kind) {
  switch (kind) {
    case RacingAccess::Kind::kRead:
      return "reads";
    case RacingAccess::Kind::kWrite:
      return "writes";
    default:
      return "changes with an atomic operation";
  }
}

std::string TextOfProgram(const std::array<int32_t, 3>& id) {
  return absl::StrCat("program (", id[0], ", ", id[1], ", ", id[2], ")");
}

}  // namespace

void Checker::BeginProgram(int64_t number, const std::array<int32_t, 3>& id) {
  program_ = id;
  races_.BeginProgram(static_cast<uint32_t>(number));
  thread_races_.Order();
}

std::string Checker::ProgramText() const { return TextOfProgram(program_); }

bool Checker::IsNew(Finding::Kind kind, const Step& step, int other) {
  if (findings_.list.size() < kMaxFindings) return reported_.insert({kind, &step, other}).second;
  if (!reported_.contains({kind, &step, other})) findings_.complete = false;
  return false;
}

void Checker::Add(Finding::Kind kind, const Step& step, int64_t element, std::string text) {
  const auto& places = launch_.kernel->places;
  findings_.list.push_back(
      {kind, launch_.kernel->name,
       step.place >= 0 ? places[static_cast<size_t>(step.place)] : "unknown line", program_,
       element, std::move(text)});
}

std::string Checker::NameOf(int64_t pointer) const {
  const MemoryRegion& region = *launch_.memory.Find(pointer);
  return absl::StrCat("byte ", AddressOf(pointer) - region.begin, " of ",
                      region.name.empty() ? "unnamed memory" : region.name);
}

void Checker::CheckDivisibility(const CompiledKernel::Argument& argument, uint64_t value) {
  const auto divisor = static_cast<uint64_t>(argument.divisibility);
  if (argument.divisibility <= 1 || value % divisor == 0) return;
  const bool is_pointer = argument.type.is_pointer();
  if (findings_.list.size() >= kMaxFindings) {
    findings_.complete = false;
    return;
  }
  std::string text =
      absl::StrCat(is_pointer ? "the address of argument " : "argument ", argument.name,
                   is_pointer ? "" : absl::StrCat(", ", static_cast<int64_t>(value), ","),
                   " is declared to be a multiple of ", divisor, " and is not (remainder ",
                   value % divisor, ")");
  findings_.list.push_back(
      {Finding::Kind::kDivisibility, launch_.kernel->name, argument.place, {}, 0, std::move(text)});
}

void Checker::ReportHistogram(const Step& step, int64_t element, absl::string_view what) {
  if (!IsNew(Finding::Kind::kHistogram, step)) return;
  Add(Finding::Kind::kHistogram, step, element,
      absl::StrCat(ProgramText(), " counts values outside of the histogram's bins ", what,
                   "; a GPU counts them in other bins"));
}

void Checker::NoteCompleteness() {
  findings_.complete =
      findings_.complete && races_.complete() && thread_races_.complete() && marks_.complete();
}

void Checker::ReportThreadRace(const Step& step, int64_t element, int64_t pointer,
                               absl::string_view verb, const ThreadAccess& other) {
  const int key = static_cast<int>(other.site) | (other.writes ? 1 : 0) << 16 | 1 << 30;
  if (!IsNew(Finding::Kind::kRace, step, key)) return;
  const auto& places = launch_.kernel->places;
  Add(Finding::Kind::kRace, step, element,
      absl::StrCat(ProgramText(), " ", verb, " ", NameOf(pointer), " with element ", element,
                   ", which its ",
                   other.element < 0 ? "other elements" : absl::StrCat("element ", other.element),
                   other.of_same_shape ? "" : " of another shape",
                   other.element >= 0 ? (other.writes ? " writes" : " reads")
                                      : (other.writes ? " write" : " read"),
                   " at ", other.site < places.size() ? places[other.site] : "unknown line",
                   ", and no barrier orders their threads"));
}

void Checker::ReportRace(const Step& step, int64_t element, int64_t pointer, absl::string_view verb,
                         const RacingAccess& other, absl::string_view note) {
  const int key = static_cast<int>(other.site) | static_cast<int>(other.kind) << 16 |
                  static_cast<int>(note.size()) << 18;
  if (!IsNew(Finding::Kind::kRace, step, key)) return;
  const int64_t gx = launch_.grid[0];
  const int64_t gy = launch_.grid[1];
  const int64_t number = other.program;
  const std::array<int32_t, 3> id = {static_cast<int32_t>(number % gx),
                                     static_cast<int32_t>(number / gx % gy),
                                     static_cast<int32_t>(number / (gx * gy))};
  const auto& places = launch_.kernel->places;
  Add(Finding::Kind::kRace, step, element,
      absl::StrCat(ProgramText(), " ", verb, " ", NameOf(pointer), ", which ", TextOfProgram(id),
                   " ", VerbOf(other.kind), " at ",
                   other.site < places.size() ? places[other.site] : "unknown line",
                   ", and nothing orders the two", note));
}

void Checker::CheckView(const Step& step, const CheckedAccess& access, absl::string_view verb) {
  int64_t active = 0;
  int64_t bad = 0;
  int64_t first = -1;
  for (int64_t i = 0; i < access.count; ++i) {
    if (!access.IsActive(i)) continue;
    ++active;
    const MemoryRegion& region = *launch_.memory.Find(access.pointers[i]);
    const int64_t address = AddressOf(access.pointers[i]);
    const bool inside = region.view_end == 0 ||
                        (address >= region.view_begin && address + access.bytes <= region.view_end);
    if (!inside && bad++ == 0) first = i;
  }
  if (bad == 0 || !IsNew(Finding::Kind::kOutsideView, step)) return;
  const MemoryRegion& region = *launch_.memory.Find(access.pointers[first]);
  const int64_t at = AddressOf(access.pointers[first]) - region.view_begin;
  Add(Finding::Kind::kOutsideView, step, first,
      absl::StrCat(ProgramText(), " ", verb, " outside of the tensor of ", region.name,
                   " (a view of ", (region.view_end - region.view_begin) / access.bytes,
                   " elements), inside of its storage: ", bad, " of ", active,
                   " elements, first at byte ", at, " of the view"));
}

void Checker::CheckLoad(const Step& step, const CheckedAccess& access) {
  ReportMarks(step, access, "");
  CheckView(step, access, "reads");
  thread_races_.BeginOperation(SiteOf(step), access.shape);
  for (int64_t i = 0; i < access.count; ++i) {
    if (!access.IsActive(i)) continue;
    const int64_t address = AddressOf(access.pointers[i]);
    const auto race = races_.Read(address, access.bytes, SiteOf(step));
    if (race.has_value()) ReportRace(step, i, access.pointers[i], "reads", *race);
    const auto other = thread_races_.Read(address, access.bytes, ElementOf(access, i));
    if (other.has_value()) ReportThreadRace(step, i, access.pointers[i], "reads", *other);
  }
  NoteCompleteness();
}

void Checker::CheckElementsDiffer(const Step& step, const CheckedAccess& access,
                                  const std::byte* values) {
  std::vector<int64_t> active;
  bool ascending = true;
  for (int64_t i = 0; i < access.count; ++i) {
    if (!access.IsActive(i)) continue;
    ascending = ascending && (active.empty() || AddressOf(access.pointers[active.back()]) <
                                                    AddressOf(access.pointers[i]));
    active.push_back(i);
  }
  if (ascending) return;
  std::sort(active.begin(), active.end(), [&](int64_t a, int64_t b) {
    return std::pair(AddressOf(access.pointers[a]), a) <
           std::pair(AddressOf(access.pointers[b]), b);
  });
  for (size_t i = 1; i < active.size(); ++i) {
    const int64_t a = active[i - 1];
    const int64_t b = active[i];
    if (AddressOf(access.pointers[a]) != AddressOf(access.pointers[b])) continue;
    if (std::memcmp(values + a * access.bytes, values + b * access.bytes,
                    static_cast<size_t>(access.bytes)) == 0) {
      continue;
    }
    if (!IsNew(Finding::Kind::kRace, step)) return;
    Add(Finding::Kind::kRace, step, b,
        absl::StrCat(ProgramText(), " stores different values of elements ", a, " and ", b, " to ",
                     NameOf(access.pointers[a])));
    return;
  }
}

void Checker::CheckStore(const Step& step, const CheckedAccess& access, const std::byte* values) {
  ReportMarks(step, access, "a store depends on it");
  CheckView(step, access, "writes");
  CheckElementsDiffer(step, access, values);
  thread_races_.BeginOperation(SiteOf(step), access.shape);
  for (int64_t i = 0; i < access.count; ++i) {
    if (!access.IsActive(i)) continue;
    const int64_t address = AddressOf(access.pointers[i]);
    const bool same = std::memcmp(reinterpret_cast<const void*>(address), values + i * access.bytes,
                                  static_cast<size_t>(access.bytes)) == 0;
    const auto other = thread_races_.Write(address, access.bytes, ElementOf(access, i), !same);
    if (other.has_value()) ReportThreadRace(step, i, access.pointers[i], "writes", *other);
    const auto race = races_.Write(address, access.bytes, SiteOf(step));
    if (!race.has_value()) continue;
    const bool both_write = race->kind == RacingAccess::Kind::kWrite;
    ReportRace(step, i, access.pointers[i], "writes", *race,
               !both_write ? ""
               : same      ? " (same value)"
                           : " (another value)");
  }
  NoteCompleteness();
}

void Checker::CheckAtomic(const Step& step, const CheckedAccess& access, const uint8_t* writes,
                          MemorySemantic semantic, MemoryScope scope) {
  ReportMarks(step, access, "an atomic operation depends on it");
  CheckView(step, access, "changes");
  const bool orders = semantic != MemorySemantic::kRelaxed || access.count == 1;
  if (orders) WaitForThreads();
  thread_races_.BeginOperation(SiteOf(step), access.shape);
  // Those of scope cta are as plain accesses to other programs.
  const bool is_local = scope == MemoryScope::kCta;
  std::vector<int64_t> addresses;
  std::vector<int64_t> written;
  for (int64_t i = 0; i < access.count; ++i) {
    if (!access.IsActive(i)) continue;
    addresses.push_back(AddressOf(access.pointers[i]));
    if (writes == nullptr || writes[i] != 0) written.push_back(addresses.back());
  }
  const bool both = semantic == MemorySemantic::kAcquireRelease;
  if (!is_local && (both || semantic == MemorySemantic::kAcquire)) races_.Acquire(addresses);
  for (int64_t i = 0; i < access.count; ++i) {
    if (!access.IsActive(i)) continue;
    const int64_t address = AddressOf(access.pointers[i]);
    const bool wrote = writes == nullptr || writes[i] != 0;
    const auto race = !is_local ? races_.Modify(address, access.bytes, wrote, SiteOf(step))
                      : wrote   ? races_.Write(address, access.bytes, SiteOf(step))
                                : races_.Read(address, access.bytes, SiteOf(step));
    if (wrote) {
      const auto other = thread_races_.Modify(address, access.bytes, ElementOf(access, i));
      if (other.has_value()) ReportThreadRace(step, i, access.pointers[i], "changes", *other);
    }
    if (!race.has_value()) continue;
    ReportRace(step, i, access.pointers[i],
               is_local ? "changes with an atomic operation of scope cta"
                        : "changes with an atomic operation",
               *race);
  }
  if (!is_local && (both || semantic == MemorySemantic::kRelease)) races_.Release(written);
  if (orders) WaitForThreads();
  NoteCompleteness();
}

}  // namespace tritonrl::ttir
