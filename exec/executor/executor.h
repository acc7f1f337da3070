// What executes a candidate's commands and replays them, from the side of those who judge it. The
// one that does it is a process of its own (executor_pool.h): it parses what the candidate sends,
// holds the candidate's memory, and knows neither expected outputs nor seeds of later calls.
//
// A field added to device::SessionOptions, SessionResult or ReplayOptions belongs into
// executor.proto and its readers and writers too.
#ifndef TRITONRL_EXEC_EXECUTOR_EXECUTOR_H_
#define TRITONRL_EXEC_EXECUTOR_EXECUTOR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/device/session.h"
#include "exec/workers/shared_memory.h"

namespace tritonrl {

// One launch of the recorded call.
struct RecordedLaunch {
  std::string kernel;  // its name
  int line = 0;        // of the candidate's source, where it was launched
  std::array<int32_t, 3> grid = {1, 1, 1};
  int64_t num_warps = 0;
  int64_t num_stages = 0;
  int64_t shared_bytes = 0;
};

// What is known of the recorded call beside its results.
struct RecordingSummary {
  std::vector<RecordedLaunch> launches;    // in order
  std::vector<device::TensorRef> inputs;   // in order of occurrence
  std::vector<device::TensorRef> outputs;  // tensors of the output that are on the device
  int64_t state_tensors = 0;               // parameters and buffers of the candidate
};

// Launches that a replay leaves out.
struct SkippedLaunches {
  bool all = false;
  std::set<std::string> kernels;  // by name
  std::set<int64_t> numbers;      // of the launch, from 0
};

// A replay of the recorded call. Fields without a comment are those of device::ReplayOptions.
struct ReplayRequest {
  std::vector<at::Tensor> inputs;
  double scale = 1;
  std::optional<uint64_t> seed;
  SkippedLaunches skipped;
  bool count = false;  // LaunchCounts of each launch
  device::Poison poison = device::Poison::kOnes;
  absl::Time deadline = absl::InfiniteFuture();
  bool keeps_state = false;
  bool follow_copies = false;
  device::CopyTolerance copy_tolerance;  // of what is a copy
};

// So many replays of a call that is ready to be timed.
struct TimeRequest {
  int count = 1;
  bool with_launches = false;  // their mean alone, with the host's time for launches
  bool output = false;         // whether to give the output of the last one
  absl::Time deadline = absl::InfiniteFuture();
};
struct TimedReplays {
  std::vector<double> seconds;  // of each, or their mean
  device::Value output;         // on the host
};

// One candidate. Not thread-safe. Every status besides those below comes from device::Session:
// - Aborted: the executor itself ended, or sent what makes no sense; the message says how it ended.
//   Another executor may do better, unless it is the candidate's doing.
// - DeadlineExceeded also if the executor did not stop in time, and was killed.
// After either, each further call returns the same status.
class ExecutorSession {
 public:
  virtual ~ExecutorSession() = default;

  // Serves the candidate's process behind the stream socket `client`, which stays the caller's; to
  // be called once. `shared` may be null; else it is sealed and mapped, and outlives this object:
  // tensors of the options, and of replays, that lie in it need no copy. Tensors of the result are
  // valid as long as this object.
  //
  // options.exchange has windows of others (device::ReserveWindow): of inputs that lie in the one,
  // and of outputs, which lie in the other, only the forms are known here. It is called by this
  // thread while the candidate runs.
  virtual absl::StatusOr<device::SessionResult> Run(const device::SessionOptions& options,
                                                    const SharedMemory* shared, int client) = 0;
  // Of the first call, once Run has succeeded with at least one output.
  virtual const RecordingSummary& recording() const = 0;

  // Tensors of the result are valid until the next call of this object.
  virtual absl::StatusOr<device::ReplayResult> ReplayCall(const ReplayRequest& request) = 0;
  // The state's tensors as the constructor makes them under another seed. Calls can no longer be
  // replayed.
  virtual absl::StatusOr<std::vector<at::Tensor>> ReplayConstructor(uint64_t seed,
                                                                    absl::Time deadline) = 0;

  // Makes the recorded call ready to be timed (device::TimedCall), until the next call of another
  // function than TimeReplays. `direct`: not as a graph. Returns why it is no graph, or "".
  // Unimplemented: this device takes no times.
  virtual absl::StatusOr<std::string> BeginTiming(const ReplayRequest& request, bool direct) = 0;
  // The output is valid until the next call of this object.
  virtual absl::StatusOr<TimedReplays> TimeReplays(const TimeRequest& request) = 0;

  // Aborted once the executor has ended by itself; else OK.
  virtual absl::Status lost() const = 0;
};

// Executors for several candidates at once. Thread-safe.
class Executors {
 public:
  virtual ~Executors() = default;

  // Waits for a free executor. DeadlineExceeded: none became free until then; Unavailable: none can
  // be started.
  virtual absl::StatusOr<std::unique_ptr<ExecutorSession>> Acquire(absl::Time deadline) = 0;
  virtual int threads() const = 0;  // of a launch
  // The GPU on which they run kernels, and take times; nullopt on a CPU.
  virtual std::optional<device::DeviceDescription> gpu() const = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_EXECUTOR_EXECUTOR_H_
