// The table row of one case in the web page (html_page.h).
#ifndef TRITONRL_VERIFY_CLI_HTML_CASE_H_
#define TRITONRL_VERIFY_CLI_HTML_CASE_H_

#include <string>

#include "verify/cli/batch.h"

namespace tritonrl {

// Returns a table row with id, outcome, failed layer, speedup and reason. A collapsed section under
// the reason has the layers with their evidence, figures, and both sources.
std::string HtmlCase(const std::string& id, const BatchLine& line,
                     const std::string& reference_source, const std::string& candidate_source);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_HTML_CASE_H_
