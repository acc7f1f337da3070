// Programs written against the executor's rules, and honest programs that look like them.
#ifndef TRITONRL_EXEC_CLIENT_RUN_TESTING_ATTACK_CASES_H_
#define TRITONRL_EXEC_CLIENT_RUN_TESTING_ATTACK_CASES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"

namespace tritonrl {

struct AttackCase {
  std::string file;  // without ".py"
  std::string name;
  std::vector<std::string> reasons;  // expected: one of these; empty for honest programs
  std::string source;                // with imports in front and snippets filled in
  std::string reference;
  std::string rules;  // "strict", "robust" or "paper"
};

// Reads all cases of exec/client_run/testdata/attacks but its "snippets.py". Lines of a file that
// stand for something:
//   # case: NAME                      an honest program follows
//   # case: NAME -> REASON[|REASON]   an attack, and why it is not accepted (ReasonOfResult)
//   # use: SNIPPET                    stands for a snippet
//   # task: INPUTS => LAMBDA          what it computes: forward of the reference, and its inputs
//   # layers: STATEMENTS              in the reference's __init__: its layers
//   # more: LINE                      a line at the end of the reference
//   # rules: NAME                     "robust" otherwise
// InvalidArgument: a file that is not of this form.
absl::StatusOr<std::vector<AttackCase>> ReadAttackCases();

// The cases of one file's text.
absl::StatusOr<std::vector<AttackCase>> ParseAttackCases(absl::string_view file,
                                                         absl::string_view text,
                                                         absl::string_view snippets);

// Whether the verifier accepts a program with this result, as "ok", or why not: the outcome's
// reason in lower case, else "not_launched", "ignores_inputs" or "decoration".
std::string ReasonOfResult(const ExecResult& result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_TESTING_ATTACK_CASES_H_
