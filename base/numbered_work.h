// Pieces of work with numbers, for several threads.
#ifndef TRITONRL_BASE_NUMBERED_WORK_H_
#define TRITONRL_BASE_NUMBERED_WORK_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace tritonrl {

// Calls work(thread, i) once for each i in [0, count), from `threads` threads (fewer for fewer
// pieces; for one the caller's) that take the next number when they are done with one. `thread` is
// below `threads` and the same for one thread's calls: for memory that it keeps. Returns when all
// have ended; after an error no further piece is begun, and the first error is the result. What
// `work` throws becomes ResourceExhausted (std::bad_alloc) or Internal.
absl::Status ForEachNumber(int threads, int64_t count,
                           const std::function<absl::Status(int thread, int64_t i)>& work);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_NUMBERED_WORK_H_
