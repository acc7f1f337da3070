// The verifier with everything below it, as a configuration asks for it.
#ifndef TRITONRL_TRAINER_GRPO_VERIFICATION_H_
#define TRITONRL_TRAINER_GRPO_VERIFICATION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "trainer/config.pb.h"
#include "trainer/grpo/starting_backend.h"
#include "verify/judge.h"
#include "verify/verifier.h"

namespace tritonrl {

struct VerificationOptions {
  VerifierConfig config;
  uint64_t seed = 0;    // keys the random inputs; the same for all candidates of a task
  std::string journal;  // file of verdicts that outlives a kill; empty: none
  int ranks_here = 1;   // ranks on this machine, which share its cores
};

// In the order of construction; the workers start in the background.
struct Verification {
  Verification() = default;
  Verification(Verification&&) = default;
  Verification& operator=(Verification&&) = default;
  // The verifier waits for what runs, but not for workers that have not started.
  ~Verification() {
    if (backend != nullptr) backend->Cancel();
  }

  std::unique_ptr<StartingBackend> backend;
  std::unique_ptr<Judge> judge;  // null: off
  std::unique_ptr<Verifier> verifier;
  VerifierOptions options;  // the verifier's

  // An error of the workers' start, or of the journal's file.
  absl::Status Health() const;
};

absl::StatusOr<Verification> StartVerification(const VerificationOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_VERIFICATION_H_
