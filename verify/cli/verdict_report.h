// A verdict for people.
#ifndef TRITONRL_VERIFY_CLI_VERDICT_REPORT_H_
#define TRITONRL_VERIFY_CLI_VERDICT_REPORT_H_

#include <string>

#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Several lines: the outcome in one sentence, then each layer with its evidence. `source` is the
// candidate's text; lines named by evidence are quoted from it. Modelled figures say "modelled".
std::string VerdictText(const Verdict& verdict, const std::string& source);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_VERDICT_REPORT_H_
