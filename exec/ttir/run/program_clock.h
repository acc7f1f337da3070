// What one program of a launch knows of the others: how far each of them was when it published what
// it did, by an atomic operation whose result the program got (a vector clock).
#ifndef TRITONRL_EXEC_TTIR_RUN_PROGRAM_CLOCK_H_
#define TRITONRL_EXEC_TTIR_RUN_PROGRAM_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tritonrl::ttir {

// For each program a time; 0 where nothing is known. Programs with neighbouring numbers mostly have
// equal times, as each releases a lock or counts itself once: they are kept as one run.
class ProgramClock {
 public:
  uint32_t TimeOf(uint32_t program) const;
  // The later time of each program.
  void Join(const ProgramClock& other);
  // Sets the time of a program that no known one follows.
  void SetLast(uint32_t program, uint32_t time);
  void Clear() { runs_.clear(); }
  size_t runs() const { return runs_.size(); }

 private:
  struct Run {
    uint32_t first = 0;
    uint32_t last = 0;
    uint32_t time = 0;
  };
  static void Append(const Run& run, std::vector<Run>* runs);

  std::vector<Run> runs_;  // in the order of programs, without time 0
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_PROGRAM_CLOCK_H_
