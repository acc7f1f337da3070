// What is known of a launch besides what it stored: what it did, and what is wrong with it.
#ifndef TRITONRL_EXEC_TTIR_RUN_OBSERVATION_H_
#define TRITONRL_EXEC_TTIR_RUN_OBSERVATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tritonrl::ttir {

// What one launch did, summed over its programs. An access counts its active elements. A sector is
// 32 bytes from the beginning of a storage.
struct LaunchCounts {
  double load_bytes = 0;
  double store_bytes = 0;
  double atomic_bytes = 0;
  double sector_bytes = 0;  // the sectors of each access of each program, each once
  double unique_bytes = 0;  // the sectors of all loads, and those of all other accesses, each once
  double flops = 0;         // floating point operations outside of dots
  double dot_flops = 0;     // of dots of fp32 or fp64 in full precision
  double tensor_flops = 0;  // of dots that tensor cores do: fp16, bf16, fp8, integers, tf32
};

// What is wrong with a launch although it runs. `text` is one sentence about the element, of the
// access or operation, that was found first; each place and kind is reported once. What an
// operation makes of bad operands, and what is read, is reported where something depends on it.
struct Finding {
  enum class Kind : uint8_t {
    kUnwrittenRead,   // of a byte whose shadow is 0
    kDivisionByZero,  // of integers, remainders too
    kWideShift,       // by the width of the number or more
    kDivisibility,    // an argument is no multiple of what its declaration says
    kRace,            // two programs, or two threads of one, at one location without an order
    kOutsideView,     // an access is outside of its argument's tensor, and inside of its storage
    kDescriptor,      // a tensor descriptor that a GPU with descriptors (sm_90) refuses
    kHistogram,       // a value that is counted is out of bounds of the histogram
  };
  Kind kind = Kind::kRace;
  std::string kernel;
  std::string place;  // "line 12 of kernel.py"
  std::array<int32_t, 3> program = {};
  int64_t element = 0;
  std::string text;
};

// "race", "unwritten read", "division by zero", "wide shift", "divisibility", "outside of
// the view", "descriptor", "outside of the histogram".
const char* FindingKindName(Finding::Kind kind);

inline constexpr size_t kMaxFindings = 100;

struct LaunchFindings {
  std::vector<Finding> list;
  // False: there are more, or the launch touched more memory than can be watched for races.
  bool complete = true;
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_OBSERVATION_H_
