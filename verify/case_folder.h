// The folder form of many cases; see cases.h.
#ifndef TRITONRL_VERIFY_CASE_FOLDER_H_
#define TRITONRL_VERIFY_CASE_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "verify/cases.h"

namespace tritonrl {

// Names are read at once, files when their case's turn comes.
absl::StatusOr<std::unique_ptr<CaseReader>> OpenCaseFolder(const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CASE_FOLDER_H_
