// Collects findings of a launch (LaunchOptions::check), whose programs run on one thread.
#ifndef TRITONRL_EXEC_TTIR_RUN_CHECKER_H_
#define TRITONRL_EXEC_TTIR_RUN_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "exec/ttir/enums.h"
#include "exec/ttir/run/executor.h"
#include "exec/ttir/run/launch_state.h"
#include "exec/ttir/run/marks.h"
#include "exec/ttir/run/race_detector.h"
#include "exec/ttir/run/step.h"
#include "exec/ttir/run/thread_races.h"

namespace tritonrl::ttir {

// The elements of an access, whose pointers were checked.
struct CheckedAccess {
  const int64_t* pointers = nullptr;
  const uint8_t* mask = nullptr;  // or null: all are active
  int64_t count = 0;
  int bytes = 0;  // of an element
  int shape = 0;  // AccessData::shape
  int64_t repeat = 1;
  MarkedElements pointer_marks;
  MarkedElements value_marks;  // of what is stored
  MarkedElements mask_marks;

  bool IsActive(int64_t i) const { return mask == nullptr || mask[i] != 0; }
};

class Checker {
 public:
  explicit Checker(const LaunchState* launch)
      : launch_(*launch), findings_(*launch->options->check), marks_(launch->kernel->arena_bytes) {}

  void BeginProgram(int64_t number, const std::array<int32_t, 3>& id);

  // All threads of a program wait for each other.
  void WaitForThreads() { thread_races_.Order(); }

  void CheckLoad(const Step& step, const CheckedAccess& access);
  // Before the elements at `values`, as they will be in memory, are stored.
  void CheckStore(const Step& step, const CheckedAccess& access, const std::byte* values);
  // Before an atomic operation. `writes`: of each element, or null: all do.
  void CheckAtomic(const Step& step, const CheckedAccess& access, const uint8_t* writes,
                   MemorySemantic semantic, MemoryScope scope);
  // Of a histogram that counts values without a bin; `what`: the bins and values.
  void ReportHistogram(const Step& step, int64_t element, absl::string_view what);
  // Of an argument as the launch gives it, a number or an address.
  void CheckDivisibility(const CompiledKernel::Argument& argument, uint64_t value);

  // Whether the shadow of an element that is read says that all of its bytes were written.
  bool IsWritten(const CheckedAccess& access, int64_t i) const;
  // The mark of the active elements that nobody wrote; 0 if there are none.
  Mark MarkUnwritten(const Step& step, const CheckedAccess& access, Program& program,
                     absl::string_view verb);
  // Reports the origins of a mark on which the step depends; `use` says how.
  void ReportMark(const Step& step, Mark mark, absl::string_view use);
  // Those of the pointers and values of active elements, and of the mask.
  void ReportMarks(const Step& step, const CheckedAccess& access, absl::string_view value_use);
  Marks& marks() { return marks_; }

  // Whether a finding of the step is the first of this kind, and of this `other` access.
  bool IsNew(Finding::Kind kind, const Step& step, int other = -1);
  // Adds a new finding.
  void Add(Finding::Kind kind, const Step& step, int64_t element, std::string text);

 private:
  // Whether the active elements are in the tensor that their argument is, not its storage alone.
  void CheckView(const Step& step, const CheckedAccess& access, absl::string_view verb);
  void CheckElementsDiffer(const Step& step, const CheckedAccess& access, const std::byte* values);
  void ReportRace(const Step& step, int64_t element, int64_t pointer, absl::string_view verb,
                  const RacingAccess& other, absl::string_view note = "");
  void ReportThreadRace(const Step& step, int64_t element, int64_t pointer, absl::string_view verb,
                        const ThreadAccess& other);
  void NoteCompleteness();
  std::string ProgramText() const;  // "program (1, 0, 0)", the one that runs
  // "byte 12 of argument x_ptr"
  std::string NameOf(int64_t pointer) const;

  const LaunchState& launch_;
  LaunchFindings& findings_;
  std::array<int32_t, 3> program_ = {};
  RaceDetector races_;
  ThreadRaces thread_races_;
  Marks marks_;
  absl::flat_hash_set<std::tuple<Finding::Kind, const Step*, int>> reported_;
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_CHECKER_H_
