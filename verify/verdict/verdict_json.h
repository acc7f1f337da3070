// The one JSON form of a verdict: that of verdict.proto, with the names of its fields, unset fields
// left out. Journals, sample records, batches and --json use it.
#ifndef TRITONRL_VERIFY_VERDICT_VERDICT_JSON_H_
#define TRITONRL_VERIFY_VERDICT_VERDICT_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// One line without a line break. Bytes that are not UTF-8 become U+FFFD.
std::string VerdictToJson(Verdict verdict);

// InvalidArgument for anything else, also for a field that verdict.proto does not have.
absl::StatusOr<Verdict> VerdictFromJson(absl::string_view json);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_VERDICT_VERDICT_JSON_H_
