// Executors without a process, for tests of who asks them: a function does what a candidate does,
// and each call of forward gives the number 1, as the fake runner's references do.
#ifndef TRITONRL_EXEC_TESTING_FAKE_EXECUTORS_H_
#define TRITONRL_EXEC_TESTING_FAKE_EXECUTORS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "exec/executor/executor.h"

namespace tritonrl {

class FakeExecutors : public Executors {
 public:
  // Runs on the caller's thread, with the candidate's source; an error becomes that of the session.
  using Candidate = std::function<absl::Status(const std::string& source)>;
  // What the session then says in addition.
  using Ending = std::function<void(const std::string& source, device::SessionResult* result)>;
  explicit FakeExecutors(Candidate candidate,
                         std::optional<device::DeviceDescription> gpu = std::nullopt,
                         Ending ending = nullptr)
      : candidate_(std::move(candidate)), gpu_(std::move(gpu)), ending_(std::move(ending)) {}

  absl::StatusOr<std::unique_ptr<ExecutorSession>> Acquire(absl::Time) override {
    return std::make_unique<Session>(candidate_, ending_);
  }
  int threads() const override { return 1; }
  std::optional<device::DeviceDescription> gpu() const override { return gpu_; }

 private:
  class Session : public ExecutorSession {
   public:
    Session(const Candidate& candidate, const Ending& ending)
        : candidate_(candidate), ending_(ending) {}

    absl::StatusOr<device::SessionResult> Run(const device::SessionOptions& options,
                                              const SharedMemory*, int) override {
      if (absl::Status status = candidate_(options.source); !status.ok()) return status;
      device::SessionResult result;
      result.outputs.assign(options.calls.size(), device::Value::Integer(1));
      result.inputs_unchanged.assign(options.calls.size(), true);
      if (ending_ != nullptr) ending_(options.source, &result);
      return result;
    }
    const RecordingSummary& recording() const override { return recording_; }
    absl::StatusOr<device::ReplayResult> ReplayCall(const ReplayRequest&) override {
      device::ReplayResult result;
      result.output = device::Value::Integer(1);
      result.inputs_unchanged = true;
      return result;
    }
    absl::StatusOr<std::vector<at::Tensor>> ReplayConstructor(uint64_t, absl::Time) override {
      return std::vector<at::Tensor>();
    }
    absl::StatusOr<std::string> BeginTiming(const ReplayRequest&, bool) override {
      return absl::UnimplementedError("no device");
    }
    absl::StatusOr<TimedReplays> TimeReplays(const TimeRequest&) override {
      return absl::UnimplementedError("no device");
    }
    absl::Status lost() const override { return absl::OkStatus(); }

   private:
    const Candidate& candidate_;
    const Ending& ending_;
    const RecordingSummary recording_;
  };

  const Candidate candidate_;
  const std::optional<device::DeviceDescription> gpu_;
  const Ending ending_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_FAKE_EXECUTORS_H_
