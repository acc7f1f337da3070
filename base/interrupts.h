// Ctrl-C and SIGTERM as a question that a loop can ask.
#ifndef TRITONRL_BASE_INTERRUPTS_H_
#define TRITONRL_BASE_INTERRUPTS_H_

namespace tritonrl {

// Notes SIGINT and SIGTERM while it lives; a second one ends the process at once, as without it.
// One object a process.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // The signal that came, or 0.
  int received() const;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_INTERRUPTS_H_
