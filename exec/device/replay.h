// Recorded commands run again, in the memory of the recording and without the candidate.
#ifndef TRITONRL_EXEC_DEVICE_REPLAY_H_
#define TRITONRL_EXEC_DEVICE_REPLAY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/device/device.h"
#include "exec/device/near_copies.h"
#include "exec/device/recording.h"
#include "exec/device/undo_log.h"

namespace tritonrl::device {

// The device as it is before a call of forward.
struct Checkpoint {
  UndoLog contents;
  std::vector<int64_t> storages;  // live ones
  std::vector<at::Generator> generators;
};
Checkpoint TakeCheckpoint(Device& device);
// Puts contents and generators back. Storages that were made since stay.
absl::Status ReturnTo(const Checkpoint& checkpoint, Device& device);

struct RunResult {
  int64_t launches = 0;
  int64_t left_out = 0;  // of them
  int64_t reads_that_differ = 0;
  std::vector<LaunchCounts> counts;  // of each launch, if they were asked for
};
// Whether to leave out launch `number`.
using SkipLaunch = std::function<bool(const LaunchCommand& launch, int64_t number)>;
struct RunOptions {
  SkipLaunch skip;  // null: none
  bool count = false;
  // Before each operator: its error ends the run. Null: operators were checked.
  std::function<absl::Status(const BoundCall& bound)> check;
  std::function<void(const LaunchCommand& launch)> launched;  // after each launch; may be null
};
// Runs commands again. Errors: of the commands.
absl::StatusOr<RunResult> RunCommands(const CommandList& commands, Phase phase,
                                      const RunOptions& options, Device& device);

struct ReplayOptions {
  // In the order of the recording's inputs, with the same shapes and types, on the CPU or in the
  // window for inputs. Empty: not possible unless the call has no tensors as inputs.
  std::vector<at::Tensor> inputs;
  double scale = 1;              // of inputs of floating point
  std::optional<uint64_t> seed;  // of the default generator; unset: that of the recording
  RunOptions run;
  Poison poison = Poison::kOnes;
  absl::Time deadline = absl::InfiniteFuture();
  // Whether the call finds what the one before it left in memory that is older than a call. Else it
  // begins as the recorded one.
  bool keeps_state = false;
  // Whether provenance follows launches that only copy (Device::set_originals): the call's inputs
  // and what was there before it are the originals.
  bool follow_copies = false;
  CopyTolerance copy_tolerance;
};
struct ReplayResult {
  Value output;                       // as the recording's, handed over (HandOver)
  std::vector<TagCounts> provenance;  // of the output's tensors, in order
  Traffic traffic;
  bool inputs_unchanged = false;  // after the call; not asked for with another scale than 1
  RunResult run;
};
// InvalidArgument: the inputs do not fit. Other errors are those of the commands.
absl::StatusOr<ReplayResult> Replay(const RecordedCall& call, const Checkpoint& checkpoint,
                                    const ReplayOptions& options, Device& device);

// Runs the constructor's commands again under another seed, from empty memory on.
absl::StatusOr<RunResult> RunInit(const Recording& recording, uint64_t seed, Device& device);

// Runs the constructor's commands under another seed, and returns the state's tensors. Afterwards
// the device is no longer that of the checkpoints.
absl::StatusOr<std::vector<at::Tensor>> ReplayInit(const Recording& recording, uint64_t seed,
                                                   Device& device);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_REPLAY_H_
