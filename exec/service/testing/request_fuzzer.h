// Fuzzes the request decoder with mutated requests, for a short test and a long-running program.
#ifndef TRITONRL_EXEC_SERVICE_TESTING_REQUEST_FUZZER_H_
#define TRITONRL_EXEC_SERVICE_TESTING_REQUEST_FUZZER_H_

#include <cstdint>

namespace tritonrl {

struct WireFuzzCounts {
  int64_t inputs = 0;
  int64_t accepted = 0;  // inputs that DecodeRunRequest accepted
  int64_t broken = 0;    // accepted, but against the rules, or changed by another encode and decode
};

// Decodes `count` inputs that depend only on `seed`: well-formed requests with flipped bits,
// removed, repeated or inserted bytes, extreme numbers, or a second request spliced in, and plain
// noise.
WireFuzzCounts FuzzRequests(int64_t count, uint64_t seed);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_TESTING_REQUEST_FUZZER_H_
