// A verdict as text for people.
#ifndef TRITONRL_VERIFY_CLI_VERDICT_REPORT_H_
#define TRITONRL_VERIFY_CLI_VERDICT_REPORT_H_

#include <string>

#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Returns the outcome in one sentence, then a line for each layer, with the evidence of a failed
// layer. `source` is the candidate's source, from which the lines that evidence names are quoted.
// Modelled times are marked "modelled".
std::string VerdictText(const Verdict& verdict, const std::string& source);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_VERDICT_REPORT_H_
