// Attempts at other processes and at outstaying the time.
#include "exec/sandbox/testing/escape_suite.h"

namespace tritonrl {
namespace {

const std::vector<Outcome::Reason> kTime = {Outcome::TIMEOUT};

const std::vector<Attempt>& Attempts() {
  static const auto& attempts = *new std::vector<Attempt>{
      {"processes", "signal_everybody"},
      {"processes", "signal_by_descriptor"},
      {"processes", "signal_by_ownership"},
      {"processes", "trace_everybody"},
      {"processes", "write_memory_of_everybody"},
      {"processes", "read_proc_of_everybody"},
      {"processes", "write_to_the_workers_descriptors"},
      {"processes", "stop_itself", kTime, 2},
      {"processes", "stop_in_a_child_that_holds_everything", kTime, 2},
      {"processes", "thread_bomb", {Outcome::OK, Outcome::PROCESS_LIMIT}},
      // The shells can be gone, all of them at the limit, before the candidate ends.
      {"processes",
       "shell_fork_bomb",
       {Outcome::OK, Outcome::PROCESS_LIMIT, Outcome::OUT_OF_MEMORY, Outcome::TIMEOUT},
       2},
      {"processes", "timer_signal", {Outcome::CRASHED}},
      {"processes", "timers_without_end", kTime, 2},
      {"processes", "own_signal_stack_and_overflow", kTime, 2},
      {"processes", "recursion_without_limit", {Outcome::CRASHED}},
      {"processes", "become_another_program", {Outcome::EXITED}},
      {"processes", "raise_the_limits"},
      {"processes", "not_the_first_to_be_killed", {Outcome::OUT_OF_MEMORY}, 10, 10, true},
      {"processes", "close_every_descriptor", {Outcome::EXITED, Outcome::BAD_RESULT}},
      {"processes", "a_core_dump", {Outcome::CRASHED}},
      {"processes", "many_terminals"},
      {"processes", "signal_by_other_calls"},
      {"processes", "names_that_confuse_proc"},
      {"processes", "a_program_from_memory", {Outcome::BAD_RESULT, Outcome::EXITED}},
      {"processes", "a_parent_that_waits_for_its_copy", kTime, 2},
      {"processes", "a_thousand_zombies", {Outcome::OK, Outcome::PROCESS_LIMIT}},
      {"processes", "first_in_every_queue"},
  };
  return attempts;
}

TRITONRL_ESCAPE_TESTS(Attempts());

}  // namespace
}  // namespace tritonrl
