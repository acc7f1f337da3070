// Ctrl-C and SIGTERM as a question that a loop can ask.
#ifndef TRITONRL_BASE_SIGNAL_HANDLER_H_
#define TRITONRL_BASE_SIGNAL_HANDLER_H_

namespace tritonrl {

// Notes SIGINT and SIGTERM while it lives; a second one ends the process at once, as without it.
// One object a process.
class SignalHandler {
 public:
  SignalHandler();
  ~SignalHandler();
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;

  // The signal that came, or 0.
  int received() const;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_SIGNAL_HANDLER_H_
