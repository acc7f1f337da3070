// The form that a function is compiled into: lists of steps over buffers.
#ifndef TRITONRL_EXEC_TTIR_RUN_STEP_H_
#define TRITONRL_EXEC_TTIR_RUN_STEP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "exec/ttir/run/kernels/kernels.h"

namespace tritonrl::ttir {

class Checker;
class Observer;
struct LaunchState;
struct Step;

// Floating point operations, as LaunchCounts names them.
struct Work {
  int64_t flops = 0;
  int64_t dot_flops = 0;
  int64_t tensor_flops = 0;

  Work& operator+=(const Work& other) {
    flops += other.flops;
    dot_flops += other.dot_flops;
    tensor_flops += other.tensor_flops;
    return *this;
  }
  Work Times(int64_t count) const {
    return {flops * count, dot_flops * count, tensor_flops * count};
  }
};

struct Code {
  std::vector<Step> steps;
  Work work;  // of the operations that the text has here, wherever their steps are
};

// What one thread needs to execute programs: the buffers of a kernel and where it is.
struct Program {
  std::byte* arena = nullptr;
  const LaunchState* launch = nullptr;
  std::array<int32_t, 3> id = {};
  int64_t lanes = 0;             // elements in the region of a reduction
  int64_t steps_left = 0;        // until the limit of this program
  int32_t loops = 0;             // iterations since the deadline was asked for
  int64_t work = 0;              // costs of steps since then
  Observer* counting = nullptr;  // sees loads and codes, if the launch counts
  Observer* storing = nullptr;   // sees stores and atomics, if it counts or has shadows
  Checker* check = nullptr;      // finds mistakes, if the launch checks
  std::byte* marks = nullptr;    // of the arena's bytes, if one is marked (marks.h)
  absl::Status error;            // why it ended early

  template <typename T>
  T* At(int32_t offset) const {
    return reinterpret_cast<T*>(arena + offset);
  }
};

// Facts of a step that its kind defines.
struct StepData {
  virtual ~StepData() = default;
};

// Which operand of its result's size a step may write its result over.
enum class InPlace : uint8_t { kNever, kAnyOperand, kThirdOperand };

// Step::count of an operation in the region of a reduction, where Program::lanes says it.
inline constexpr int64_t kLanes = -1;
inline constexpr int32_t kNoBuffer = -1;

// How a step's result is marked (marks.h).
enum class MarkRule : uint8_t {
  kOwn,          // the step marks it itself, or has no result
  kClear,        // is not
  kSame,         // the step moves elements: it does the same with marks
  kElementwise,  // where an operand's element is
  kSelect,       // where the condition or the element that is chosen is
  kAnd,          // but where an element that is not marked decides alone, by all bits 0,
  kOr,           // all bits 1,
  kMultiply,     // or 0
  kDivide,       // where the divisor is 0 too
  kShift,        // where the distance is not below the width too
};

struct Marking {
  MarkRule rule = MarkRule::kOwn;
  std::array<uint8_t, 3> in_bytes = {};  // of an operand's element; 0: there is one for all
  uint8_t out_bytes = 0;
  uint8_t width = 0;             // bits of what is shifted, or of the operands of `or`
  bool crosses_threads = false;  // waits for all threads of a program on a GPU
};

struct Step {
  // False: the program ends with Program::error.
  using Run = bool (*)(const Step& step, Program& program);

  Run run = nullptr;
  // Numbers of buffers, which the plan replaces by their offsets in the arena.
  std::vector<int32_t> in;
  std::vector<int32_t> out;
  int64_t count = 1;
  int64_t number = 0;
  Unary unary = nullptr;
  Binary binary = nullptr;
  Ternary ternary = nullptr;
  Unary finish = nullptr;  // rounds the result in its place
  int64_t cost = 1;        // about nanoseconds
  int32_t place = -1;      // index into CompiledKernel::places
  bool is_graph = false;   // its codes are blocks that branch to each other
  InPlace in_place = InPlace::kNever;
  Marking marking;
  std::shared_ptr<const StepData> data;
  std::vector<Code> codes;

  int64_t CountFor(const Program& program) const { return count == kLanes ? program.lanes : count; }
};

// Work after which a program asks whether its time has passed.
inline constexpr int64_t kWorkPerQuestion = 1 << 21;
// Ends the program if its time has passed; `where` is part of the message (launch_state.cc).
bool AskForTime(const Step& step, Program& program, const char* where = "");

// Counts the code's work (observer.cc).
void AddWork(const Code& code, Program& program);

// RunCode for launches that check (marks.cc).
bool RunCheckedCode(const Code& code, Program& program);

inline bool RunCode(const Code& code, Program& program) {
  if (program.check != nullptr) return RunCheckedCode(code, program);
  if (program.counting != nullptr) AddWork(code, program);
  program.steps_left -= static_cast<int64_t>(code.steps.size());
  for (const Step& step : code.steps) {
    program.work += step.cost;
    if (program.work > kWorkPerQuestion && !AskForTime(step, program)) return false;
    if (!step.run(step, program)) return false;
  }
  return true;
}

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_STEP_H_
