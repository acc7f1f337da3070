#include "parallel/mpi_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tritonrl {

absl::Status MpiError(int code, const std::string& what) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::UnavailableError(absl::StrCat(what, " failed: ", std::string(text, length)));
}

// Sleeps grow to one millisecond: ranks may share cores with the verifier's workers.
absl::Status AwaitMpi(const std::function<int(MPI_Request*)>& start, const std::string& what,
                      int rank, absl::Duration timeout) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int started = start(&request);
  if (started != MPI_SUCCESS) return MpiError(started, what);
  const absl::Time deadline = absl::Now() + timeout;
  absl::Duration pause = absl::Microseconds(20);
  while (true) {
    int done = 0;
    const int tested = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (tested != MPI_SUCCESS) return MpiError(tested, what);
    if (done) return absl::OkStatus();
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank, ": the other ranks did not answer in ", what, " within ",
                       absl::FormatDuration(timeout), "; one of them is stuck or gone"));
    }
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Milliseconds(1));
  }
}

}  // namespace tritonrl
