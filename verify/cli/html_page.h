// Verdicts as one web page that needs nothing else: totals, a table that can be filtered, and for
// each case its layers, evidence and source with the lines marked.
#ifndef TRITONRL_VERIFY_CLI_HTML_PAGE_H_
#define TRITONRL_VERIFY_CLI_HTML_PAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Sources and messages are a stranger's text. All of it is escaped, invisible characters (controls,
// changes of writing direction) are shown by their code, and the page's policy lets no script run
// but its own, which is named by its hash, and lets nothing be loaded.

// Page of a batch: `in` as given to RunBatch, `out` its output. Cases without a line in `out` are
// counted as not checked. The table holds the first `max_cases`, as a browser has its limits too;
// totals are of all. Reads both files case by case, so that memory does not grow with them.
absl::Status WriteBatchPage(const std::string& in, const std::string& out, const std::string& page,
                            int64_t max_cases = 10000);

// Page of one pair.
absl::Status WritePairPage(const Verdict& verdict, const std::string& reference_source,
                           const std::string& candidate_source, const std::string& page);

// Text as it stands in an element or in a quoted attribute.
std::string EscapeHtml(absl::string_view text);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_HTML_PAGE_H_
