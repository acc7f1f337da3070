// Marks of what is read from memory that nobody wrote, and reports of marks.
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "exec/ttir/run/checker.h"

namespace tritonrl::ttir {

bool Checker::IsWritten(const CheckedAccess& access, int64_t i) const {
  const MemoryRegion& region = *launch_.memory.Find(access.pointers[i]);
  if (region.shadow == nullptr) return true;
  const uint8_t* const shadow =
      region.shadow + ((access.pointers[i] & kAddressMask) - region.begin);
  return std::memchr(shadow, 0, static_cast<size_t>(access.bytes)) == nullptr;
}

Mark Checker::MarkUnwritten(const Step& step, const CheckedAccess& access, Program& program,
                            absl::string_view verb) {
  int64_t active = 0;
  int64_t bad = 0;
  int64_t first = -1;
  for (int64_t i = 0; i < access.count; ++i) {
    if (!access.IsActive(i)) continue;
    ++active;
    if (!IsWritten(access, i) && bad++ == 0) first = i;
  }
  if (bad == 0) return 0;
  return marks_.Of(
      {Finding::Kind::kUnwrittenRead, &step, first,
       absl::StrCat(ProgramText(), " ", verb, " memory that nothing wrote: ", bad, " of ", active,
                    " elements, first at ", NameOf(access.pointers[first]))},
      program);
}

void Checker::ReportMark(const Step& step, Mark mark, absl::string_view use) {
  const auto& places = launch_.kernel->places;
  for (const MarkOrigin* origin : marks_.OriginsOf(mark)) {
    if (!IsNew(origin->kind, *origin->step)) continue;
    std::string text = origin->text;
    if (origin->step != &step) {
      absl::StrAppend(&text, "; ", use, " (",
                      step.place >= 0 ? places[static_cast<size_t>(step.place)] : "unknown line",
                      ")");
    }
    Add(origin->kind, *origin->step, origin->element, std::move(text));
  }
  NoteCompleteness();
}

void Checker::ReportMarks(const Step& step, const CheckedAccess& access,
                          absl::string_view value_use) {
  for (int64_t i = 0; i < access.count; ++i) {
    if (access.mask_marks[i] != 0) ReportMark(step, access.mask_marks[i], "a mask depends on it");
    if (!access.IsActive(i)) continue;
    const Mark pointer = access.pointer_marks[i];
    if (pointer != 0) ReportMark(step, pointer, "an address depends on it");
    if (access.value_marks[i] != 0) ReportMark(step, access.value_marks[i], value_use);
  }
}

}  // namespace tritonrl::ttir
