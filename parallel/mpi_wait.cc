#include "parallel/mpi_wait.h"

#include <sched.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr double kBytesPerSecond = 2e8;  // that move at the least, through sockets or shared memory

}  // namespace

absl::Status MpiError(int code, const std::string& what) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::UnavailableError(absl::StrCat(what, " failed: ", std::string(text, length)));
}

// MPI moves bytes only while it is asked, a few fragments at a time, so that it is asked without a
// pause for as long as they may take. Then sleeps grow to one millisecond: ranks may share cores
// with the verifier's workers.
absl::Status AwaitMpi(const std::function<int(MPI_Request*)>& start, const std::string& what,
                      int rank, absl::Duration timeout, int64_t bytes,
                      const std::function<absl::Status()>& news) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int started = start(&request);
  if (started != MPI_SUCCESS) return MpiError(started, what);
  const absl::Time begin = absl::Now(), deadline = begin + timeout;
  const absl::Time moving = begin + absl::Seconds(static_cast<double>(bytes) / kBytesPerSecond);
  absl::Duration pause = absl::Microseconds(20);
  while (true) {
    int done = 0;
    const int tested = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (tested != MPI_SUCCESS) return MpiError(tested, what);
    if (done) return absl::OkStatus();
    const absl::Time now = absl::Now();
    if (now > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank, ": the other ranks did not answer in ", what, " within ",
                       absl::FormatDuration(timeout), "; one of them is stuck or gone"));
    }
    if (now < moving) {
      sched_yield();
      continue;
    }
    if (news) RETURN_IF_ERROR(news());
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Milliseconds(1));
  }
}

}  // namespace tritonrl
