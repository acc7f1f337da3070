// One case of the web page; see html_page.h.
#ifndef TRITONRL_VERIFY_CLI_HTML_CASE_H_
#define TRITONRL_VERIFY_CLI_HTML_CASE_H_

#include <string>

#include "verify/cli/batch.h"

namespace tritonrl {

// A table row: what the table shows, and below the reason, closed, all there is about the case.
std::string HtmlCase(const std::string& id, const BatchLine& line,
                     const std::string& reference_source, const std::string& candidate_source);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_HTML_CASE_H_
