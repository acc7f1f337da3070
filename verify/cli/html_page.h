// Verdicts as one self-contained web page: totals, a table with a filter, and for each case its
// layers, evidence and source with highlighted lines.
#ifndef TRITONRL_VERIFY_CLI_HTML_PAGE_H_
#define TRITONRL_VERIFY_CLI_HTML_PAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "verify/cli/case_reader.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Sources and messages are untrusted text: all of it is escaped, and invisible characters
// (controls, changes of writing direction) are shown by their code. The page's content security
// policy allows only its own script, identified by its hash, and forbids loading anything.

inline constexpr int64_t kMaxPageCases = 10000;

// Writes the page of a batch: `in` and `cases` as given to RunBatch, `out` its output. Cases
// without a line in `out` are counted as not checked. The table has the first `max_cases` cases,
// because browsers cannot show tables of any length; the totals include all cases. Sources and
// verdicts are read case by case, so that memory does not grow with them.
absl::Status WriteBatchPage(const std::string& in, const std::string& out, const std::string& page,
                            int64_t max_cases = kMaxPageCases, const CaseOptions& cases = {});

// Writes the page of one pair.
absl::Status WritePairPage(const Verdict& verdict, const std::string& reference_source,
                           const std::string& candidate_source, const std::string& page);

// Escapes text for an element or a quoted attribute.
std::string EscapeHtml(absl::string_view text);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_HTML_PAGE_H_
