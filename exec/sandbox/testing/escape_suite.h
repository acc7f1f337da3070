// Runs real escape attempts (escapes/*.py) through the real runner in the real sandbox and
// looks from outside whether they were held.
#ifndef TRITONRL_EXEC_SANDBOX_TESTING_ESCAPE_SUITE_H_
#define TRITONRL_EXEC_SANDBOX_TESTING_ESCAPE_SUITE_H_

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/backend/backend_factory.h"
#include "exec/sandbox/testing/escape_world.h"

namespace tritonrl {

struct Attempt {
  std::string file;      // in escapes/, without ".py"
  std::string function;  // in that file
  // How the candidate may end. Outcome::OK stands for: its kernel is honest, and that is what
  // counts.
  std::vector<Outcome::Reason> outcomes = {Outcome::OK};
  double wall_seconds = 10;
  double cpu_seconds = 10;
  // Memory bombs: the kernel may choose to end the worker too, which is then replaced.
  bool may_cost_a_worker = false;

  friend void PrintTo(const Attempt& attempt, std::ostream* out) { *out << attempt.function; }
};

class EscapeSuite {
 public:
  static absl::StatusOr<std::unique_ptr<EscapeSuite>> Start();

  // The attempt, a look around outside, then an honest candidate that must get its verdict and find
  // the same surroundings as ever. Returns what went wrong, a sentence each; prints a line: the
  // attempt, its outcome, and what stopped it in its own words.
  std::vector<std::string> Try(const Attempt& attempt);

 private:
  EscapeSuite() = default;
  absl::StatusOr<ExecResult> Run(const Attempt& attempt);
  void CheckOutcome(const Attempt& attempt, const ExecResult& result,
                    std::vector<std::string>* wrong);
  void RunHonest(std::vector<std::string>* wrong);

  std::unique_ptr<EscapeWorld> world_;
  std::unique_ptr<PythonBackend> backend_;
  std::string surroundings_;
  int64_t workers_lost_ = 0;
};

// One suite for all attempts of a test program.
class EscapeTest : public testing::TestWithParam<Attempt> {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

  // Runs the parameter's attempt.
  void ExpectHeld();

  static EscapeSuite* suite_;
};

// TEST_P and its instantiation for a vector of attempts.
#define TRITONRL_ESCAPE_TESTS(attempts)                                          \
  TEST_P(EscapeTest, IsHeld) { ExpectHeld(); }                                   \
  INSTANTIATE_TEST_SUITE_P(Attempts, EscapeTest, testing::ValuesIn(attempts),    \
                           [](const testing::TestParamInfo<Attempt>& info) {     \
                             return info.param.file + "_" + info.param.function; \
                           })

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_TESTING_ESCAPE_SUITE_H_
