#include "base/signal_handler.h"

#include <signal.h>

#include <atomic>

namespace tritonrl {
namespace {

// A handler is given nothing but the signal's number, so this one word cannot live in an object.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void Note(int signal) { received_signal.store(signal); }

void Install(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

}  // namespace

// SA_RESETHAND: after the first signal the default action, which ends the process, is back.
SignalHandler::SignalHandler() {
  received_signal.store(0);
  Install(&Note, SA_RESETHAND | SA_RESTART);
}

SignalHandler::~SignalHandler() { Install(SIG_DFL, 0); }

int SignalHandler::received() const { return received_signal.load(); }

}  // namespace tritonrl
