// One case of the web page; see html_page.h.
#ifndef TRITONRL_VERIFY_CLI_HTML_CASE_H_
#define TRITONRL_VERIFY_CLI_HTML_CASE_H_

#include <string>

#include "nlohmann/json.hpp"

namespace tritonrl {

// A string member, or "".
std::string JsonText(const nlohmann::ordered_json& json, const char* name);

// A table row: what the table shows, and below the reason, closed, all there is about the case.
// `line` is a line of a batch's output.
std::string HtmlCase(const nlohmann::ordered_json& line, const std::string& reference_source,
                     const std::string& candidate_source);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_HTML_CASE_H_
