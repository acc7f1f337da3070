// Wrong kernels that bring a verdict of their own: none is believed.
#include "exec/sandbox/testing/escape_suite.h"

namespace tritonrl {
namespace {

const std::vector<Outcome::Reason> kRefused = {Outcome::MISMATCH, Outcome::RUNTIME_ERROR,
                                               Outcome::BAD_RESULT, Outcome::EXITED};

const std::vector<Attempt>& Attempts() {
  static const auto& attempts = *new std::vector<Attempt>{
      {"verdicts", "print_a_verdict", {Outcome::MISMATCH}},
      {"verdicts", "write_a_verdict_to_every_descriptor", kRefused},
      {"verdicts", "write_a_verdict_and_exit", kRefused},
      {"verdicts", "a_child_writes_the_verdict", kRefused},
      {"verdicts", "exit_from_a_thread", {Outcome::EXITED}},
      {"verdicts", "exit_at_exit", kRefused},
      {"verdicts", "patch_the_comparison", kRefused},
      {"verdicts", "return_the_expected_output", kRefused},
      {"verdicts", "read_the_reference", kRefused},
      {"verdicts", "a_result_of_another_shape", kRefused},
      {"verdicts", "a_result_that_is_computed_when_compared", kRefused},
  };
  return attempts;
}

TRITONRL_ESCAPE_TESTS(Attempts());

}  // namespace
}  // namespace tritonrl
