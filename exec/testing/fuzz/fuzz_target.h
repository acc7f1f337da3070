// Damaged inputs of the executor, each a function of a seed and its number.
#ifndef TRITONRL_EXEC_TESTING_FUZZ_FUZZ_TARGET_H_
#define TRITONRL_EXEC_TESTING_FUZZ_FUZZ_TARGET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

class FuzzTarget {
 public:
  virtual ~FuzzTarget() = default;

  // The bytes of an input, to be kept.
  virtual std::string Input(uint64_t number) = 0;
  // Runs the input. An error: what must hold for any input does not hold.
  virtual absl::Status Run(uint64_t number) = 0;
};

// "streams": commands of a candidate's process, served by a session and replayed.
// "texts": Triton IR, parsed and verified.
// "launches": Triton IR of which much still verifies, launched on the CPU between guards.
// Inputs of several kinds take turns. InvalidArgument: an unknown kind, or none.
absl::StatusOr<std::unique_ptr<FuzzTarget>> MakeFuzzTarget(const std::vector<std::string>& kinds,
                                                           uint64_t seed);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_FUZZ_FUZZ_TARGET_H_
