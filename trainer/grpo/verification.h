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
#include "absl/time/time.h"
#include "exec/device_backend.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/prompts.h"
#include "verify/judge/judge.h"
#include "verify/pipeline/verifier.h"

// Builds the verifier and its parts (device backend, judge) from a configuration.

namespace tritonrl {

// A device backend that starts in the background, as its workers import torch and Triton, which
// takes seconds. Runs wait for the start.
class DeferredBackend : public DeviceBackend {
 public:
  using Maker = std::function<absl::StatusOr<std::unique_ptr<DeviceBackend>>()>;

  // Calls `make` on a new thread. `name`, `modelled` and `concurrency` must be those of the backend
  // that `make` returns.
  DeferredBackend(Maker make, std::string name, bool modelled, int concurrency);
  // Does not wait for a start in flight: the workers then end once they have started, or with the
  // process.
  ~DeferredBackend() override;

  // Waits for the start, up to the deadline. Returns the error of a failed start.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override;
  int concurrency() const override { return concurrency_; }
  std::string name() const override { return name_; }
  bool modelled() const override { return modelled_; }
  // "starting" until the backend has started.
  std::string sandbox_description() const override;

  // Makes runs that wait for the start return Cancelled. Other runs continue.
  void Cancel();

  // The error of a failed start; OK while the backend starts and afterwards.
  absl::Status StartStatus() const;

 private:
  // Shared with the thread, which may outlive this object during a start.
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
  std::thread thread_;  // creates and destroys the backend
};

struct VerificationOptions {
  VerifierConfig config;
  uint64_t seed = 0;    // key of the random inputs, equal for all candidates of a task
  std::string journal;  // file of verdicts, kept if the process is killed; empty: none
  int cores = 1;        // this rank's share of the machine's; workers if the config sets none
};

// The verifier and its parts. Members are in the order of construction; workers start in the
// background.
struct Verification {
  Verification() = default;
  Verification(Verification&&) = default;
  Verification& operator=(Verification&&) = default;
  // The verifier's destructor waits for runs in flight, but not for workers that have not started.
  ~Verification() {
    if (backend != nullptr) backend->Cancel();
  }

  std::unique_ptr<DeferredBackend> backend;
  std::unique_ptr<Judge> judge;  // null: off
  std::unique_ptr<Verifier> verifier;
  VerifierOptions options;  // options of the verifier

  // The error of the workers' start, of the journal's file or of the judge, if any.
  absl::Status Health() const;
};

// Starts the backend in the background and opens the verifier with its journal.
absl::StatusOr<Verification> StartVerification(const VerificationOptions& options);

// How candidates are judged, for the user: "judge: MODEL at URL" or "judge: none".
std::string DescribeJudge(const JudgeConfig& config);

struct PreflightSettings {
  std::string journal;  // file of results, from which a task checked before is taken; "": none
  absl::Duration give_up = absl::Minutes(10);  // PreflightOptions::give_up
};

// Checks every task with results that must not pass (verify/preflight/preflight.h), with the
// verifier's options. Unsound tasks and tasks whose reference does not run are removed from
// `tasks->tasks` and named in `tasks->problems`; a task that could not be checked is named but
// stays. Rank 0 checks, with progress on stderr; all ranks remove the same tasks. Errors, the same
// on all ranks: no task is left; a rank is lost; those of RunPreflightWithJournal.
absl::Status RemoveUnsoundTasks(const Verification& verification, const PreflightSettings& settings,
                                ProcessGroup* ranks, PreparedTasks* tasks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_VERIFICATION_H_
