// A device backend whose workers start (they import torch and Triton, some seconds) while the rest
// of the program loads: runs wait for it.
#ifndef TRITONRL_TRAINER_GRPO_STARTING_BACKEND_H_
#define TRITONRL_TRAINER_GRPO_STARTING_BACKEND_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "exec/device_backend.h"

namespace tritonrl {

class StartingBackend : public DeviceBackend {
 public:
  using Maker = std::function<absl::StatusOr<std::unique_ptr<DeviceBackend>>()>;

  // Calls `make` on a thread of its own. `name`, `modelled` and `concurrency` are what the backend
  // will say of itself.
  StartingBackend(Maker make, std::string name, bool modelled, int concurrency);
  // Does not wait for a start that is under way: the workers then end when they are ready or with
  // the process.
  ~StartingBackend() override;

  // Waits for the start (up to the deadline); a failed start is this call's error.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override;
  int concurrency() const override { return concurrency_; }
  std::string name() const override { return name_; }
  bool modelled() const override { return modelled_; }
  // "starting" until the workers run.
  std::string sandbox_description() const override;

  // Ends waiting for the start: such runs give Cancelled. Runs under way go on.
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

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_STARTING_BACKEND_H_
