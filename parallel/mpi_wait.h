// MPI operations with a deadline.
#ifndef TRITONRL_PARALLEL_MPI_WAIT_H_
#define TRITONRL_PARALLEL_MPI_WAIT_H_

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tritonrl {

// What MPI says about an error code of `what`.
absl::Status MpiError(int code, const std::string& what);

// Begins a non-blocking operation by `start` and polls it. DeadlineExceeded, which names `what`
// and `rank`, when the others did not answer within `timeout`: buffers of the operation must then
// not be freed, and the job ends. `bytes`: that the operation moves, for which a core is kept busy
// at first. `news`: asked now and then if given; an error of its ends the wait, and the job too.
absl::Status AwaitMpi(const std::function<int(MPI_Request*)>& start, const std::string& what,
                      int rank, absl::Duration timeout, int64_t bytes = 0,
                      const std::function<absl::Status()>& news = nullptr);

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_MPI_WAIT_H_
