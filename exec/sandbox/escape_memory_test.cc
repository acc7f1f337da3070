// Attempts at what a job shares with the supervisor, and with everybody.
#include "exec/sandbox/testing/escape_suite.h"

namespace tritonrl {
namespace {

// Ways that break the candidate's own run as well.
const std::vector<Outcome::Reason> kOwnHarm = {Outcome::OK, Outcome::MISMATCH,
                                               Outcome::RUNTIME_ERROR, Outcome::BAD_RESULT};
// Nothing is left to talk with: told as such, or at the end of the time.
const std::vector<Outcome::Reason> kSilent = {Outcome::TIMEOUT, Outcome::BAD_RESULT};

const std::vector<Attempt>& Attempts() {
  static const auto& attempts = *new std::vector<Attempt>{
      {"memory", "write_into_the_visible_memory"},
      {"memory", "shrink_the_memory_of_outputs", kOwnHarm},
      {"memory", "seal_the_memory_of_outputs", kOwnHarm},
      {"memory", "punch_holes_while_it_is_compared", kOwnHarm},
      {"memory", "a_child_that_keeps_the_memory", kOwnHarm},
      {"memory", "write_to_pages_of_read_only_files"},
      {"memory", "flood_the_control_channel", kOwnHarm},
      {"memory", "close_the_channel_and_stay", kSilent, 2},
      {"memory", "shut_the_channel_down_and_stay", kSilent, 2},
  };
  return attempts;
}

TRITONRL_ESCAPE_TESTS(Attempts());

}  // namespace
}  // namespace tritonrl
