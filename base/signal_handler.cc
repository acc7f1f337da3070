#include "base/signal_handler.h"

#include <atomic>
#include <utility>

namespace tritonrl {
namespace {

// A handler is given nothing but the signal's number, so this one word cannot live in an object.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void Note(int signal) { received_signal.store(signal); }

void Install(const std::vector<int>& signals, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int signal : signals) sigaction(signal, &action, nullptr);
}

}  // namespace

SignalHandler::SignalHandler(std::vector<int> ends_if_repeated, std::vector<int> repeatable)
    : ends_if_repeated_(std::move(ends_if_repeated)), repeatable_(std::move(repeatable)) {
  received_signal.store(0);
  // SA_RESETHAND: after the first signal the default action, which ends the process, is back.
  Install(ends_if_repeated_, &Note, SA_RESETHAND | SA_RESTART);
  Install(repeatable_, &Note, SA_RESTART);
}

SignalHandler::~SignalHandler() {
  Install(ends_if_repeated_, SIG_DFL, 0);
  Install(repeatable_, SIG_DFL, 0);
}

int SignalHandler::received() const { return received_signal.load(); }

}  // namespace tritonrl
