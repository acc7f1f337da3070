// Which elements of a program's tensors are bad, in launches that check (LaunchOptions::check): the
// quotient of a division by zero, what was shifted too far, what was read from memory that nobody
// wrote. Such an element is no mistake as long as nothing depends on it, as when a mask or
// tl.where puts another one in its place: its mark goes with it through each step, and becomes a
// finding where it is stored, is an address, or decides what runs.
//
// Each byte of the arena has a mark, that of its element. A mark names one or several origins.
#ifndef TRITONRL_EXEC_TTIR_RUN_MARKS_H_
#define TRITONRL_EXEC_TTIR_RUN_MARKS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "exec/ttir/run/observation.h"
#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

using Mark = uint8_t;  // 0: the element is good

// What made elements bad: a step, and the first of them when it last did.
struct MarkOrigin {
  Finding::Kind kind = Finding::Kind::kUnwrittenRead;
  const Step* step = nullptr;
  int64_t element = 0;
  std::string text;
};

class Marks {
 public:
  explicit Marks(int64_t arena_bytes) : arena_bytes_(arena_bytes) {}

  // The mark of an origin, whose facts it keeps. The first mark of a program makes Program::marks;
  // 0 if there is no memory for it, or for another mark.
  Mark Of(MarkOrigin origin, Program& program);
  // The mark of an element that depends on two.
  Mark Join(Mark a, Mark b) { return a == b || b == 0 ? a : a == 0 ? b : JoinOther(a, b); }
  std::vector<const MarkOrigin*> OriginsOf(Mark mark) const;
  // False: some bad elements have no mark, or not all of their origins.
  bool complete() const { return complete_; }

 private:
  struct Free {
    void operator()(std::byte* marks) const { std::free(marks); }
  };
  // The sorted indices of its origins.
  using Parts = std::vector<uint8_t>;

  Mark JoinOther(Mark a, Mark b);
  Mark MarkOf(const Parts& parts);

  int64_t arena_bytes_;
  std::unique_ptr<std::byte, Free> marks_;
  std::vector<MarkOrigin> origins_;
  std::vector<Parts> parts_;  // of each mark but 0
  absl::flat_hash_map<uint32_t, Mark> joined_;
  bool complete_ = true;
};

// Marks of `count` elements with `bytes` bytes each at an offset of the arena; null for those
// without a buffer, and as long as nothing is marked.
class MarkedElements {
 public:
  MarkedElements() = default;
  MarkedElements(const Program& program, int32_t offset, int64_t bytes)
      : marks_(program.marks == nullptr || offset < 0
                   ? nullptr
                   : reinterpret_cast<Mark*>(program.marks) + offset),
        bytes_(bytes) {}

  Mark operator[](int64_t i) const { return marks_ == nullptr ? 0 : marks_[i * bytes_]; }
  void Set(int64_t i, Mark mark) const;
  bool Any(int64_t count) const;  // one of the first elements is marked
  void Clear(int64_t count) const;

 private:
  Mark* marks_ = nullptr;
  int64_t bytes_ = 0;
};

// Reports the mark of the one element at an offset.
void ReportDecision(const Step& step, Program& program, int32_t offset);

// For what a branch, a loop or an assertion looks at.
inline void CheckDecision(const Step& step, Program& program, int32_t offset) {
  if (program.marks != nullptr) ReportDecision(step, program, offset);
}

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_MARKS_H_
