#include "parallel/exit_code.h"

#include <cstdio>

#include "base/status.h"

namespace tritonrl {

int ExitCodeFor(const absl::Status& status, DataParallel* ranks) {
  if (status.ok()) return kExitDone;
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", Message(status).c_str());
  if (ranks != nullptr && ranks->size() > 1) {
    std::fflush(stderr);
    ranks->Abort(kExitFailed);
  }
  return kExitFailed;
}

}  // namespace tritonrl
