// Fuzzes the service's request decoder with many mutated requests. Best built with
// AddressSanitizer:
//
//   bazel run --copt=-fsanitize=address --linkopt=-fsanitize=address
//   //exec/service/testing:wire_fuzz --
//   --count=1000000
#include <stdio.h>

#include "absl/flags/flag.h"
#include "base/program.h"
#include "exec/service/testing/request_fuzzer.h"

ABSL_FLAG(int64_t, count, 1000000, "inputs");
ABSL_FLAG(uint64_t, seed, 1, "keys the inputs");

int main(int argc, char** argv) {
  tritonrl::StartProgram("", argc, argv);
  const tritonrl::WireFuzzCounts counts =
      tritonrl::FuzzRequests(absl::GetFlag(FLAGS_count), absl::GetFlag(FLAGS_seed));
  printf("%lld inputs, %lld accepted, %lld broken\n", static_cast<long long>(counts.inputs),
         static_cast<long long>(counts.accepted), static_cast<long long>(counts.broken));
  return counts.broken == 0 ? 0 : 1;
}
