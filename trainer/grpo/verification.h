#ifndef TRITONRL_TRAINER_GRPO_VERIFICATION_H_
#define TRITONRL_TRAINER_GRPO_VERIFICATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "exec/device_backend.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/prompts.h"
#include "verify/judge/judge.h"
#include "verify/pipeline/verifier.h"

// The verifier with everything below it, as a configuration asks for it.

namespace tritonrl {

// A device backend that starts while the rest of the program loads, as its workers import torch and
// Triton, which takes seconds. Runs wait for the start.
class DeferredBackend : public DeviceBackend {
 public:
  using Maker = std::function<absl::StatusOr<std::unique_ptr<DeviceBackend>>()>;

  // Calls `make` on a thread of its own. `name`, `modelled` and `concurrency` are what the backend
  // will say of itself.
  DeferredBackend(Maker make, std::string name, bool modelled, int concurrency);
  // Does not wait for a start in flight: its workers end when they are ready, or with the process.
  ~DeferredBackend() override;

  // Waits for the start (up to the deadline); a failed start is this call's error.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override;
  int concurrency() const override { return concurrency_; }
  std::string name() const override { return name_; }
  bool modelled() const override { return modelled_; }
  // "starting" until the workers run.
  std::string sandbox_description() const override;

  // Runs that wait for the start return Cancelled. Runs in flight go on.
  void Cancel();

  // Ok while it starts and when it has started.
  absl::Status StartStatus() const;

 private:
  // Shared with the thread, which may outlive this object while it starts workers.
  struct State {
    absl::Mutex mutex;
    bool started ABSL_GUARDED_BY(mutex) = false;  // `backend` or `status` is final
    std::unique_ptr<DeviceBackend> backend ABSL_GUARDED_BY(mutex);
    absl::Status status ABSL_GUARDED_BY(mutex);
    bool cancelled ABSL_GUARDED_BY(mutex) = false;
    bool stopping ABSL_GUARDED_BY(mutex) = false;

    bool StartedOrCancelled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return started || cancelled;
    }
  };

  std::string name_;
  bool modelled_;
  int concurrency_;
  std::shared_ptr<State> state_;
  std::thread thread_;  // makes the backend and ends it
};

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

  std::unique_ptr<DeferredBackend> backend;
  std::unique_ptr<Judge> judge;  // null: off
  std::unique_ptr<Verifier> verifier;
  VerifierOptions options;  // the verifier's

  // An error of the workers' start, or of the journal's file.
  absl::Status Health() const;
};

absl::StatusOr<Verification> StartVerification(const VerificationOptions& options);

// Tries results that must not pass (verify/preflight/preflight.h) on every task, with the
// verifier's options. Unsound tasks, and tasks whose reference does not run, are removed from
// `tasks->tasks` and named in `tasks->problems`. A task that could not be checked stays and is
// named too. Rank 0 checks, with progress on stderr; all ranks remove the same tasks. Errors: no
// task is left; a rank is lost.
absl::Status RemoveUnsoundTasks(const Verification& verification, ProcessGroup* ranks,
                                PreparedTasks* tasks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_VERIFICATION_H_
