// Mutated requests against the decoder; shared by the short test and the long program.
#ifndef TRITONRL_EXEC_SERVICE_TESTING_REQUEST_FUZZER_H_
#define TRITONRL_EXEC_SERVICE_TESTING_REQUEST_FUZZER_H_

#include <cstdint>

namespace tritonrl {

struct WireFuzzCounts {
  int64_t inputs = 0;
  int64_t accepted = 0;  // decoded and checked
  int64_t broken = 0;    // accepted, but not what the rules say, or not the same when sent on
};

// `count` inputs that depend on `seed` alone: well-formed requests with bits flipped, bytes
// removed, repeated or put in, numbers made extreme, two requests spliced, and plain noise.
WireFuzzCounts FuzzRequests(int64_t count, uint64_t seed);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_TESTING_REQUEST_FUZZER_H_
