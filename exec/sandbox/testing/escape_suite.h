// Runs real escape attempts (escapes/*.py) through the real runner in the real sandbox and checks
// from outside that the sandbox contained them.
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
  // The permitted outcomes of the candidate. OK is right for an attempt with an honest kernel: only
  // the kernel counts for the verdict.
  std::vector<Outcome::Reason> outcomes = {Outcome::OK};
  double wall_seconds = 10;
  double cpu_seconds = 10;
  // For memory bombs: the OOM killer may kill the worker too; the pool then replaces it.
  bool may_cost_a_worker = false;

  friend void PrintTo(const Attempt& attempt, std::ostream* out) { *out << attempt.function; }
};

class EscapeSuite {
 public:
  static absl::StatusOr<std::unique_ptr<EscapeSuite>> Start();

  // Runs the attempt, compares the outside world with its earlier state, then runs an honest
  // candidate, which must pass and see the same surroundings as before. Returns one sentence for
  // each failure. Prints one line: the attempt, its outcome, and the attempt's own message.
  std::vector<std::string> Try(const Attempt& attempt);

 private:
  EscapeSuite() = default;
  absl::StatusOr<ExecResult> Run(const Attempt& attempt);
  void CheckOutcome(const Attempt& attempt, const ExecResult& result,
                    std::vector<std::string>* wrong);
  void RunHonest(std::vector<std::string>* wrong);
  // Compares the outside world with its remembered state and remembers the new one. Without
  // `with_processes` the processes below this one may differ.
  void AddChanges(bool with_processes, std::vector<std::string>* wrong);

  std::unique_ptr<EscapeWorld> world_;
  std::unique_ptr<LocalBackend> backend_;
  std::string surroundings_;
  int64_t workers_lost_ = 0;
};

// The attempts of a test program share one EscapeSuite.
class EscapeTest : public testing::TestWithParam<Attempt> {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

  // Runs the attempt and expects that the sandbox contains it.
  void ExpectHeld();

  static EscapeSuite* suite_;
};

// Defines the TEST_P and its instantiation for a vector of attempts.
#define TRITONRL_ESCAPE_TESTS(attempts)                                          \
  TEST_P(EscapeTest, IsHeld) { ExpectHeld(); }                                   \
  INSTANTIATE_TEST_SUITE_P(Attempts, EscapeTest, testing::ValuesIn(attempts),    \
                           [](const testing::TestParamInfo<Attempt>& info) {     \
                             return info.param.file + "_" + info.param.function; \
                           })

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_TESTING_ESCAPE_SUITE_H_
