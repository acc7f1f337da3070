// Signals such as Ctrl-C and SIGTERM as a question that a loop can ask.
#ifndef TRITONRL_BASE_SIGNAL_HANDLER_H_
#define TRITONRL_BASE_SIGNAL_HANDLER_H_

#include <signal.h>

#include <vector>

namespace tritonrl {

// Notes signals while it exists; afterwards they have their default action again. One object a
// process.
class SignalHandler {
 public:
  // Notes SIGINT and SIGTERM; a second one of either ends the process at once.
  SignalHandler() : SignalHandler({SIGINT, SIGTERM}, {}) {}
  // Notes all signals of both lists. A second one of the same number ends the process at once if it
  // is in `ends_if_repeated`; one of `repeatable` may come any number of times.
  SignalHandler(std::vector<int> ends_if_repeated, std::vector<int> repeatable);
  ~SignalHandler();
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;

  // The signal that came last, or 0.
  int received() const;
  bool requested() const { return received() != 0; }

 private:
  const std::vector<int> ends_if_repeated_, repeatable_;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_SIGNAL_HANDLER_H_
